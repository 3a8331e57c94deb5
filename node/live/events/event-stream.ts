// The stream of events of the whole platform inside a process: who subscribes to a topic is told of
// what happens there, on whichever member it was committed. Best effort, and nothing comes again.
// A commit costs the topics that it touches, not all that are watched. Source: CONTRACT 1.10,
// PROTOCOL 3.18.

import type { SystemView } from '../../../cluster/actor-system.ts'
import type { Clock } from '../../../cluster/clock.ts'
import type { FeedWatch, WatchedStream } from '../../../cluster/feed/watch/feed-watch.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { matcherOf } from './entry-events.ts'
import type { EventInterest } from './entry-events.ts'
import { pathsAbove } from './topic.ts'
import type { PlatformEvent, Topic } from './topic.ts'

/** Who takes events; one of it may have many subscriptions. */
export interface EventTaker {
  /** `ids`: its subscriptions that the event belongs to. */
  take(event: PlatformEvent, ids: readonly string[]): void
}

export interface EventStreamOptions {
  readonly watch: Pick<FeedWatch, 'add' | 'want'>
  readonly system: SystemView
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly clock: Clock
}

/** Of one taker at one path: ids of subscriptions, each with its events. */
type Subscribed = Map<string, ReadonlySet<string>>

const STREAM = 'events'

export class EventStream implements WatchedStream {
  readonly name = STREAM
  /** Since the start. */
  readonly counts = { events: 0, gaps: 0 }
  readonly #options: EventStreamOptions
  readonly #byPath = new Map<string, Map<EventTaker, Subscribed>>()
  readonly #unfollow: () => void
  readonly #wanted = new WantedActors()
  #told = JSON.stringify(null)
  #known: Promise<void> = Promise.resolve()
  #telling: Promise<void> | null = null
  /** Number of the last interest, and of that by which the last subscriber was answered. */
  #number = 0
  #answered = 0

  constructor(options: EventStreamOptions) {
    this.#options = options
    options.watch.add(this)
    this.#unfollow = options.system.onChange('registry', (key, entry) =>
      this.#registryChanged(key, entry?.version ?? null),
    )
  }

  stop(): void {
    this.#unfollow()
  }

  /** Paths that are watched. */
  get size(): number {
    return this.#byPath.size
  }

  /**
   * Subscribes under ids that the taker has not in use. Resolves once all members know: what is
   * committed from then on is told.
   */
  subscribe(taker: EventTaker, topics: ReadonlyMap<string, Topic>): Promise<void> {
    for (const [id, { path, events }] of topics) {
      let takers = this.#byPath.get(path)
      if (takers === undefined) {
        takers = new Map()
        this.#byPath.set(path, takers)
        this.#wanted.add(path)
      }
      const own = takers.get(taker) ?? new Map<string, ReadonlySet<string>>()
      takers.set(taker, own.set(id, new Set(events)))
    }
    return this.#tell()
  }

  unsubscribe(taker: EventTaker, topics: ReadonlyMap<string, Topic>): void {
    for (const [id, { path }] of topics) {
      const takers = this.#byPath.get(path)
      const own = takers?.get(taker)
      own?.delete(id)
      if (own?.size === 0) takers!.delete(taker)
      if (takers?.size === 0) {
        this.#byPath.delete(path)
        this.#wanted.delete(path)
      }
    }
    void this.#tell()
  }

  // --- what happens -----------------------------------------------------------------------

  matcher(interest: unknown): ReturnType<typeof matcherOf> {
    return matcherOf(interest, this.#options.behaviours)
  }

  take({ items, number }: Parameters<WatchedStream['take']>[0]): void {
    // Its owner had not heard yet of a path that a subscriber counts on.
    if (number < this.#answered) this.counts.gaps++
    for (const [, value] of items) this.publish(value as PlatformEvent)
  }

  /** Tells whoever has subscribed to a topic of the event. */
  publish(event: PlatformEvent): void {
    this.counts.events++
    let idsOf: Map<EventTaker, string[]> | null = null
    for (const path of pathsAbove(event.path)) {
      for (const [taker, own] of this.#byPath.get(path) ?? []) {
        for (const [id, events] of own) {
          if (!events.has(event.eventType)) continue
          idsOf ??= new Map()
          const ids = idsOf.get(taker)
          if (ids === undefined) idsOf.set(taker, [id])
          else ids.push(id)
        }
      }
    }
    for (const [taker, ids] of idsOf ?? []) taker.take(event, ids)
  }

  /** Every member follows the registry by itself. */
  #registryChanged(key: string, version: number | null): void {
    if (this.#byPath.size === 0) return
    const timestamp = new Date(this.#options.clock.nowMs()).toISOString()
    const path = `registry/${key}`
    const data = { path: `/resources/${path}`, key, timestamp }
    this.publish(
      version === null
        ? { path, root: 'registry', eventType: 'deleted', data, timestamp }
        : { path, root: 'registry', eventType: 'changed', data: { ...data, version }, timestamp },
    )
  }

  /** Tells members what is wanted of their shards, what changes together at once. */
  #tell(): Promise<void> {
    this.#telling ??= new Promise((resolve) => {
      this.#options.clock.after(LIMITS.feed.watchGatherMs, () => {
        this.#telling = null
        resolve(this.#tellNow())
      })
    })
    return this.#telling
  }

  #tellNow(): Promise<void> {
    const interest = this.#wanted.interest
    const text = JSON.stringify(interest)
    if (text !== this.#told) {
      this.#told = text
      const number = ++this.#number
      this.#known = this.#options.watch.want(STREAM, interest).then(() => {
        this.#answered = Math.max(number, this.#answered)
      })
    }
    return this.#known
  }
}

/** The paths of actors that are watched, as other members are asked for them. */
class WantedActors {
  readonly #paths = new Set<string>()
  /** How many of them are of each type, or of all. */
  readonly #types = new Map<string, number>()

  add(path: string): void {
    if (!isOfActors(path)) return
    this.#paths.add(path)
    this.#types.set(typeIn(path), (this.#types.get(typeIn(path)) ?? 0) + 1)
  }

  delete(path: string): void {
    if (!this.#paths.delete(path)) return
    const left = this.#types.get(typeIn(path))! - 1
    if (left === 0) this.#types.delete(typeIn(path))
    else this.#types.set(typeIn(path), left)
  }

  /** Past the bound their whole types, sorted out here; null: none. */
  get interest(): EventInterest | null {
    if (this.#paths.size === 0) return null
    const isMany = this.#paths.size > LIMITS.live.watchedPathsMax
    return { paths: [...(isMany ? this.#types.keys() : this.#paths)].sort() }
  }
}

function isOfActors(path: string): boolean {
  return path === 'actors' || path.startsWith('actors/')
}

function typeIn(path: string): string {
  return path.split('/').slice(0, 2).join('/')
}
