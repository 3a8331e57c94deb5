// Frames of Cassandra's native protocol as a proxy sees them, and the one kind that matters most:
// appends to a log, which are the only logged batches that a member sends. The proxy holds back
// what it is told to, for tests of unknown outcomes. Source: the native protocol v4 (section 2,
// 4.1.7), PROTOCOL 3.1, F13.

import type { Pick, Splitter } from './proxy.ts'

const HEADER_BYTES = 9
const LENGTH_AT = 5
const OPCODE_AT = 4
const BATCH = 0x0d
const LOGGED = 0

/** Cuts bytes of a connection into frames. */
export const frames: Splitter = (bytes) => {
  const units: Buffer[] = []
  let at = 0
  while (at + HEADER_BYTES <= bytes.length) {
    const end = at + HEADER_BYTES + bytes.readUInt32BE(at + LENGTH_AT)
    if (end > bytes.length) break
    units.push(bytes.subarray(at, end))
    at = end
  }
  return { units, rest: bytes.subarray(at) }
}

export function isAppend(frame: Buffer): boolean {
  return frame[OPCODE_AT] === BATCH && frame[HEADER_BYTES] === LOGGED
}

/** Number that a frame shares with its answer on the same connection. */
function streamOf(frame: Buffer): number {
  return frame.readInt16BE(2)
}

/**
 * Picks appends, or their answers: give `requests` to the side of requests and `answers` to the
 * other. `seen` counts the appends that went by.
 */
export class AppendPicker {
  seen = 0
  /** Of each connection, the streams whose answer is one to an append. */
  readonly #streams = new WeakMap<object, Set<number>>()

  readonly requests: Pick = (frame) => {
    if (!isAppend(frame)) return false
    this.seen++
    return true
  }

  /** Lets appends through, and remembers them: to be held on the other side. */
  readonly mark: Pick = (frame, _side, pair) => {
    if (!isAppend(frame)) return false
    this.seen++
    let streams = this.#streams.get(pair)
    if (!streams) this.#streams.set(pair, (streams = new Set()))
    streams.add(streamOf(frame))
    return false
  }

  readonly answers: Pick = (frame, _side, pair) =>
    this.#streams.get(pair)?.delete(streamOf(frame)) ?? false
}
