// All followers of one member, beside its index: they gain and lose shards with the member, and
// share what has just been committed, so that the log is not read again for each. Source: PROTOCOL
// 3.13.9.

import { assert } from '../../protocol/errors.ts'
import { LIMITS } from '../../config/limits.ts'
import type { DerivedReader, LogReader } from '../../storage/journal.ts'
import type { Clock } from '../clock.ts'
import type { CommittedEntry } from '../committed-entry.ts'
import { LogFollower, type LogFollowerOptions } from './log-follower.ts'
import { RecentRows } from './recent-rows.ts'

/** Entries that were committed together. */
export interface CommittedGroup {
  /** Offset of the first of them. */
  readonly first: number
  readonly entries: readonly CommittedEntry[]
  /** As it stands in the log. */
  readonly body: Uint8Array
}

export interface LogFollowersOptions {
  readonly log: Pick<LogReader, 'read'>
  readonly derived: Pick<DerivedReader, 'consumer'>
  readonly clock: Pick<Clock, 'after' | 'defer'>
}

export class LogFollowers {
  readonly #options: LogFollowersOptions
  readonly #recent: RecentRows
  readonly #heads = new Map<number, number>()
  readonly #followers = new Set<LogFollower>()

  constructor(options: LogFollowersOptions) {
    this.#options = options
    this.#recent = new RecentRows(options.log, LIMITS.feed.followersRowsBytesMax)
  }

  /**
   * Begins one, of the shards that the member has now and will have. It ends with `end`, or with
   * the member. At most LIMITS.feed.followersMax.
   */
  begin(
    options: Pick<
      LogFollowerOptions,
      'take' | 'offsets' | 'park' | 'onGap' | 'onFailure' | 'takesFresh'
    >,
  ): LogFollower {
    assert(this.#followers.size < LIMITS.feed.followersMax, 'followers of the feed are ended')
    const { derived, clock } = this.#options
    const follower = new LogFollower({
      ...options,
      derived,
      log: this.#recent,
      after: (ms, run) => clock.after(ms, run),
      defer: (run) => clock.defer(run),
    })
    this.#followers.add(follower)
    for (const [shard, head] of this.#heads) follower.gained(shard, head)
    return follower
  }

  async end(follower: LogFollower): Promise<void> {
    this.#followers.delete(follower)
    await follower.stop()
  }

  /** The shard is served here from now; its log is committed up to `head`. */
  gained(shard: number, head: number): void {
    this.#recent.forget(shard)
    this.#heads.set(shard, head)
    for (const follower of this.#followers) follower.gained(shard, head)
  }

  lost(shard: number): void {
    this.#recent.forget(shard)
    this.#heads.delete(shard)
    for (const follower of this.#followers) follower.lost(shard)
  }

  /** A group of an own shard, in order, at once. */
  committed(shard: number, { first, entries, body }: CommittedGroup): void {
    if (!this.#heads.has(shard)) return
    const count = entries.length
    this.#heads.set(shard, first + count - 1)
    if (this.#followers.size === 0) return
    this.#recent.add(shard, { first, count, body })
    for (const follower of this.#followers) follower.committed(shard, first, entries)
  }

  /** The shard's log may be trimmed up to here for all that they need of it (PROTOCOL 3.12). */
  doneWith(shard: number): number {
    return Math.min(...Array.from(this.#followers, (follower) => follower.doneWith(shard)))
  }

  /** Ends all, behind the entries that are being taken. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#followers, (follower) => this.end(follower)))
  }
}
