// Watching the feed of all members: each tells the others what it wants to hear of their shards,
// and sends them what they want of its own. Best effort on the wire, but nothing is lost unseen:
// every part says from which offset to which it covers its shard. Source: PROTOCOL 3.18.

import { LIMITS } from '../../../config/limits.ts'
import type { Log } from '../../../protocol/log.ts'
import type { Maybe } from '../../../storage/journal.ts'
import type { Clock } from '../../clock.ts'
import type { FeedEntry, LogFollower } from '../log-follower.ts'
import type { LogFollowers } from '../log-followers.ts'
import { Coverage } from './coverage.ts'
import type { Covered } from './coverage.ts'
import { Outgoing } from './outgoing.ts'
import type { FedNotice, WatchNotice } from './watch-notices.ts'

/** What of an entry is for whoever has this interest; empty: nothing. */
export type Matcher = (taken: FeedEntry) => Maybe<readonly unknown[]>

/** One use of watching, by its name on the wire. */
export interface WatchedStream {
  readonly name: string
  /** Reads an interest, which may be another member's; null: this member knows nothing like it. */
  matcher(interest: unknown): Matcher | null
  take(covered: Covered): void
}

/** What watching has of its member. */
export interface WatchWire {
  /** Incarnations of the other members that live. */
  others(): readonly string[]
  tell(to: readonly string[], notice: WatchNotice | FedNotice): void
}

export interface FeedWatchOptions {
  readonly wire: WatchWire
  readonly followers: Pick<LogFollowers, 'begin' | 'end'>
  readonly clock: Clock
  readonly log: Log
}

/** Since the start. */
export interface WatchCounts {
  /** Items for watchers, and those that had no room on their way. */
  items: number
  dropped: number
  /** Parts before which something was lost. */
  gaps: number
}

/** Somebody who watches this member's shards: another member, or this one itself (`''`). */
interface Watcher {
  readonly to: string
  readonly stream: string
  number: number
  matches: Matcher
  untilMs: number
  readonly outgoing: Outgoing
}

/** What this member itself wants of a stream. */
interface Wanted {
  readonly stream: WatchedStream
  readonly coverage: Coverage
  number: number
  interest: unknown
  /** Who has not said yet that it goes by the newest interest. */
  readonly lacking: Set<string>
  readonly waiting: Set<() => void>
}

const OWN = ''

export class FeedWatch {
  readonly counts: WatchCounts = { items: 0, dropped: 0, gaps: 0 }
  readonly #options: FeedWatchOptions
  readonly #wanted = new Map<string, Wanted>()
  readonly #watchers = new Map<string, Watcher>()
  #follower: LogFollower | null = null
  #isFlushDue = false
  #cancelTick: () => void
  #isStopped = false

  constructor(options: FeedWatchOptions) {
    this.#options = options
    this.#cancelTick = this.#nextTick()
  }

  add(stream: WatchedStream): void {
    this.#wanted.set(stream.name, {
      stream,
      coverage: new Coverage(),
      number: 0,
      interest: null,
      lacking: new Set(),
      waiting: new Set(),
    })
  }

  /**
   * What this member wants of a stream from now on; null: nothing. Resolves once every member that
   * lives goes by it, at the latest after LIMITS.feed.watchKnownMs.
   */
  want(name: string, interest: unknown): Promise<void> {
    const wanted = this.#wanted.get(name)!
    wanted.interest = interest
    wanted.number++
    wanted.lacking.clear()
    if (interest === null) wanted.coverage.clear()
    this.#watch(OWN, { kind: 'watch', stream: name, number: wanted.number, interest })
    const others = this.#options.wire.others()
    if (interest !== null) for (const one of others) wanted.lacking.add(one)
    this.#tell(others, wanted)
    return this.#known(wanted)
  }

  /** How far a stream has heard of a shard. */
  covered(name: string, shard: number): ReturnType<Coverage['of']> {
    return this.#wanted.get(name)!.coverage.of(shard)
  }

  /** From another member. What it may be is judged: its version may be another. */
  hear(notice: WatchNotice | FedNotice, from: string): void {
    if (this.#isStopped || !this.#wanted.has(notice.stream)) return
    if (notice.kind === 'watch') this.#watch(from, notice)
    else this.#fed(notice, from)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelTick()
    this.#watchers.clear()
    await this.#follow()
  }

  // --- as a watcher -----------------------------------------------------------------------

  #tell(to: readonly string[], { stream, number, interest }: Wanted): void {
    if (to.length === 0) return
    this.#options.wire.tell(to, { kind: 'watch', stream: stream.name, number, interest })
  }

  #known(wanted: Wanted): Promise<void> {
    if (wanted.lacking.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const known = (): void => {
        cancel()
        wanted.waiting.delete(known)
        resolve()
      }
      const cancel = this.#options.clock.after(LIMITS.feed.watchKnownMs, known)
      wanted.waiting.add(known)
    })
  }

  #fed({ stream, number, parts }: FedNotice, from: string): void {
    const wanted = this.#wanted.get(stream)!
    if (wanted.interest === null) return
    for (const part of parts) {
      const covered = wanted.coverage.take(part, number, this.#options.clock.monotonicMs())
      if (covered === null) continue
      if (covered.gap) this.counts.gaps++
      wanted.stream.take(covered)
    }
    if (number < wanted.number || !wanted.lacking.delete(from)) return
    if (wanted.lacking.size === 0) for (const known of [...wanted.waiting]) known()
  }

  // --- as an owner ------------------------------------------------------------------------

  #watch(from: string, { stream, number, interest }: WatchNotice): void {
    const key = `${stream} ${from}`
    const known = this.#watchers.get(key)
    // An older word that came late.
    if (known !== undefined && number < known.number) return
    if (interest === null) this.#watchers.delete(key)
    else this.#admit(key, { to: from, stream, number, interest })
    void this.#follow()
    const watcher = this.#watchers.get(key)
    if (watcher !== undefined) this.#send(watcher, true)
  }

  #admit(
    key: string,
    said: { to: string; stream: string; number: number; interest: unknown },
  ): void {
    const { to, stream, number, interest } = said
    const untilMs = this.#options.clock.monotonicMs() + LIMITS.feed.watchLeaseMs
    const known = this.#watchers.get(key)
    if (known !== undefined && known.number === number) {
      known.untilMs = untilMs
      return
    }
    const matches = this.#wanted.get(stream)!.stream.matcher(interest)
    if (matches === null || (!known && this.#watchers.size >= LIMITS.feed.watchersMax)) return
    if (known === undefined) {
      const outgoing = new Outgoing(to === OWN)
      this.#watchers.set(key, { to, stream, number, matches, untilMs, outgoing })
      return
    }
    // What was matched by the former interest leaves under its number.
    this.#send(known, false)
    Object.assign(known, { number, matches, untilMs })
  }

  /** The log is followed as long as anybody watches. */
  async #follow(): Promise<void> {
    const { followers, log } = this.#options
    if (this.#watchers.size > 0 && this.#follower === null) {
      this.#follower = followers.begin({
        take: (taken) => this.#take(taken),
        offsets: null,
        takesFresh: true,
        park: ({ shard, offset }, reason) =>
          log.error({ shard, offset, reason }, 'an entry could not be shown to who watches'),
        onGap: ({ shard, trimmedTo }) => this.#skipped(shard, trimmedTo),
        onFailure: (err) => log.warn({ err }, 'the feed could not be read for who watches'),
      })
    } else if (this.#watchers.size === 0 && this.#follower !== null) {
      const follower = this.#follower
      this.#follower = null
      await followers.end(follower)
    }
  }

  /** Each watcher gets it once: one that fails has all tried again before any has it. */
  #take(taken: FeedEntry): Maybe<void> {
    const found: [Watcher, Matcher, Maybe<readonly unknown[]>][] = []
    for (const watcher of this.#watchers.values()) {
      found.push([watcher, watcher.matches, watcher.matches(taken)])
    }
    if (found.every(([, , values]) => !(values instanceof Promise))) {
      for (const [watcher, , values] of found) this.#give(watcher, taken, values as unknown[])
      return
    }
    return this.#giveLater(taken, found)
  }

  async #giveLater(
    taken: FeedEntry,
    found: readonly [Watcher, Matcher, Maybe<readonly unknown[]>][],
  ): Promise<void> {
    const values = await Promise.all(found.map(([, , each]) => Promise.resolve(each)))
    for (const [i, [watcher, matches]] of found.entries()) {
      // Who wants something else meanwhile is told of a gap: what it wants of this was not asked.
      if (watcher.matches === matches) this.#give(watcher, taken, values[i]!)
    }
  }

  #give(watcher: Watcher, taken: FeedEntry, values: readonly unknown[]): void {
    this.#cover(watcher, taken.shard, taken.offset - 1)
    const dropped = watcher.outgoing.add(taken, values)
    if (values.length === 0) return
    this.counts.items += values.length
    this.counts.dropped += dropped
    if (watcher.outgoing.isFull) this.#send(watcher, false)
    else this.#flushSoon()
  }

  #skipped(shard: number, offset: number): void {
    for (const watcher of this.#watchers.values()) this.#cover(watcher, shard, offset)
  }

  #cover(watcher: Watcher, shard: number, offset: number): void {
    if (watcher.outgoing.leaps(shard, offset)) this.#send(watcher, false)
    watcher.outgoing.cover(shard, offset)
  }

  #flushSoon(): void {
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    this.#options.clock.after(LIMITS.feed.watchGatherMs, () => {
      this.#isFlushDue = false
      for (const watcher of this.#watchers.values()) this.#send(watcher, false)
    })
  }

  /** `all`: also shards that have nothing, so that the watcher knows how far it has heard. */
  #send(watcher: Watcher, all: boolean): void {
    if (all) this.#coverAll(watcher)
    const { to, stream, number, outgoing } = watcher
    const parts = outgoing.take(all)
    if (parts.length === 0 && !all) return
    const notice: FedNotice = { kind: 'fed', stream, number, parts }
    if (to === OWN) this.#fed(notice, OWN)
    else this.#options.wire.tell([to], notice)
  }

  #coverAll(watcher: Watcher): void {
    const follower = this.#follower
    if (follower === null) return
    for (const [shard, offset] of follower.positions()) this.#cover(watcher, shard, offset)
    watcher.outgoing.keep((shard) => follower.offset(shard) !== null)
  }

  // --- time -------------------------------------------------------------------------------

  #nextTick(): () => void {
    return this.#options.clock.after(LIMITS.feed.watchEveryMs, () => this.#tick())
  }

  /** Interests are told again, as leases; watchers hear how far they have heard; the gone go. */
  #tick(): void {
    const nowMs = this.#options.clock.monotonicMs()
    for (const [key, watcher] of this.#watchers) {
      if (watcher.to === OWN || watcher.untilMs > nowMs) this.#send(watcher, true)
      else this.#watchers.delete(key)
    }
    void this.#follow()
    const others = this.#options.wire.others()
    for (const wanted of this.#wanted.values()) {
      if (wanted.interest !== null) this.#tell(others, wanted)
    }
    this.#cancelTick = this.#nextTick()
  }
}
