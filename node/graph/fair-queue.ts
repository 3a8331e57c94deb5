// Work that waits, by who asked for it: the identities take turns, and of one identity its
// sessions, so that who asks for much waits behind nobody but themselves. Where there is no room
// the newest of whoever has most waiting has to go (as in fair queuing with longest-queue drop). It
// stands between the graph's requests and what runs them. Source: PROTOCOL 3.10.

import { RequestError } from '../../protocol/errors.ts'
import { LIMITS } from '../../config/limits.ts'

/** Who asks. */
export interface Caller {
  readonly identity: string
  /** One of the identity's sessions. */
  readonly session: string
}

export interface QueueBounds {
  /** Of all callers together. */
  readonly max: number
  /** Of one identity. */
  readonly identityMax: number
}

export const GRAPH_QUEUE: QueueBounds = {
  max: LIMITS.graphQueueMax,
  identityMax: LIMITS.graphQueueOfIdentityMax,
}

/** What one identity has waiting: by session, the one whose turn is next first. */
interface Line<T> {
  size: number
  readonly sessions: Map<string, T[]>
}

export class FairQueue<T> {
  readonly #bounds: QueueBounds
  /** By identity, the one whose turn is next first. */
  readonly #lines = new Map<string, Line<T>>()
  #size = 0

  constructor(bounds: QueueBounds) {
    this.#bounds = bounds
  }

  get size(): number {
    return this.#size
  }

  /**
   * Puts it at the end of its session's line. Returns what there is no room for any more: null,
   * itself, or the newest of the longest line.
   */
  push(caller: Caller, item: T): T | null {
    const { max, identityMax } = this.#bounds
    const own = this.#lines.get(caller.identity)
    const ownSize = own?.size ?? 0
    let from: string | null = null
    if (ownSize >= identityMax) from = caller.identity
    else if (this.#size >= max) from = this.#longest(caller.identity)
    const dropped = from === null ? null : this.#dropNewest(from, caller)
    if (from !== null && dropped === null) return item
    this.#add(caller, item)
    return dropped
  }

  /** Whose turn it is, of those who may have one now; null: nobody. */
  take(mayGo: (caller: Caller) => boolean = () => true): T | null {
    for (const [identity, line] of this.#lines) {
      for (const [session, items] of line.sessions) {
        if (!mayGo({ identity, session })) continue
        const item = items.shift()!
        // To the end of both rounds.
        line.sessions.delete(session)
        if (items.length > 0) line.sessions.set(session, items)
        this.#lines.delete(identity)
        if (--line.size > 0) this.#lines.set(identity, line)
        this.#size--
        return item
      }
    }
    return null
  }

  /** Takes out all that waits. */
  clear(): T[] {
    const all = [...this.#lines.values()].flatMap(({ sessions }) => [...sessions.values()].flat())
    this.#lines.clear()
    this.#size = 0
    return all
  }

  #add({ identity, session }: Caller, item: T): void {
    let line = this.#lines.get(identity)
    if (line === undefined) this.#lines.set(identity, (line = { size: 0, sessions: new Map() }))
    const items = line.sessions.get(session)
    if (items === undefined) line.sessions.set(session, [item])
    else items.push(item)
    line.size++
    this.#size++
  }

  /** The identity with most waiting; the one who asks, if it would have as much with one more. */
  #longest(asking: string): string {
    let [longest, size] = [asking, (this.#lines.get(asking)?.size ?? 0) + 1]
    for (const [identity, line] of this.#lines) {
      if (line.size > size) [longest, size] = [identity, line.size]
    }
    return longest
  }

  /** Null: the newcomer itself is of the longest line. */
  #dropNewest(identity: string, newcomer: Caller): T | null {
    const line = this.#lines.get(identity)
    if (line === undefined) return null
    const isOwn = identity === newcomer.identity
    const own = isOwn ? (line.sessions.get(newcomer.session)?.length ?? 0) : 0
    let [longest, size] = ['', own]
    for (const [session, items] of line.sessions) {
      if (items.length > size) [longest, size] = [session, items.length]
    }
    // With one more the newcomer would have as much: then nobody gains by it.
    if (isOwn && size <= own + 1) return null
    const items = line.sessions.get(longest)!
    const item = items.pop()!
    if (items.length === 0) line.sessions.delete(longest)
    if (--line.size === 0) this.#lines.delete(identity)
    this.#size--
    return item
  }
}

/** What a caller is told for whom there is no room in the queue. */
export function noRoom(waiting: number): RequestError {
  return new RequestError(
    'TOO_BUSY',
    `too many graph requests are waiting already (${waiting} of all callers, yours among those ` +
      'of whoever has most); nothing was done: try again in a moment, with fewer at once',
  )
}

/** What a caller is told whose time was over before its turn. */
export function neverRun(): RequestError {
  return new RequestError(
    'UNAVAILABLE',
    'the query waited for others until its time was over; it was not run',
  )
}
