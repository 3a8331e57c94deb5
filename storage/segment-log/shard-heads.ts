// What each shard of the log is at: epoch, head, last commit. It stands between the frames (read
// back or about to be written) and the fence: a part that doesn't go on from here is not taken.

import type { Group, ShardStatus } from '../journal.ts'
import type { Claim } from './frame.ts'

const NEW_SHARD: ShardStatus = { epoch: 0, head: 0, lastCommit: null }

export class ShardHeads {
  readonly #shards: Map<number, ShardStatus>

  constructor(shards: Iterable<readonly [number, ShardStatus]> = []) {
    this.#shards = new Map(shards)
  }

  status(shard: number): ShardStatus {
    return this.#shards.get(shard) ?? NEW_SHARD
  }

  entries(): [number, ShardStatus][] {
    return [...this.#shards]
  }

  /** False, and nothing is changed, when it doesn't go on from what is here. */
  take(part: Claim | Omit<Group, 'body'>): boolean {
    const { shard, epoch } = part
    const now = this.status(shard)
    if ('commitId' in part) {
      if (epoch !== now.epoch || part.head !== now.head) return false
      const { head, count, commitId } = part
      this.#shards.set(shard, { epoch, head: head + count, lastCommit: commitId })
      return true
    }
    if (epoch <= now.epoch) return false
    this.#shards.set(shard, { ...now, epoch })
    return true
  }
}
