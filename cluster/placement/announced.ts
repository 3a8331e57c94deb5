// Shards that their owner has announced to this member: for each a shard object is opened that
// holds what comes for it and reads ahead, until the row has been signed over or the time is up.
// Source: PROTOCOL 3.8.

import { LIMITS } from '../../config/limits.ts'
import type { ControlStore } from '../../storage/control.ts'
import type { Clock } from '../clock.ts'
import type { Shard } from '../sharding/shard.ts'
import type { Notice } from '../wire.ts'
import type { Claimer, Expected } from './claimer.ts'
import type { TenureHost } from './ownership.ts'

export interface AnnouncedOptions {
  readonly control: ControlStore
  readonly clock: Clock
  readonly host: TenureHost
  readonly claimer: Claimer
  readonly incarnation: () => string
  readonly tell: (to: string, notice: Notice) => void
}

type Announcement = Expected & {
  /** The one in which it is to be signed over. */
  readonly epoch: number
  /** When its row was first seen to be signed over. */
  signedMs?: number
}

/** What the owner before says: it was signed over in this epoch, and its log may be closed. */
export type Signed = Pick<Extract<Notice, { kind: 'handed' }>, 'epoch' | 'end' | 'last'>

export class Announced {
  readonly #options: AnnouncedOptions
  readonly #shards = new Map<number, Announcement>()

  constructor(options: AnnouncedOptions) {
    this.#options = options
  }

  /** A new incarnation was told nothing yet; what the old one had opened goes with it. */
  reset(): void {
    this.#shards.clear()
  }

  /** Opens a shard that nobody serves here, for as long as a move may take; `from`: its owner. */
  expect(shard: number, epoch: number, from: string): void {
    const { host, clock, control, tell } = this.#options
    const opened = host.open(shard)
    const expected: Announcement = {
      shard: opened,
      prefetched: opened.prefetch().catch(() => null),
      row: control.shard(shard).catch(() => null),
      epoch,
    }
    this.#shards.set(shard, expected)
    void Promise.all([expected.prefetched, expected.row]).then(() =>
      tell(from, { kind: 'ready', shard, epoch }),
    )
    clock.after(LIMITS.placement.moveMs, () => {
      if (this.#shards.get(shard) !== expected) return
      this.#shards.delete(shard)
      this.#release(opened)
    })
  }

  /**
   * Whether a row that is signed over is still to be confirmed by the owner before, who has closed
   * the log meanwhile: then nothing is left to be fenced. Not for long: that word may be lost.
   */
  awaits(shard: number, epoch: number): boolean {
    const expected = this.#shards.get(shard)
    if (expected?.epoch !== epoch) return false
    const nowMs = this.#options.clock.monotonicMs()
    expected.signedMs ??= nowMs
    return nowMs - expected.signedMs < LIMITS.placement.handedAwaitMs
  }

  /**
   * Serves a shard that is this incarnation's, in the object that was opened for it if there is
   * one. `signed`: what the owner before says of it.
   */
  async serve(shard: number, signed?: Signed): Promise<void> {
    const expected = this.#shards.get(shard)
    this.#shards.delete(shard)
    try {
      await this.#serve(shard, expected, signed)
    } finally {
      if (expected) this.#release(expected.shard)
    }
  }

  async #serve(shard: number, expected?: Announcement, signed?: Signed): Promise<void> {
    const { claimer, incarnation } = this.#options
    const own = incarnation()
    if (expected !== undefined && expected.epoch === signed?.epoch) {
      const { epoch, end, last } = signed
      // As of then: claims follow the chain of segments from there.
      const segment = end?.segment ?? (await expected.row)?.segment
      if (own !== incarnation()) return
      if (segment !== undefined) {
        const tenure = { epoch, segment, ...(end && { end }) }
        return claimer.handed(shard, tenure, { ...expected, ...(end && last && { last }) })
      }
    }
    await claimer.reclaim(shard, expected)
  }

  /** What was opened for a shard that has not come would hold messages for ever. */
  #release(opened: Shard): void {
    const { host } = this.#options
    if (host.tenure(opened.number) !== opened || opened.state !== 'claiming') return
    host.forget(opened)
    opened.stepDown('the shard that was announced has not come')
  }
}
