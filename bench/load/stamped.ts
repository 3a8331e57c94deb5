// Requests that carry the time at which they were due, written into bytes that were made before.

import { STAMP } from './watchers.ts'
import type { PreparedRequest } from './requests.ts'

/** As long as any stamp of a process that runs for days. */
const PLACE = 900_000_000_000
const DIGITS = String(PLACE).length
const BEGINS = Buffer.from(`"${STAMP}":${PLACE}`)

/** The command that puts the stamp into the order. */
export const SET_STAMP = { type: 'setDynamicFields', fields: { [STAMP]: PLACE } }

export class StampedRequest {
  readonly #request: PreparedRequest
  readonly #at: number

  /** Of a request with `SET_STAMP` in it. */
  constructor(request: PreparedRequest) {
    this.#request = request
    this.#at = request.bytes.indexOf(BEGINS) + BEGINS.length - DIGITS
    if (this.#at < 0) throw new Error('the request has no place for a stamp')
  }

  /** JSON takes spaces before a number: the length stays. */
  at(stampUs: number): PreparedRequest {
    const bytes = Buffer.from(this.#request.bytes)
    bytes.write(String(stampUs).padStart(DIGITS), this.#at, 'latin1')
    return { kind: this.#request.kind, bytes }
  }
}

export function stampOf(dueMs: number): number {
  return Math.max(1, Math.round(dueMs * 1_000))
}
