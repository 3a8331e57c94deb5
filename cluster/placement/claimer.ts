// Claims: takes shards whose owner is dead, and those that the rows say are ours but that we don't
// serve. The conditional statement on the shard's row decides; the fence of the log and the replay
// follow. Source: PROTOCOL 3.5 (forced claim, re-claim).

import { LIMITS } from '../../config/limits.ts'
import { AssertionError } from '../../protocol/errors.ts'
import type { Log } from '../../protocol/log.ts'
import type { Outage } from '../../protocol/outage.ts'
import { NIL_INCARNATION } from '../../storage/control.ts'
import type { ControlStore, ShardRow } from '../../storage/control.ts'
import { LostTenure } from '../../storage/journal.ts'
import type { Tenure } from '../../storage/journal.ts'
import type { Clock } from '../clock.ts'
import type { LastSnapshot } from '../sharding/recovery/shard-snapshot.ts'
import type { Prefetched, Shard } from '../sharding/shard.ts'
import type { TenureHost } from './ownership.ts'

export interface ClaimerOptions {
  readonly control: ControlStore
  readonly clock: Clock
  readonly log: Log
  /** Told of claims that have failed, and of those that have not. */
  readonly outage: Outage
  readonly host: TenureHost
  readonly member: string
  readonly incarnation: () => string
  /** The own lease stands: without it two members take a shard from each other for ever. */
  readonly mayServe: () => boolean
}

/** A shard that its owner has announced: it holds what comes, and has read ahead. */
export interface Expected {
  readonly shard: Shard
  readonly prefetched: Promise<Prefetched | null>
  /** Its row, read when it was announced. */
  readonly row: Promise<ShardRow | null>
  /** What the owner before has told of the log that it has closed. */
  readonly last?: LastSnapshot
}

export class Claimer {
  /** Shards that this process came to serve. */
  served = 0
  readonly #options: ClaimerOptions
  /** Epochs in which this incarnation may have appended, by shard: never served twice. */
  readonly #used = new Map<number, number>()

  constructor(options: ClaimerOptions) {
    this.#options = options
  }

  /** A new incarnation has appended nothing yet. */
  reset(): void {
    this.#used.clear()
  }

  /** Takes a shard from an owner that is dead; does nothing when it is not, or somebody did. */
  async force(shard: number): Promise<void> {
    const { control, mayServe, member, incarnation } = this.#options
    if (!mayServe()) return
    const row = await control.shard(shard)
    if (!(await this.#isDead(row))) return
    const taken = await this.#take(row, member, incarnation())
    if (taken) await this.serve(shard, taken)
  }

  /** Serves a shard whose row carries this incarnation, in an epoch in which it never appended. */
  async reclaim(shard: number, expected?: Expected): Promise<void> {
    const row = await this.#options.control.shard(shard)
    if (row.incarnation !== this.#options.incarnation()) return
    const tenure = this.#options.host.tenure(shard)
    if (tenure?.state === 'serving' && tenure.epoch === row.epoch) return
    const next = (this.#used.get(shard) ?? 0) < row.epoch ? row : await this.raise(row)
    if (next) await this.serve(shard, next, expected)
  }

  /**
   * Serves a shard that its owner says it has signed over to this incarnation, without a look at
   * the row: it says so only when the row does. Where this incarnation has served in that epoch,
   * the row decides.
   */
  async handed(shard: number, tenure: Tenure, expected: Expected): Promise<void> {
    if ((this.#used.get(shard) ?? 0) >= tenure.epoch) return this.reclaim(shard, expected)
    await this.serve(shard, tenure, expected)
  }

  /** Raises the epoch of a shard of ours: what was sent in the old one is false for ever. */
  async raise(row: ShardRow): Promise<Tenure | null> {
    const { member, incarnation } = this.#options
    if (row.incarnation !== incarnation()) return null
    const taken = await this.#take(row, member, incarnation())
    // From here on the shard itself appends in it (PROTOCOL 3.2.5), or a claim does.
    return taken
  }

  /** Fences the log, replays its tail, serves. What fails is tried again with the next view. */
  async serve(shard: number, tenure: Tenure, expected?: Expected): Promise<void> {
    const { host, log, outage, clock, incarnation } = this.#options
    const own = incarnation()
    const beganMs = clock.monotonicMs()
    this.#used.set(shard, tenure.epoch)
    const next =
      expected && host.tenure(shard) === expected.shard ? expected.shard : host.open(shard)
    try {
      const prefetched = expected ? await expected.prefetched : null
      // This incarnation may have ended meanwhile, with all that it had opened.
      if (own !== incarnation()) throw new LostTenure(shard, tenure.epoch)
      await next.claim(tenure, { prefetched, ...(expected?.last && { last: expected.last }) })
    } catch (error) {
      host.forget(next)
      next.stepDown('the claim has failed')
      if (error instanceof LostTenure) log.info({ shard, epoch: tenure.epoch }, error.message)
      else if (!(error instanceof AssertionError)) outage.failed({ err: error, shard })
      else log.error({ err: error, shard, epoch: tenure.epoch }, 'a shard could not be taken over')
      return
    }
    if (own !== incarnation()) {
      host.forget(next)
      next.stepDown('this incarnation of the member is over')
    } else {
      this.served++
      outage.answered()
      host.serving(next)
      const tookMs = Math.round(clock.monotonicMs() - beganMs)
      log.info({ shard, epoch: tenure.epoch, tookMs }, 'serves a shard')
    }
  }

  /** Marks an epoch as one in which this incarnation may have appended. */
  used(shard: number, epoch: number): void {
    this.#used.set(shard, Math.max(epoch, this.#used.get(shard) ?? 0))
  }

  /** Read after the shard's row: an incarnation that is newer than the row's would look dead. */
  async #isDead(row: ShardRow): Promise<boolean> {
    if (row.incarnation === NIL_INCARNATION) return true
    const owner = await this.#options.control.member(row.owner)
    if (owner === null || owner.incarnation !== row.incarnation) return true
    return owner.state === 'dead' || owner.state === 'left'
  }

  /** The row's next tenure, in this incarnation's hands; null: somebody else was first. */
  async #take(row: ShardRow, owner: string, incarnation: string): Promise<Tenure | null> {
    const { control, clock, mayServe } = this.#options
    const { shard, epoch, segment } = row
    const to = { epoch: epoch + 1, owner, incarnation }
    for (let attempt = 0; attempt < LIMITS.storage.claimAttemptsMax; attempt++) {
      if (!mayServe()) return null
      const outcome = await control.updateShard(shard, to, { epoch, incarnation: row.incarnation })
      if (outcome === 'applied') return { epoch: to.epoch, segment }
      const now = await control.shard(shard)
      if (now.epoch === to.epoch && now.incarnation === incarnation) {
        return { epoch: to.epoch, segment: now.segment }
      }
      if (outcome === 'refused' || now.epoch !== epoch) return null
      await new Promise<void>((resolve) => void clock.after(LIMITS.routing.retryMs, resolve))
    }
    // It may land later: then the row carries this incarnation, and a re-claim serves it.
    return null
  }
}
