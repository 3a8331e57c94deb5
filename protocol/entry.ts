// Entries as they stand in a shard's log: what one message did to one actor or one key, and their
// binary form. It stands between the runtime, which makes entries, and the stores, which keep
// bytes. JSON inside a length-prefixed frame: measured on an order with two lines, JSON.stringify
// takes 3.9 us and parse 5.9 us, self-contained msgpackr 6.5 us and 7.3 us at 10 % less space.
// Source: PROTOCOL 3.0.

import type { ActorRecord, Effect, RecordMeta } from './behaviour.ts'
import type { Message, MessageResult } from './message.ts'
import { assert } from './errors.ts'

/** Format number of entries; a newer one than this is refused with a clear message. */
export const ENTRY_FORMAT = 1

/**
 * Where an operator has accepted the loss of a shard's newest entries, offsets and the versions of
 * its actors go on this much higher, so that none is given out twice (PROTOCOL 3.16).
 */
export const LOSS_JUMP = 1_000_000

/** A change of a natural key that commits with its entry. */
export interface KeyChange {
  readonly keyType: string
  readonly key: string
  /** `take`: the alias leads to the actor from now; `free`: it leads nowhere. */
  readonly change: 'take' | 'claim' | 'confirm' | 'free'
  readonly actorId: string
  /** For `confirm` and `free`: the message that had made the claim. */
  readonly by?: string
}

/** Members are short because every order pays for them twice; absent ones are left out. */
export interface Entry {
  /** Actor type. */
  readonly y: string
  /** Actor UUID; for an entry of a key alone (a refused create, a claim) the UUID it was for. */
  readonly p: string
  /** Natural key of an actor of the `system` shard. */
  readonly q?: string
  /** Version of the actor before this entry's records. */
  readonly v: number
  /** Number of this entry in its actor, from 1 (0 for an entry of a key alone). */
  readonly n: number
  readonly r: readonly ActorRecord[]
  /** Message id. */
  readonly m: string
  /** Its life: 1 = the caller's key (24 h), 0 = made at the edge (10 min). */
  readonly l: 0 | 1
  /** Hash of the request body. */
  readonly h?: string
  /** What the caller was told. */
  readonly a: MessageResult
  readonly e?: readonly Effect[]
  readonly k?: readonly KeyChange[]
  /** Milliseconds since 1970. */
  readonly t: number
  /** The shard's clock, milliseconds (PROTOCOL 3.0). */
  readonly c: number
  /** Identity id. */
  readonly b: string
  /** Numbers handed out by this entry: `keyType/prefix` -> highest counter used. */
  readonly g?: Readonly<Record<string, number>>
  /** The message itself, when it was given up (POISONED): what a replay sends again. */
  readonly x?: Message
  /**
   * Where a relayed message came from: source shard, its offset, index of the effect, and of the
   * message in the effect where it isn't the first. In an entry of no actor: this effect of the
   * shard's own goes to the actor `p`, to which its key has led.
   */
  readonly s?: readonly [shard: number, offset: number, index: number, message?: number]
}

/**
 * Entries are written into pieces of memory that many of them share: one allocation for hundreds.
 */
const PIECE_BYTES = 512 * 1024
let piece = Buffer.allocUnsafeSlow(PIECE_BYTES)
let used = 0

export function encodeEntry(entry: Entry): Buffer {
  const text = JSON.stringify(entry)
  // A UTF-16 unit takes at most three bytes of UTF-8.
  const room = text.length * 3
  if (room > PIECE_BYTES / 4) return Buffer.from(text)
  if (used + room > PIECE_BYTES) {
    piece = Buffer.allocUnsafeSlow(PIECE_BYTES)
    used = 0
  }
  const start = used
  used += piece.write(text, start)
  return piece.subarray(start, used)
}

export function decodeEntry(bytes: Uint8Array): Entry {
  return JSON.parse(
    Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(),
  ) as Entry
}

const QUOTE = '"'.charCodeAt(0)
const LETTER_R = 'r'.charCodeAt(0)
const COLON = ':'.charCodeAt(0)
const END = ']'.charCodeAt(0)

/**
 * Whether an encoded entry changed anything: one without records is a rejection. Looked up in the
 * bytes, for a store asks it of every entry: before `r` there are texts and numbers only, and
 * inside a text no quote stands alone.
 */
export function holdsRecords(bytes: Uint8Array): boolean {
  for (let at = 0; at + 5 < bytes.length; at++) {
    if (bytes[at] !== QUOTE || bytes[at + 1] !== LETTER_R) continue
    // `"r":[`, and then either its end or a record.
    if (bytes[at + 2] === QUOTE && bytes[at + 3] === COLON) return bytes[at + 5] !== END
  }
  return true
}

/** Joins entries into a group's body: format byte, then per entry its length (u32) and bytes. */
export function joinEntries(entries: readonly Uint8Array[]): Buffer {
  let size = 1
  for (const e of entries) size += 4 + e.length
  const body = Buffer.allocUnsafe(size)
  body[0] = ENTRY_FORMAT
  let at = 1
  for (const e of entries) {
    body.writeUInt32LE(e.length, at)
    body.set(e, at + 4)
    at += 4 + e.length
  }
  return body
}

/** The entries' bytes of a group's body, as views. Throws on a newer format or a torn frame. */
export function splitEntries(body: Uint8Array): Buffer[] {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (bytes[0] !== ENTRY_FORMAT) {
    throw new Error(
      `entry format ${String(bytes[0])} is not readable by this version (${ENTRY_FORMAT}): ` +
        'it was written by a newer Kontor; start that version',
    )
  }
  const entries: Buffer[] = []
  let at = 1
  while (at < bytes.length) {
    const length = bytes.readUInt32LE(at)
    assert(at + 4 + length <= bytes.length, 'an entry frame ends behind its group')
    entries.push(bytes.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  return entries
}

/** What the i-th record of an entry was committed with. */
export function metaOf(entry: Entry, i: number): RecordMeta {
  return {
    actorId: entry.p,
    version: entry.v + 1 + i,
    timeMs: entry.t,
    by: entry.b,
    messageId: entry.m,
  }
}
