// Signing shards over unasked: who leaves gives all of them to the others, and so does who is cut
// off, for nobody can ask him. Source: PROTOCOL 3.4 "Cut off", 3.8.

import { LIMITS } from '../../config/limits.ts'
import type { Log } from '../../protocol/log.ts'
import type { Clock } from '../clock.ts'
import type { Membership } from '../membership/membership.ts'
import type { Shard } from '../sharding/shard.ts'
import type { Handoff } from './handoff.ts'
import { targetsOf } from './moves.ts'
import type { TenureHost } from './ownership.ts'

export interface DrainOptions {
  readonly clock: Clock
  readonly log: Log
  readonly host: TenureHost
  readonly membership: Membership
  readonly handoff: Handoff
}

export class Drain {
  readonly #options: DrainOptions
  #isGivingBack = false

  constructor(options: DrainOptions) {
    this.#options = options
  }

  /** Signs some shards over; false when none is left, or nobody is there to take them. */
  async some(): Promise<boolean> {
    const { membership, handoff } = this.#options
    const { view } = membership
    const mine = this.#serving()
    if (!view || mine.length === 0 || view.live().length === 0) return false
    const next = targetsOf(view)
    await Promise.all(
      mine.slice(0, LIMITS.placement.handoffsInFlightMax).map(({ number }) => {
        const to = next.get(number)
        return to ? handoff.handOver(number, to) : Promise.resolve()
      }),
    )
    await membership.refresh().catch(() => null)
    if (this.#serving().length === mine.length) await this.#pause()
    return true
  }

  /** Signs all over, while `isCutOff` says so. */
  async giveBack(isCutOff: () => boolean): Promise<void> {
    if (this.#isGivingBack || this.#serving().length === 0) return
    this.#isGivingBack = true
    this.#options.log.warn({}, 'giving its shards to members whose wire is up')
    try {
      while (isCutOff() && (await this.some()));
    } finally {
      this.#isGivingBack = false
    }
  }

  #serving(): readonly Shard[] {
    return [...this.#options.host.tenures()].filter(({ state }) => state === 'serving')
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#options.clock.after(LIMITS.membership.beatRetryMs, resolve)
    })
  }
}
