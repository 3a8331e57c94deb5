// Sockets that watch live queries while a load changes what they watch. A change carries a stamp:
// the time of this process at which its request was due. A frame that shows it gives the time from
// the change to the frame, on one clock, the commit included.

import { setTimeout as delay } from 'node:timers/promises'
import type { Recorder } from './recorder.ts'
import type { Destination } from './requests.ts'
import { WebSocketClient } from './web-socket.ts'

/** The dynamic field of an order that holds the stamp: a number of microseconds. */
export const STAMP = 'stamp'

const STAMP_BEGINS = Buffer.from(`"${STAMP}":`)
const PING = '{"type":"ping"'
const SHORT_BYTES = 40
const ASK_MS_MAX = 60_000
const POLL_MS = 10
const AGAIN_MS = 200
const BUSY: ReadonlySet<string> = new Set(['TOO_BUSY', 'UNAVAILABLE', 'INDEX_BEHIND'])
const ID = 'q'
/** So many sockets are opened together: the node takes so many strangers. */
const OPENED_TOGETHER = 100

/** One live query as `createLiveQuery` takes it. */
export type LiveQuery = Readonly<Record<string, unknown>>

/** One socket, and the newest stamp that it has been shown. */
class Watcher {
  newestUs = 0
  readonly #socket: WebSocketClient
  readonly #recorder: Recorder
  #queries: readonly LiveQuery[] = []
  #answers = 0
  #fault: string | null = null

  constructor(to: Destination, recorder: Recorder) {
    this.#recorder = recorder
    this.#socket = new WebSocketClient(to, {
      frame: (payload) => this.#frame(payload),
      gone: (why) => this.#fail(`a watcher is gone: ${why}`),
    })
  }

  /** Says who it is and asks; resolves when all has been answered. */
  async ask(token: string, queries: readonly LiveQuery[]): Promise<void> {
    await this.#socket.opened()
    this.#socket.send({ type: 'auth', token })
    this.#queries = queries
    for (const i of queries.keys()) this.#create(i)
    const until = performance.now() + ASK_MS_MAX
    while (this.#answers < 1 + queries.length && this.#fault === null) {
      if (performance.now() > until) throw new Error('live queries are not answered in time')
      await delay(POLL_MS)
    }
    if (this.#fault !== null) throw new Error(this.#fault)
  }

  close(): void {
    this.#socket.close()
  }

  #create(n: number): void {
    const liveQueryId = `${ID}${n}`
    this.#socket.send({ type: 'createLiveQuery', liveQueryId, query: this.#queries[n] })
  }

  #frame(payload: Buffer): void {
    let newest = 0
    for (let at = payload.indexOf(STAMP_BEGINS); at >= 0;) {
      const from = at + STAMP_BEGINS.length
      newest = Math.max(newest, numberAt(payload, from))
      at = payload.indexOf(STAMP_BEGINS, from)
    }
    if (newest > 0) {
      // What it has been shown before, and was there when it began, is no change.
      if (newest > this.newestUs && this.#fault === null) {
        this.#recorder.success('read', newest / 1_000, performance.now())
        this.newestUs = newest
      }
    }
    const head = payload.toString('latin1', 0, SHORT_BYTES)
    if (head.startsWith(PING)) this.#socket.send({ type: 'pong' })
    else if (head.startsWith('{"type":"liveQueryCreated') || head.startsWith('{"type":"auth')) {
      this.#answers++
    } else if (head.includes('rror"')) this.#refused(payload.toString())
  }

  /** A node that is busy says so: it is asked again. */
  #refused(text: string): void {
    const { liveQueryId, code } = JSON.parse(text) as { liveQueryId?: string; code: string }
    if (liveQueryId === undefined || !BUSY.has(code)) {
      this.#fail(text.slice(0, 300))
      return
    }
    setTimeout(() => this.#create(Number(liveQueryId.slice(ID.length))), AGAIN_MS).unref()
  }

  #fail(what: string): void {
    this.#fault ??= what
    this.#recorder.failure(what)
  }
}

export class Watchers {
  readonly #all: Watcher[] = []

  /** A socket for each list of queries; resolves when all stand. */
  static async open(
    to: readonly Destination[],
    queries: readonly (readonly LiveQuery[])[],
    recorder: Recorder,
  ): Promise<Watchers> {
    const watchers = new Watchers()
    try {
      for (let from = 0; from < queries.length; from += OPENED_TOGETHER) {
        const some = queries.slice(from, from + OPENED_TOGETHER).map((asked, i) => {
          const member = to[(from + i) % to.length]!
          const watcher = new Watcher(member, recorder)
          watchers.#all.push(watcher)
          return watcher.ask(member.token, asked)
        })
        await Promise.all(some)
      }
      return watchers
    } catch (error) {
      watchers.close()
      throw error
    }
  }

  /** How many have not seen what they should have: for each the newest stamp of its changes. */
  async unseen(newestUs: readonly number[], withinMs: number): Promise<number> {
    const until = performance.now() + withinMs
    for (;;) {
      const left = this.#all.filter((one, i) => one.newestUs < (newestUs[i] ?? 0)).length
      if (left === 0 || performance.now() > until) return left
      await delay(POLL_MS)
    }
  }

  close(): void {
    for (const one of this.#all) one.close()
  }
}

function numberAt(bytes: Buffer, from: number): number {
  let value = 0
  for (let i = from; i < bytes.length; i++) {
    const digit = bytes[i]! - 48
    if (digit < 0 || digit > 9) return value
    value = value * 10 + digit
  }
  return value
}
