// Shards that their owner has announced to this member: for each a shard object is opened that
// holds what comes for it and reads ahead, until the row has been signed over or the time is up. It
// stands between the notices of a handoff and the claims of its target. Source: PROTOCOL 3.8.

import { LIMITS } from '../../config/limits.ts'
import type { ControlStore } from '../../storage/control.ts'
import type { Clock } from '../clock.ts'
import type { Shard } from '../sharding/shard.ts'
import type { Claimer, Expected } from './claimer.ts'
import type { TenureHost } from './ownership.ts'

export interface AnnouncedOptions {
  readonly control: ControlStore
  readonly clock: Clock
  readonly host: TenureHost
  readonly claimer: Claimer
  readonly incarnation: () => string
}

/** `epoch`: the one in which it is to be signed over. */
type Announcement = Expected & { readonly epoch: number }

export class Announced {
  readonly #options: AnnouncedOptions
  readonly #shards = new Map<number, Announcement>()

  constructor(options: AnnouncedOptions) {
    this.#options = options
  }

  /** A new life was told nothing yet; what the old one had opened goes with it. */
  reset(): void {
    this.#shards.clear()
  }

  /** Opens a shard that nobody serves here, for as long as a move may take. */
  expect(shard: number, epoch: number): void {
    const { host, clock, control } = this.#options
    const opened = host.open(shard)
    const expected = {
      shard: opened,
      prefetched: opened.prefetch().catch(() => null),
      row: control.shard(shard).catch(() => null),
      epoch,
    }
    this.#shards.set(shard, expected)
    clock.after(LIMITS.moveMs, () => {
      if (this.#shards.get(shard) !== expected) return
      this.#shards.delete(shard)
      this.#release(opened)
    })
  }

  /**
   * Serves a shard that is this life's, in the object that was opened for it if there is one.
   * `signed`: the epoch in which the owner before says that it was signed over to this life.
   */
  async serve(shard: number, signed?: number): Promise<void> {
    const expected = this.#shards.get(shard)
    this.#shards.delete(shard)
    try {
      await this.#serve(shard, expected, signed)
    } finally {
      if (expected) this.#release(expected.shard)
    }
  }

  async #serve(shard: number, expected?: Announcement, signed?: number): Promise<void> {
    const { claimer, incarnation } = this.#options
    const life = incarnation()
    if (expected !== undefined && expected.epoch === signed) {
      const row = await expected.row
      if (life !== incarnation()) return
      // As of then: claims follow the chain of segments from there.
      if (row) return claimer.handed(shard, { epoch: signed, segment: row.segment }, expected)
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
