// Entries as they stand in a shard's log: what one message did to one actor or one key, and their
// binary form. The runtime makes entries, the stores keep bytes. Members go by position, here for
// the entry itself, in the actor's type for its records (record-shape.ts); the records come last,
// and are read only where somebody asks for them. Source: PROTOCOL 3.0.

import type { ActorRecord, Effect, RecordMeta } from '../behaviour.ts'
import type { Address, Message, MessageResult } from '../message.ts'
import { assert } from '../errors.ts'
import { NO_SHAPES, type RecordShapes, shapeOf } from './record-shape.ts'
import { countIn, type Place, ValueReader } from './value-reader.ts'
import { ValueWriter } from './value-writer.ts'

/**
 * Format number of entries; another than this is refused with a clear message. 1 were entries by
 * the names of their members, before the first release.
 */
export const ENTRY_FORMAT = 2

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

/** Names are short, for every line that handles entries has them. Absent members are left out. */
export interface Entry extends EntryHead {
  readonly r: readonly ActorRecord[]
}

/** An entry as it was read: its records stay bytes until `recordsOf` is asked for them. */
export interface StoredEntry extends EntryHead {
  readonly r: StoredRecords
}

/** An entry whose records `recordsOf` tells: read from bytes, or made here. */
export type AnyEntry = Entry | StoredEntry

/** All of an entry but what its records are. */
export interface EntryHead {
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
  readonly r: { readonly length: number }
  /** Message id. */
  readonly m: string
  /** How long it is kept: 1 = the caller's key (24 h), 0 = made at the edge (10 min). */
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
  /**
   * The actor has ended, or was never made, and its type forgets such (`Behaviour.countsUntilMs`):
   * the shard's clock from which this entry and all before it have their time to go. Written by
   * name, so that an older version reads over it.
   */
  readonly f?: number
}

/**
 * True for the records that end an actor which is forgotten: they stand for all before them, which
 * may be gone in part.
 */
export function isEnd({ f, r }: EntryHead): boolean {
  return f !== undefined && r.length > 0
}

const KEY_CHANGE = shapeOf<KeyChange>(['keyType', 'key', 'change', 'actorId', 'by'])
const MESSAGE = shapeOf<Message>(['type', 'body'])
const EFFECT = shapeOf<Effect>([
  ['to', shapeOf<Address>(['type', 'id', 'key'])],
  ['messages', MESSAGE],
])
/** Stored for good, as every shape: only added to at its end. */
const HEAD = shapeOf<EntryHead>(
  [
    ...(['y', 'p', 'q', 'v', 'n', 'm', 'l', 'h'] as const),
    ['a', shapeOf<MessageResult>(['type', 'success', 'data', 'errors'])],
    ['e', EFFECT],
    ['k', KEY_CHANGE],
    ...(['t', 'c', 'b', 'g'] as const),
    ['x', MESSAGE],
    's',
  ],
  'r',
)

/**
 * Entries are written into pieces of memory that many of them share: one allocation for hundreds.
 */
const PIECE_BYTES = 512 * 1024
let piece = Buffer.allocUnsafeSlow(PIECE_BYTES)
let used = 0
const writer = new ValueWriter()

/** `shapes`: those of the actor's type; without them its records go by the names of members. */
export function encodeEntry(entry: Entry, shapes: RecordShapes = NO_SHAPES): Buffer {
  writer.begin(false)
  write(entry, shapes)
  if (writer.needsWide) {
    writer.begin(true)
    write(entry, shapes)
  }
  const { size } = writer
  if (size > PIECE_BYTES / 4) {
    const own = Buffer.allocUnsafeSlow(size)
    writer.into(own, 0)
    return own
  }
  if (used + size > PIECE_BYTES) {
    piece = Buffer.allocUnsafeSlow(PIECE_BYTES)
    used = 0
  }
  const start = used
  writer.into(piece, start)
  used += size
  return piece.subarray(start, used)
}

function write(entry: Entry, shapes: RecordShapes): void {
  const { r } = entry
  writer.count(r.length)
  writer.shaped(HEAD, entry)
  for (let i = 0; i < r.length; i++) shapes.write(writer, r[i]!)
}

/** Throws where the bytes are no entry, or one with members that this version doesn't know. */
export function decodeEntry(bytes: Uint8Array): StoredEntry {
  const reader = new ValueReader(bytes)
  const length = reader.count()
  const entry = reader.object(HEAD) as { r?: StoredRecords }
  entry.r = new StoredRecords(reader, length)
  return entry as StoredEntry
}

/** The same, for tools: throws also where its records can't be what was written. */
export function decodeWholeEntry(bytes: Uint8Array): StoredEntry {
  const entry = decodeEntry(bytes)
  entry.r.pass()
  return entry
}

/** The records of an entry as they were written, not yet read. */
export class StoredRecords {
  readonly length: number
  readonly #reader: ValueReader
  readonly #place: Place
  #records: readonly ActorRecord[] | null = null

  constructor(reader: ValueReader, length: number) {
    this.length = length
    this.#reader = reader
    this.#place = reader.place
  }

  /** By the shapes of the actor's type, always the same. */
  read(shapes: RecordShapes): readonly ActorRecord[] {
    if (this.#records !== null) return this.#records
    const reader = this.#reader
    reader.goTo(this.#place)
    const records: ActorRecord[] = []
    for (let i = 0; i < this.length; i++) records.push(shapes.read(reader))
    reader.end()
    this.#records = records
    return records
  }

  pass(): void {
    this.#reader.goTo(this.#place)
    for (let i = 0; i < this.length; i++) {
      this.#reader.count()
      this.#reader.pass()
    }
    this.#reader.end()
  }
}

/**
 * The records of an entry, by the shapes of its actor's type. Throws where one is of a shape that
 * this version doesn't know, or damaged.
 */
export function recordsOf(
  { r }: AnyEntry,
  { shapes = NO_SHAPES }: { readonly shapes?: RecordShapes },
): readonly ActorRecord[] {
  return r instanceof StoredRecords ? r.read(shapes) : r
}

/**
 * Whether an encoded entry changed anything: one without records is a rejection. Looked up in the
 * bytes, for a store asks it of every entry.
 */
export function holdsRecords(bytes: Uint8Array): boolean {
  return countIn(bytes) !== 0
}

/** Joins entries into a group's body: format byte, then per entry its length (u32) and bytes. */
export function joinEntries(entries: readonly Uint8Array[]): Buffer {
  let size = 1
  for (const e of entries) size += 4 + e.length
  // Bodies are kept for long and counted by their bytes: a piece of Node's pool would keep 8 KiB.
  const body = Buffer.allocUnsafeSlow(size)
  body[0] = ENTRY_FORMAT
  let at = 1
  for (const e of entries) {
    body.writeUInt32LE(e.length, at)
    body.set(e, at + 4)
    at += 4 + e.length
  }
  return body
}

/** The entries' bytes of a group's body, as views. Throws on another format or a torn frame. */
export function splitEntries(body: Uint8Array): Buffer[] {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (bytes[0] !== ENTRY_FORMAT) {
    const format = bytes[0] ?? 0
    const whose =
      format < ENTRY_FORMAT
        ? 'it was written before the first release; begin with an empty store'
        : 'it was written by a newer Kontor; start that version'
    throw new Error(
      `entry format ${format} is not readable by this version (${ENTRY_FORMAT}): ${whose}`,
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

const NO_ACTOR = '00000000-0000-0000-0000-000000000000'

/**
 * What an entry reads as whose bytes a store has given back: of no actor, without a word. Its
 * offset stays, so a log is dense whatever is gone from it.
 */
export const ERASED_ENTRY: Uint8Array = encodeEntry({
  ...{ y: '', p: NO_ACTOR, v: 0, n: 0, r: [], m: '', l: 0, t: 0, c: 0, b: '' },
  a: { type: '', success: false, errors: [] },
})

/** True for an entry whose bytes were given back: `ERASED_ENTRY`. */
export function isErased({ y, m }: EntryHead): boolean {
  return y === '' && m === ''
}

/** What the i-th record of an entry was committed with. */
export function metaOf(entry: EntryHead, i: number): RecordMeta {
  return {
    actorId: entry.p,
    version: entry.v + 1 + i,
    timeMs: entry.t,
    by: entry.b,
    messageId: entry.m,
  }
}
