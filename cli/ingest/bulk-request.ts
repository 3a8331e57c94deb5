// One bulk request: lines out, answers in, at the same time over one connection. It knows lines,
// not orders. Source: CONTRACT 0 (Bulk).

import {
  request as httpRequest,
  type Agent,
  type ClientRequest,
  type IncomingMessage,
} from 'node:http'
import { request as httpsRequest } from 'node:https'

/** A node that neither takes nor answers anything for so long is given up. */
const SILENCE_MS = 60_000
/** Of a refusal's body only so much is read. */
const REFUSAL_CHARS_MAX = 4096
const ANSWER_CHARS_MAX = 64 * 1024 * 1024

export type RequestEnd =
  /** The answer is complete. */
  | { readonly end: 'complete' }
  /** The request as a whole was refused. */
  | {
      readonly end: 'refused'
      readonly status: number
      readonly text: string
      readonly retryAfterMs: number
    }
  | { readonly end: 'broken'; readonly why: string }

export interface BulkRequestOptions {
  readonly url: string
  readonly token: string
  readonly agent: Agent
  /** Called with each answer line, in order. */
  readonly answer: (line: string) => void
  /** Called when there is room to write again. */
  readonly room: () => void
}

export class BulkRequest {
  readonly ended: Promise<RequestEnd>
  /** True once `ended` is decided: writing on is of no use. */
  over = false
  readonly #request: ClientRequest
  readonly #answer: (line: string) => void
  #settle: (end: RequestEnd) => void = () => {}

  constructor({ url, token, agent, answer, room }: BulkRequestOptions) {
    this.#answer = answer
    this.ended = new Promise((resolve) => {
      this.#settle = (end) => {
        if (this.over) return
        this.over = true
        resolve(end)
        room()
      }
    })
    const open = url.startsWith('https:') ? httpsRequest : httpRequest
    this.#request = open(url, {
      method: 'POST',
      agent,
      timeout: SILENCE_MS,
      headers: {
        'Content-Type': 'application/x-ndjson',
        Accept: 'application/x-ndjson',
        Authorization: `Bearer ${token}`,
      },
    })
    this.#request.on('error', (error) => this.#broken(error.message || 'the connection is gone'))
    this.#request.on('timeout', () => this.destroy(`silent for ${SILENCE_MS / 1000} s`))
    this.#request.on('drain', room)
    this.#request.on('response', (response) => this.#read(response))
    // Headers leave before the first line, so that a refusal comes early.
    this.#request.flushHeaders()
  }

  /** False: wait for room before writing on. */
  write(lines: string): boolean {
    return this.over || this.#request.write(lines)
  }

  end(): void {
    if (!this.over) this.#request.end()
  }

  destroy(why: string): void {
    this.#broken(why)
  }

  #broken(why: string): void {
    this.#settle({ end: 'broken', why })
    this.#request.destroy()
  }

  #read(response: IncomingMessage): void {
    const refused = response.statusCode !== 200
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => {
      text = refused ? (text + chunk).slice(0, REFUSAL_CHARS_MAX) : this.#lines(text + chunk)
    })
    response.on('error', (error) => this.#broken(error.message))
    response.on('close', () => this.#broken('the connection ended within the answer'))
    response.on('end', () => {
      if (!refused) {
        this.#settle({ end: 'complete' })
        return
      }
      const seconds = Number(response.headers['retry-after'])
      const retryAfterMs = seconds > 0 ? Math.min(seconds, 60) * 1000 : 0
      this.#settle({ end: 'refused', status: response.statusCode!, text, retryAfterMs })
      // The rest of our lines would go nowhere.
      this.#request.destroy()
    })
  }

  /** Hands on the complete lines and gives back the rest. */
  #lines(text: string): string {
    let at = 0
    for (;;) {
      const end = text.indexOf('\n', at)
      if (end === -1) break
      if (end > at) this.#answer(text.slice(at, end))
      at = end + 1
    }
    if (text.length - at > ANSWER_CHARS_MAX) this.#broken('an answer line without an end')
    return text.slice(at)
  }
}
