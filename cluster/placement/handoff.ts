// Handoff, the owner's side: flushes ahead, has the next owner read ahead, seals the shard, signs
// it over. No request is lost, for nobody but an edge owns one. Once the signature has been sent
// the shard stays sealed until the row says what has become of it. Source: PROTOCOL 3.8.

import { LIMITS } from '../../config/limits.ts'
import type { Log } from '../../protocol/log.ts'
import type { ControlStore, ShardRow } from '../../storage/control.ts'
import type { LogEnd } from '../../storage/journal.ts'
import type { Clock } from '../clock.ts'
import type { LastSnapshot } from '../sharding/recovery/shard-snapshot.ts'
import type { Shard } from '../sharding/shard.ts'
import type { Notice } from '../wire.ts'
import type { TenureHost } from './ownership.ts'

/** Who gets the shard. */
export interface Target {
  readonly member: string
  readonly incarnation: string
}

export interface HandoffOptions {
  readonly control: ControlStore
  readonly clock: Clock
  readonly log: Log
  readonly host: TenureHost
  readonly member: string
  readonly incarnation: () => string
  readonly tell: (to: string, notice: Notice) => void
  /** Others can be told, and hear. */
  readonly isWireUp: () => boolean
  /** The target has died or is leaving, as far as is known. */
  readonly isUp: (incarnation: string) => boolean
  /** The target was seen to beat: its row says `up` also when it died while nobody looked. */
  readonly isBeating: (incarnation: string) => boolean
  readonly learn: (shard: number, route: { incarnation: string; epoch: number }) => void
}

interface Sealed {
  readonly sealedMs: number
  readonly closing: Promise<LogEnd | null>
}

interface Handed {
  readonly shard: number
  readonly epoch: number
  readonly closing: Promise<LogEnd | null>
  readonly last: LastSnapshot
}

const NOT_CLOSED = Promise.resolve(null)
/** Pauses of the last handoffs, from sealed until the next owner serves, milliseconds. */
const PAUSES_MAX = 1_000

export class Handoff {
  readonly pausesMs: number[] = []
  pauseMs = 0
  count = 0
  readonly #options: HandoffOptions
  readonly #underWay = new Map<number, Target>()
  /** Targets that read ahead, by shard. */
  readonly #readers = new Map<number, { readonly epoch: number; readonly end: () => void }>()
  /** Signed over, by shard; the next owner hasn't said yet that it serves. */
  readonly #signedOver = new Map<number, { readonly epoch: number; readonly sealedMs: number }>()

  constructor(options: HandoffOptions) {
    this.#options = options
  }

  get underWay(): ReadonlyMap<number, Target> {
    return this.#underWay
  }

  /** Shards that were signed over, and nobody has said yet that he serves them. */
  get awaited(): number {
    return this.#signedOver.size
  }

  /** Hands a shard over; resolves when it is done, or called off. */
  async handOver(shard: number, to: Target): Promise<void> {
    const { host, isUp, isBeating, log } = this.#options
    const tenure = host.tenure(shard)
    if (tenure?.state !== 'serving' || this.#underWay.has(shard)) return
    this.#underWay.set(shard, to)
    try {
      await tenure.prepareHandoff()
      await this.#readAhead(tenure, to)
      if (!isUp(to.incarnation) || !isBeating(to.incarnation)) return
      const sealedMs = this.#options.clock.monotonicMs()
      // It serves again when what was in flight took too long: the rebalancer will ask once more.
      if (!(await tenure.seal())) return
      await this.#sign(tenure, to, sealedMs)
    } catch (error) {
      log.error({ err: error, shard }, 'a handoff has failed')
      tenure.stepDown('a handoff has failed')
    } finally {
      this.#underWay.delete(shard)
    }
  }

  /**
   * The target opens the shard and reads what it will need, while it is served here: a process that
   * has just begun takes its time for that. Without its word the shard is sealed all the same.
   */
  #readAhead({ number: shard, epoch }: Shard, to: Target): Promise<void> {
    const { clock, tell, isWireUp } = this.#options
    if (!isWireUp()) return Promise.resolve()
    return new Promise((resolve) => {
      const end = (): void => {
        cancel()
        this.#readers.delete(shard)
        resolve()
      }
      const cancel = clock.after(LIMITS.placement.readAheadMs, end)
      this.#readers.set(shard, { epoch: epoch + 1, end })
      tell(to.incarnation, { kind: 'expect', shard, epoch: epoch + 1 })
    })
  }

  /** The target has read ahead. */
  ready(shard: number, epoch: number): void {
    const reader = this.#readers.get(shard)
    if (reader?.epoch === epoch) reader.end()
  }

  async #sign(tenure: Shard, to: Target, sealedMs: number): Promise<void> {
    const { control, clock, isUp, member, incarnation } = this.#options
    const { number: shard, epoch } = tenure
    const own = incarnation()
    let target = to
    let closing: Promise<LogEnd | null> | undefined
    for (let sent = 0; tenure.state === 'sealed'; sent++) {
      if (!isUp(to.incarnation)) {
        // Nothing has left yet: it was never sealed. Else only a signature of ours can end it.
        if (sent === 0) return tenure.unseal()
        target = { member, incarnation: own }
      }
      const next = { epoch: epoch + 1, owner: target.member, incarnation: target.incarnation }
      closing ??= this.#close(tenure)
      const outcome = await control.updateShard(shard, next, { epoch, incarnation: own })
      if (outcome === 'applied') return this.#signed(tenure, next, { sealedMs, closing })
      const row = await this.#read(shard)
      if (row && row.epoch > epoch) return this.#signed(tenure, row, { sealedMs, closing })
      await new Promise<void>((resolve) => void clock.after(LIMITS.membership.beatRetryMs, resolve))
    }
  }

  /**
   * Closes the log for the next epoch, side by side with the row: whoever that epoch is issued to
   * has nothing to fence then. Nothing is appended in this one any more, whatever becomes of it.
   */
  async #close({ number, epoch, gate, flusher, context }: Shard): Promise<LogEnd | null> {
    try {
      const { head } = gate
      const end = await context.journal.log.close?.(number, { epoch, head })
      return end ? { ...end, flush: flusher.stored } : null
    } catch {
      return null
    }
  }

  /** The row has a later epoch: whoever it names is the owner, perhaps this incarnation again. */
  #signed(tenure: Shard, row: Omit<ShardRow, 'shard' | 'segment'>, sealed: Sealed): void {
    const { host, learn, log } = this.#options
    const { incarnation, epoch } = row
    const { number: shard } = tenure
    this.count++
    if (incarnation !== this.#options.incarnation()) {
      this.#signedOver.set(shard, { epoch, sealedMs: sealed.sealedMs })
    }
    log.info({ shard, epoch, to: row.owner }, 'signed a shard over')
    learn(shard, { incarnation, epoch })
    const last = tenure.lastSnapshot()
    host.forget(tenure)
    tenure.signedOver({ incarnation, epoch })
    const closing = epoch === tenure.epoch + 1 ? sealed.closing : NOT_CLOSED
    void this.#tellHanded(incarnation, { shard, epoch, closing, last })
  }

  /** Waits for the end of the log, not for long: the next owner can fence it itself. */
  async #tellHanded(to: string, { shard, epoch, closing, last }: Handed): Promise<void> {
    const { clock, tell } = this.#options
    const own = this.#options.incarnation()
    const end = await new Promise<LogEnd | null>((resolve) => {
      const cancel = clock.after(LIMITS.placement.handedAwaitMs, () => resolve(null))
      void closing.then((closed) => {
        cancel()
        resolve(closed)
      })
    })
    if (own !== this.#options.incarnation()) return
    tell(to, { kind: 'handed', shard, epoch, ...(end && { end, last }) })
  }

  /** Another incarnation has handed nothing over. */
  reset(): void {
    this.#signedOver.clear()
  }

  /** Somebody serves that shard: if it is the one that it was signed over to, its pause is over. */
  served(shard: number, epoch: number): void {
    const signed = this.#signedOver.get(shard)
    if (signed === undefined || epoch < signed.epoch) return
    this.#signedOver.delete(shard)
    // Somebody else came to it in between: that was a death, not a move.
    if (epoch > signed.epoch) return
    const { clock, log } = this.#options
    const pauseMs = clock.monotonicMs() - signed.sealedMs
    this.pauseMs += pauseMs
    this.pausesMs.push(pauseMs)
    if (this.pausesMs.length > PAUSES_MAX) this.pausesMs.shift()
    log.info(
      { shard, epoch, pauseMs: Math.round(pauseMs) },
      'a shard that was handed over is served',
    )
  }

  async #read(shard: number): Promise<ShardRow | null> {
    try {
      return await this.#options.control.shard(shard)
    } catch {
      return null
    }
  }
}
