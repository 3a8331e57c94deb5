// The committer: takes the groups of shards that have something to commit and appends them, few
// appends in flight at once. While one is in flight the next groups fill, so under load an append
// carries hundreds of entries and at rest one entry goes at once (ARCHITECTURE 2). Embedded, one
// append merges the groups of all shards; on a server each shard's group goes alone, the shard that
// waits longest first.

import type { AppendOutcome, Group, LogStore } from '../../../storage/journal.ts'
import type { Clock } from '../../clock.ts'

/** A shard as the committer sees it. */
export interface Committing {
  /** Closes the open group and hands it out; null when there is nothing (any more). */
  takeGroup(): Group | null
  /** What became of it. The shard says itself when it is ready again. */
  onOutcome(outcome: AppendOutcome): void
  /** Lets out the answers that the outcome has freed. */
  release(): void
}

export interface CommitStats {
  commits: number
  groups: number
  entries: number
  bytes: number
  /** Sum of the times between sending an append and its outcome, milliseconds. */
  appendMs: number
  throttledMs: number
}

export interface CommitterOptions {
  readonly log: LogStore
  readonly clock: Clock
  /** How long the next append should wait because consumers are behind, milliseconds. */
  readonly throttleMs: () => number
  /** An append that threw: a mistake of ours or a store that is gone. */
  readonly onError: (error: unknown) => void
}

export class Committer {
  readonly stats: CommitStats = {
    commits: 0,
    groups: 0,
    entries: 0,
    bytes: 0,
    appendMs: 0,
    throttledMs: 0,
  }
  readonly #options: CommitterOptions
  /** Shards with an open group, the longest waiting first. */
  readonly #ready = new Set<Committing>()
  #inFlight = 0
  #scheduled = false

  constructor(options: CommitterOptions) {
    this.#options = options
  }

  /** Called by a shard whose open group has become non-empty and which has none in flight. */
  ready(shard: Committing): void {
    this.#ready.add(shard)
    this.#schedule()
  }

  /** Forgets a shard that stopped. */
  forget(shard: Committing): void {
    this.#ready.delete(shard)
  }

  get idle(): boolean {
    return this.#inFlight === 0 && this.#ready.size === 0
  }

  /** Waits for all that arrives in this tick, so that it goes together. */
  #schedule(): void {
    if (this.#scheduled || this.#inFlight >= this.#options.log.appendsMax) return
    if (!this.#throttled()) {
      this.#scheduled = true
      this.#options.clock.defer(this.#pump)
    }
  }

  /** An append has ended and others wait already: no need to wait for more. */
  #next(): void {
    if (!this.#scheduled && !this.#throttled()) this.#pump()
  }

  #throttled(): boolean {
    const wait = this.#options.throttleMs()
    if (wait <= 0) return false
    this.#scheduled = true
    this.stats.throttledMs += wait
    this.#options.clock.after(wait, this.#pump)
    return true
  }

  readonly #pump = (): void => {
    this.#scheduled = false
    const { log } = this.#options
    while (this.#inFlight < log.appendsMax && this.#ready.size > 0) {
      const shards: Committing[] = []
      const groups: Group[] = []
      for (const shard of this.#ready) {
        this.#ready.delete(shard)
        const group = shard.takeGroup()
        if (group === null) continue
        shards.push(shard)
        groups.push(group)
        if (groups.length >= log.groupsMax) break
      }
      if (groups.length > 0) this.#append(shards, groups)
    }
  }

  #append(shards: readonly Committing[], groups: readonly Group[]): void {
    this.#inFlight++
    const began = this.#options.clock.monotonicMs()
    this.#options.log.append(groups).then(
      (outcomes) => {
        this.stats.commits++
        this.stats.appendMs += this.#options.clock.monotonicMs() - began
        for (let i = 0; i < groups.length; i++) {
          if (outcomes[i] !== 'committed') continue
          this.stats.groups++
          this.stats.entries += groups[i]!.count
          this.stats.bytes += groups[i]!.body.length
        }
        this.#ended(shards, (i) => outcomes[i]!)
      },
      (error: unknown) => {
        this.#options.onError(error)
        this.#ended(shards, () => 'unknown')
      },
    )
  }

  #ended(shards: readonly Committing[], outcome: (i: number) => AppendOutcome): void {
    this.#inFlight--
    for (let i = 0; i < shards.length; i++) shards[i]!.onOutcome(outcome(i))
    // The next append goes first: the store works while the answers of this one are written.
    if (this.#ready.size > 0) this.#next()
    for (const shard of shards) shard.release()
  }
}
