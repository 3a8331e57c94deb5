// What each shard of the log is at: epoch, head, last commit. A part that doesn't go on from here
// is not taken.

import type { Group, ShardStatus } from '../journal.ts'
import type { Claim } from './frame.ts'

const NEW_SHARD: ShardStatus = { epoch: 0, head: 0, lastCommit: null }

export class ShardHeads {
  readonly #shards: Map<number, ShardStatus>
  /** What is taken but may still be given back. */
  readonly #taken = new Map<number, ShardStatus>()
  readonly #resumed = new Set<number>()
  /** Claims may be among what was given up. */
  #hasPassedGap = false

  constructor(shards: Iterable<readonly [number, ShardStatus]> = []) {
    this.#shards = new Map(shards)
  }

  /** Where the shard is, without what is only tried. */
  status(shard: number): ShardStatus {
    return this.#shards.get(shard) ?? NEW_SHARD
  }

  entries(): [number, ShardStatus][] {
    return [...this.#shards]
  }

  /** False, and nothing is changed, when it doesn't go on from what is here. */
  take(part: Claim | Omit<Group, 'body'>): boolean {
    const isTaken = this.try(part)
    this.keep()
    return isTaken
  }

  /** The same, to be kept or given back with all that was tried since. */
  try(part: Claim | Omit<Group, 'body'>): boolean {
    const { shard, epoch } = part
    const now = this.#taken.get(shard) ?? this.status(shard)
    if ('commitId' in part) {
      const isCurrent = epoch === now.epoch || (this.#hasPassedGap && epoch > now.epoch)
      if (!isCurrent || part.head !== now.head) return false
      const { head, count, commitId } = part
      this.#taken.set(shard, { epoch, head: head + count, lastCommit: commitId })
      return true
    }
    if (epoch <= now.epoch) return false
    this.#taken.set(shard, { ...now, epoch })
    return true
  }

  /**
   * Goes on behind what was given up. Any shard may have been claimed there: from here on a group
   * of a higher epoch shows that.
   */
  pass(resumed: readonly (readonly [shard: number, head: number])[]): void {
    this.#hasPassedGap = true
    for (const [shard, head] of resumed) this.resume(shard, head)
  }

  /** Goes on behind `head`: what the shard had in between was given up. */
  resume(shard: number, head: number): void {
    this.#shards.set(shard, { ...this.status(shard), head, lastCommit: null })
    this.#resumed.add(shard)
  }

  /** True for what belongs to a time that the shard has given up; its epoch counts all the same. */
  isGivenUp(part: Claim | Omit<Group, 'body'>): boolean {
    const { shard, epoch } = part
    const now = this.status(shard)
    if (!this.#resumed.has(shard) || !('head' in part) || part.head >= now.head) return false
    if (epoch > now.epoch) this.#shards.set(shard, { ...now, epoch })
    return true
  }

  keep(): void {
    for (const [shard, status] of this.#taken) this.#shards.set(shard, status)
    this.#taken.clear()
  }

  giveBack(): void {
    this.#taken.clear()
  }
}
