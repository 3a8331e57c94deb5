// One of a run's connections: keeps a window of orders under way, settles them by their answers,
// and sends them again, with the same keys, when the connection breaks or the node is busy.

import type { Agent } from 'node:http'
import { isRetryable, type ErrorItem } from '../../protocol/errors.ts'
import { BulkRequest, type RequestEnd } from './bulk-request.ts'
import type { Order, OrderSource } from './order-source.ts'
import { FatalError, reasonOf, timeOfUuid7, type Session } from '../session.ts'

/** Orders, and characters of them, sent and not yet answered. */
const WINDOW_ORDERS = 512
const WINDOW_CHARS = 8 * 1024 * 1024
const WRITE_CHARS = 64 * 1024
/** A request ends after so long; the next one brings a fresh token if need be. */
const REQUEST_MS = 5 * 60_000
const BACKOFF_MS = 100
const BACKOFF_MS_MAX = 5_000
/** An order that the node refuses for now so many times in a row has failed. */
const REFUSALS_MAX = 50

export interface ConnectionOptions {
  readonly session: Session
  readonly agent: Agent
  readonly source: OrderSource
  readonly retryMs: number
  readonly now: () => number
  readonly delay: (ms: number) => Promise<void>
  readonly settled: {
    accepted(order: Order, outcome: 'created' | 'repeated'): void
    failed(order: Order, error: ErrorItem): void
  }
}

interface BulkAnswer {
  readonly id: string
  readonly errors?: readonly ErrorItem[]
}

export class BulkConnection {
  readonly #o: ConnectionOptions
  /** Sent and not answered, oldest first. */
  #pending: Order[] = []
  #pendingChars = 0
  /** To be sent (again) before anything new. */
  readonly #again: Order[] = []
  #request: BulkRequest | null = null
  #stopped: string | null = null
  #progressMs: number
  #busyUntilMs = 0
  #wake: () => void = () => {}

  constructor(options: ConnectionOptions) {
    this.#o = options
    this.#progressMs = options.now()
  }

  /** Posts orders until there are none; rejects with what makes going on useless. */
  async run(): Promise<void> {
    let backoffMs = BACKOFF_MS
    while (this.#stopped === null && (this.#again.length > 0 || (await this.#o.source.pull()))) {
      const before = this.#progressMs
      const end = await this.#post()
      this.#again.unshift(...this.#pending)
      this.#pending = []
      this.#pendingChars = 0
      if (end.end === 'complete' && this.#again.length === 0) continue
      if (this.#progressMs > before) backoffMs = BACKOFF_MS
      this.#giveUpAfterSilence(end)
      await this.#o.delay(Math.max(backoffMs, end.end === 'refused' ? end.retryAfterMs : 0))
      backoffMs = Math.min(backoffMs * 2, BACKOFF_MS_MAX)
    }
  }

  /** Ends the run here; what is under way stays unsettled. */
  stop(why: string): void {
    this.#stopped ??= why
    this.#request?.destroy(why)
    this.#wake()
  }

  /** Orders that were taken from the source and never settled. */
  unsettled(): readonly Order[] {
    return [...this.#pending, ...this.#again]
  }

  async #post(): Promise<RequestEnd> {
    let token
    try {
      token = await this.#o.session.token()
    } catch (error) {
      if (error instanceof FatalError) throw error
      return { end: 'broken', why: reasonOf(error as Error) }
    }
    const request = new BulkRequest({
      url: `${this.#o.session.url}/resources/actors/order`,
      token,
      agent: this.#o.agent,
      answer: (line) => this.#answer(line),
      room: () => this.#wake(),
    })
    this.#request = request
    // Stopped while the token was fetched: there was no request to end then.
    if (this.#stopped !== null) request.destroy(this.#stopped)
    try {
      await this.#feed(request)
    } catch (error) {
      request.destroy('the file can not be read on')
      throw error
    }
    const end = await request.ended
    if (end.end === 'refused') this.#refused(end.status, end.text, token)
    return end
  }

  /** Writes orders while there is room in the window, until the file or the request's time ends. */
  async #feed(request: BulkRequest): Promise<void> {
    const untilMs = this.#o.now() + REQUEST_MS
    while (!request.over && this.#o.now() < untilMs) {
      const room = new Promise<void>((resolve) => (this.#wake = resolve))
      const lines = this.#nextLines()
      if (lines !== '') {
        if (!request.write(lines)) await room
      } else if (this.#pending.length > 0 && (this.#full() || this.#again.length > 0)) {
        await room
      } else if (this.#o.now() < this.#busyUntilMs) {
        await this.#o.delay(this.#busyUntilMs - this.#o.now())
      } else if (!(await this.#o.source.pull())) {
        break
      }
    }
    request.end()
  }

  #full(): boolean {
    return this.#pending.length >= WINDOW_ORDERS || this.#pendingChars >= WINDOW_CHARS
  }

  #nextLines(): string {
    let lines = ''
    if (this.#o.now() < this.#busyUntilMs) return lines
    while (lines.length < WRITE_CHARS && !this.#full()) {
      const order = this.#again.shift() ?? this.#o.source.take()
      if (order === null) break
      this.#pending.push(order)
      this.#pendingChars += order.line.length
      lines += order.line
    }
    return lines
  }

  #answer(line: string): void {
    const order = this.#pending.shift()
    const answer = parseAnswer(line)
    if (order === undefined || answer === null) {
      if (order !== undefined) this.#pending.unshift(order)
      this.#request?.destroy(`not an answer to a line: ${line.slice(0, 200)}`)
      return
    }
    this.#pendingChars -= order.line.length
    this.#settle(order, answer)
    this.#wake()
  }

  #settle(order: Order, answer: BulkAnswer): void {
    const error = answer.errors?.[0]
    if (error === undefined) {
      this.#progressMs = this.#o.now()
      const madeMs = timeOfUuid7(answer.id)
      const old = madeMs !== null && madeMs < this.#o.session.startedMs
      this.#o.settled.accepted(order, old ? 'repeated' : 'created')
    } else if (again(error) && ++order.refusals <= REFUSALS_MAX) {
      this.#again.push(order)
      this.#busyUntilMs = this.#o.now() + Math.min(BACKOFF_MS * order.refusals, BACKOFF_MS_MAX)
    } else {
      this.#progressMs = this.#o.now()
      this.#o.settled.failed(order, error)
    }
  }

  #refused(status: number, text: string, token: string): void {
    if (status === 401) this.#o.session.forget(token)
    else if (status < 500 && status !== 429 && status !== 408) {
      throw new FatalError(`the node refuses the request: ${status} ${text.slice(0, 500)}`)
    }
  }

  #giveUpAfterSilence(end: RequestEnd): void {
    if (this.#stopped !== null || this.#o.now() - this.#progressMs < this.#o.retryMs) return
    const why =
      end.end === 'broken' ? end.why : end.end === 'refused' ? `${end.status} ${end.text}` : 'busy'
    throw new FatalError(`no order was taken for ${this.#o.retryMs / 1000} s: ${why}`)
  }
}

/** True for failures after which the same order may be sent with the same key. */
function again(error: ErrorItem): boolean {
  return isRetryable(error.code) || error.code === 'OUTCOME_UNKNOWN'
}

function parseAnswer(line: string): BulkAnswer | null {
  try {
    const answer = JSON.parse(line) as BulkAnswer | null
    return typeof answer?.id === 'string' || Array.isArray(answer?.errors) ? answer : null
  } catch {
    return null
  }
}
