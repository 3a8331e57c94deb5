// Marks: the message ids that took effect on an actor, with what their callers were told. A repeat
// finds the recorded answer instead of running again. A window lives with the actor's state; what
// falls out of it before its time is spilled to an own row. Source: PROTOCOL 3.6 "Marks".

import { LIMITS } from '../../../config/limits.ts'
import type { MessageResult } from '../../../protocol/message.ts'
import type { EntryHead } from '../../../protocol/entry/entry.ts'
import type { DerivedRow } from '../../../storage/journal.ts'

export interface Mark {
  readonly messageId: string
  readonly kind: 0 | 1
  readonly bodyHash: string
  /** null: the answer is long; read it from the entry. */
  readonly result: MessageResult | null
  /** Its answer is long, nothing was changed: the entry may have gone (storage/row-expiry.ts). */
  readonly passing?: true
  /** Number of the entry in its actor. */
  readonly n: number
  readonly offset: number
  /** The shard's clock at the entry. */
  readonly clock: number
  /** Natural keys of the actor after the message: repeats show the first `paths`. */
  readonly keys: readonly string[]
  /** What it takes in a snapshot, at most. */
  readonly bytes: number
}

/** Ids, numbers and names of members: what a mark takes beside its answer and its keys. */
const MARK_OVERHEAD_BYTES = 320
const PASSING = { passing: true } as const

/** The mark of an entry. Keys over their bound are left out: repeats show the present ones. */
export function markOf(entry: EntryHead, offset: number, ownKeys: readonly string[]): Mark {
  const answerBytes = jsonBytes(entry.a.success ? entry.a.data : entry.a.errors)
  const long = answerBytes > LIMITS.sharding.markAnswerBytesMax
  let keys = ownKeys
  let keysBytes = keys.length === 0 ? 0 : jsonBytes(keys)
  if (keysBytes > LIMITS.sharding.markKeysBytesMax) {
    keys = NO_KEYS
    keysBytes = 0
  }
  return {
    messageId: entry.m,
    kind: entry.l,
    bodyHash: entry.h ?? '',
    result: long ? null : entry.a,
    n: entry.n,
    offset,
    clock: entry.c,
    keys,
    bytes: MARK_OVERHEAD_BYTES + keysBytes + (long ? 0 : answerBytes),
    ...(long && entry.r.length === 0 ? PASSING : null),
  }
}

/** The row of a mark that has left its actor's window before its time. */
export function markRow(actorId: string, mark: Mark, offset: number): DerivedRow {
  const { messageId } = mark
  const body = Buffer.from(JSON.stringify(mark))
  return { kind: 'mark', actorId, day: markDay(mark.clock), messageId, offset, body }
}

function jsonBytes(value: unknown): number {
  return value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value))
}

/** An actor with fewer entries than this has never pushed a mark out of its window. */
export function fewestToSpill(): number {
  const largest =
    MARK_OVERHEAD_BYTES + LIMITS.sharding.markAnswerBytesMax + LIMITS.sharding.markKeysBytesMax
  return 1 + Math.min(LIMITS.sharding.marksMax, Math.floor(LIMITS.sharding.marksBytesMax / largest))
}

/**
 * Number of the day, by the shard's clock, under which a spilled mark is kept. A day is as long as
 * the longest time, so that what is alive is of today or of yesterday.
 */
export function markDay(clock: number): number {
  return Math.floor(clock / LIMITS.storage.callerMarkMs)
}

/** Beyond this many marks a map is worth its memory. */
const MAP_FROM = 8

export class Marks {
  /** Oldest first from `first` on. */
  #list: Mark[] = []
  #first = 0
  #bytes = 0
  #byId: Map<string, Mark> | null = null
  /** True once a mark has left the window before its time: only then does a miss cost a read. */
  spilled = false
  readonly #edgeMarkMs: number

  /** @param edgeMarkMs how long ids that an edge has made are known */
  constructor(edgeMarkMs: number = LIMITS.storage.edgeMarkMs) {
    this.#edgeMarkMs = edgeMarkMs
  }

  /** By the shard's clock. */
  isAlive(mark: Mark, clock: number): boolean {
    const ttlMs = mark.kind === 1 ? LIMITS.storage.callerMarkMs : this.#edgeMarkMs
    return clock - mark.clock < ttlMs
  }

  get size(): number {
    return this.#list.length - this.#first
  }

  get bytes(): number {
    return this.#bytes
  }

  find(messageId: string, clock: number): Mark | null {
    let mark: Mark | undefined
    if (this.#byId) mark = this.#byId.get(messageId)
    else {
      for (let i = this.#list.length - 1; i >= this.#first; i--) {
        if (this.#list[i]!.messageId === messageId) {
          mark = this.#list[i]
          break
        }
      }
    }
    return mark && this.isAlive(mark, clock) ? mark : null
  }

  /**
   * Adds the newest mark; returns those that leave the window before their time. Whose time is over
   * leave with it: an actor that is changed all day has no more than it needs.
   */
  add(mark: Mark): readonly Mark[] {
    this.#list.push(mark)
    this.#bytes += mark.bytes
    if (this.#byId) this.#byId.set(mark.messageId, mark)
    else if (this.size > MAP_FROM) this.#index()
    return this.#isOver(mark.clock) ? this.#shrink(mark.clock) : NONE
  }

  #isOver(clock: number): boolean {
    return (
      this.size > LIMITS.sharding.marksMax ||
      this.#bytes > LIMITS.sharding.marksBytesMax ||
      !this.isAlive(this.#list[this.#first]!, clock)
    )
  }

  #index(): void {
    this.#byId = new Map()
    for (let i = this.#first; i < this.#list.length; i++) {
      this.#byId.set(this.#list[i]!.messageId, this.#list[i]!)
    }
  }

  #shrink(clock: number): readonly Mark[] {
    const out: Mark[] = []
    while (this.size > 1 && this.#isOver(clock)) {
      const oldest = this.#list[this.#first++]!
      this.#bytes -= oldest.bytes
      if (this.#byId?.get(oldest.messageId) === oldest) this.#byId.delete(oldest.messageId)
      if (this.isAlive(oldest, clock)) out.push(oldest)
    }
    // What has left is held until it outnumbers what is here: large marks are few, and many leave.
    if (this.#first > this.size) {
      this.#list = this.#list.slice(this.#first)
      this.#first = 0
    }
    if (out.length > 0) this.spilled = true
    return out
  }

  /** Those in the window, oldest first. */
  window(): readonly Mark[] {
    return this.#list.slice(this.#first)
  }
}

/**
 * Marks of a shard's actors that have left their window and whose rows are not durable yet: until
 * then only this knows them, whether their actor is in memory or not.
 */
export class SpilledMarks {
  /** In the order of the entries with which they left. */
  readonly #marks = new Map<string, { readonly mark: Mark; readonly offset: number }>()

  add(actorId: string, marks: readonly Mark[], offset: number): void {
    for (const mark of marks) this.#marks.set(keyOf(actorId, mark.messageId), { mark, offset })
  }

  find(actorId: string, messageId: string): Mark | null {
    return this.#marks.size === 0
      ? null
      : (this.#marks.get(keyOf(actorId, messageId))?.mark ?? null)
  }

  /** Entries above `head` never happened. */
  dropAbove(head: number): void {
    for (const [key, { offset }] of this.#marks) if (offset > head) this.#marks.delete(key)
  }

  /** Rows of entries up to `offset` are durable. */
  flushed(offset: number): void {
    for (const [key, spilled] of this.#marks) {
      if (spilled.offset > offset) return
      this.#marks.delete(key)
    }
  }
}

function keyOf(actorId: string, messageId: string): string {
  return `${actorId}\0${messageId}`
}

const NONE: readonly Mark[] = []
const NO_KEYS: readonly string[] = []
