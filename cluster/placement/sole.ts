// The one owner of a store: embedded, every shard is this member's from its start to its end, and
// the store alone can end that (another process has opened it). Source: PROTOCOL 3.16.

import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { LogStore, Maybe, Tenure } from '../../storage/journal.ts'
import type { Clock } from '../clock.ts'
import { targets } from '../ring.ts'
import type { Route } from '../routing/routes.ts'
import type { Overview, Ownership, TenureHost } from './ownership.ts'

export interface SoleOptions {
  readonly member: string
  readonly incarnation: string
  readonly address: string
  readonly version: string
  readonly shards: number
  readonly log: LogStore
  readonly clock: Clock
  /** Another process has the store. */
  readonly onLost: (shard: number, why: string) => void
}

export class SoleOwnership implements Ownership {
  readonly incarnation: string
  readonly #options: SoleOptions
  readonly #host: TenureHost
  readonly #route: Route

  constructor(options: SoleOptions, host: TenureHost) {
    this.#options = options
    this.#host = host
    this.incarnation = options.incarnation
    this.#route = { incarnation: options.incarnation, epoch: 0 }
  }

  /** A shard that is not claimed yet holds what comes for it. */
  async start(): Promise<void> {
    const { shards, member } = this.#options
    const mine = targets([SYSTEM_SHARD, ...Array(shards).keys()], [member])
    const tenures = [...mine.keys()].map((shard) => this.#host.open(shard))
    await Promise.all(
      tenures.map(async (tenure) => {
        await tenure.claim()
        this.#host.serving(tenure)
      }),
    )
  }

  route(): Route {
    return this.#route
  }

  isCutOff(): boolean {
    return false
  }

  learn(): void {
    // Nobody else has anything.
  }

  /** The store says whose a shard is: an epoch that isn't ours ends our tenure. */
  mayRead(shard: number, epoch: number): Maybe<boolean> {
    const judge = (now: number): boolean => {
      if (now !== epoch) this.#host.tenure(shard)?.stepDown('another owner has this shard')
      return now === epoch
    }
    const now = this.#options.log.epochNow(shard)
    return now instanceof Promise ? now.then(judge) : judge(now)
  }

  mayServe(): boolean {
    return true
  }

  servedMs(): number {
    return this.#options.clock.monotonicMs()
  }

  admits(): boolean {
    return true
  }

  hear(): void {
    // There is nobody to say anything.
  }

  others(): readonly string[] {
    return []
  }

  steppedDown(shard: number, why: string): void {
    this.#options.onLost(shard, why)
  }

  /** The embedded log raises the epoch itself when it is claimed. */
  async reclaim(): Promise<Tenure | null> {
    return null
  }

  async leave(): Promise<void> {
    // Nobody is there to take over.
  }

  stop(): void {
    // Nothing of its own is under way.
  }

  overview(): Overview {
    const { member, incarnation, address, version } = this.#options
    const shards = [...this.#host.tenures()].map(({ number, epoch }) => {
      return { shard: number, epoch, owner: member }
    })
    const row = { member, incarnation, state: 'up' as const, beat: 0, address, version }
    return { members: [row], shards, moves: [] }
  }
}
