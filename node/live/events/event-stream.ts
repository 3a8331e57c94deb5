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
  readonly counts = { events: 0 }
  readonly #options: EventStreamOptions
  readonly #byPath = new Map<string, Map<EventTaker, Subscribed>>()
  readonly #unfollow: () => void
  #wanted = ''
  #known: Promise<void> = Promise.resolve()

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
   * Subscribes under an id that the taker has not in use. Resolves once all members know: what is
   * committed from then on is told.
   */
  subscribe(taker: EventTaker, id: string, { path, events }: Topic): Promise<void> {
    const takers = this.#byPath.get(path) ?? new Map<EventTaker, Subscribed>()
    this.#byPath.set(path, takers)
    const own = takers.get(taker) ?? new Map<string, ReadonlySet<string>>()
    takers.set(taker, own.set(id, new Set(events)))
    return this.#want()
  }

  unsubscribe(taker: EventTaker, id: string, { path }: Topic): void {
    const takers = this.#byPath.get(path)
    const own = takers?.get(taker)
    own?.delete(id)
    if (own?.size === 0) takers!.delete(taker)
    if (takers?.size === 0) this.#byPath.delete(path)
    void this.#want()
  }

  // --- what happens -----------------------------------------------------------------------

  matcher(interest: unknown): ReturnType<typeof matcherOf> {
    return matcherOf(interest, this.#options.behaviours)
  }

  take({ items }: Parameters<WatchedStream['take']>[0]): void {
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

  /** Tells members what is wanted of their shards, if that is another than before. */
  #want(): Promise<void> {
    const paths = this.#actorPaths()
    const interest: EventInterest | null = paths.length === 0 ? null : { paths }
    const text = JSON.stringify(interest)
    if (text === this.#wanted) return this.#known
    this.#wanted = text
    this.#known = this.#options.watch.want(STREAM, interest)
    return this.#known
  }

  /** Past the bound of single actors all of their types are asked for, and sorted out here. */
  #actorPaths(): readonly string[] {
    const paths = [...this.#byPath.keys()].filter((path) => /^actors(\/|$)/.test(path))
    if (paths.length <= LIMITS.live.watchedPathsMax) return paths.sort()
    return [...new Set(paths.map((path) => path.split('/').slice(0, 2).join('/')))].sort()
  }
}
