// Reads values from their binary form (values.ts). Bytes may be damaged: nothing is read outside of
// them, or nested without a bound.

import {
  CENTS,
  DOUBLE,
  FALSE,
  INTEGER,
  LIST,
  MAP,
  MARK,
  NEGATIVE,
  NEGATIVE_CENTS,
  NULL,
  SHAPED,
  SHORT_LIST,
  SHORT_LIST_MAX,
  TEXT,
  TEXT_MAX,
  TRUE,
  VALUE_DEPTH_MAX,
  WIDE_TEXT,
} from './values.ts'

/** Longer strings would be cut out as views of all of them. */
const COPIED_UNITS = 12

/** Reads the members of one kind of object by position. */
export interface ReadShape {
  readonly read: (from: ValueReader) => object
}

const double = new Float64Array(1)
const doubleBytes = new Uint8Array(double.buffer)

/** Where a reader stands, to go back to. */
export type Place = readonly [at: number, narrowAt: number, wideAt: number]

/**
 * Reads what a writer has taken, in its order. Throws where the bytes can't be what a writer made,
 * so that damage which is not seen otherwise is seldom taken for a value.
 */
export class ValueReader {
  readonly #bytes: Buffer
  readonly #end: number
  readonly #narrow: string
  readonly #narrowFrom: number
  readonly #wideFrom: number
  #at: number
  #narrowAt = 0
  /** In bytes. */
  #wideAt = 0
  #depth = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#end = bytes.length
    this.#at = 1
    if (bytes[0] !== MARK) damaged(`begins with the byte ${String(bytes[0])}`)
    const structure = this.#varint()
    const narrow = this.#varint()
    const wide = this.#varint()
    this.#end = this.#at + structure
    this.#narrowFrom = this.#end
    this.#wideFrom = this.#end + narrow
    if (this.#wideFrom + wide !== bytes.length) {
      damaged(`is ${bytes.length} bytes long, not ${this.#wideFrom + wide}`)
    }
    this.#narrow = this.#bytes.toString('latin1', this.#narrowFrom, this.#wideFrom)
  }

  get place(): Place {
    return [this.#at, this.#narrowAt, this.#wideAt]
  }

  goTo([at, narrowAt, wideAt]: Place): void {
    this.#at = at
    this.#narrowAt = narrowAt
    this.#wideAt = wideAt
    this.#depth = 0
  }

  /** Throws unless everything has been read. */
  end(): void {
    const isAll =
      this.#at === this.#end &&
      this.#narrowAt === this.#narrow.length &&
      this.#wideFrom + this.#wideAt === this.#bytes.length
    if (!isAll) damaged('holds more than its values')
  }

  count(): number {
    return this.#varint()
  }

  value(): unknown {
    return this.#valueOf(this.#byte(), null)
  }

  /** A value that `ValueWriter.shaped` has taken. */
  shaped(shape: ReadShape): unknown {
    return this.#valueOf(this.#byte(), shape)
  }

  /** An object that has the shape, and nothing else. */
  object(shape: ReadShape): object {
    return this.#shapedAs(this.#byte(), shape)
  }

  /** An object by the names of its members. */
  named(): object {
    if (this.#byte() !== MAP) damaged('lacks the members of an object')
    return this.#map({})
  }

  /** The mask of the members that follow. */
  members(): number {
    if (this.#byte() !== SHAPED) damaged('lacks the members of a shape')
    return this.#varint()
  }

  /** A map of further members, added to the object. */
  rest(object: Record<string, unknown>): void {
    if (this.#byte() !== MAP) damaged('lacks a map of further members')
    this.#map(object)
  }

  /** Passes over a value, whatever shapes are in it. */
  pass(): void {
    const kind = this.#byte()
    const more = this.#partsOf(kind)
    if (more < 0) return void this.#valueOf(kind, null)
    this.#deeper()
    for (let i = 0; i < more; i++) this.pass()
    this.#depth--
  }

  /** How many values stand in that one; -1: it has none. */
  #partsOf(kind: number): number {
    if (kind === SHAPED) return bitsOf(this.#varint())
    if (kind === MAP) return this.#varint() * 2
    if (kind === LIST) return this.#varint()
    return kind >= SHORT_LIST && kind < SHORT_LIST + SHORT_LIST_MAX ? kind - SHORT_LIST : -1
  }

  #valueOf(kind: number, shape: ReadShape | null): unknown {
    if (kind < TEXT_MAX) return this.#text(kind)
    if (kind < TEXT_MAX * 2) return kind - TEXT_MAX
    if (kind >= SHORT_LIST && kind < SHORT_LIST + SHORT_LIST_MAX) {
      return this.#list(kind - SHORT_LIST, shape)
    }
    switch (kind) {
      case NULL:
        return null
      case FALSE:
        return false
      case TRUE:
        return true
      case TEXT:
        return this.#text(this.#varint())
      case WIDE_TEXT:
        return this.#wideText(this.#varint())
      case LIST:
        return this.#list(this.#varint(), shape)
      case MAP:
        return this.#map({})
      case INTEGER:
        return this.#varint()
      case NEGATIVE:
        return -this.#varint()
      case CENTS:
        return this.#varint() / 100
      case NEGATIVE_CENTS:
        return -this.#varint() / 100
      case DOUBLE:
        return this.#double()
      default:
        return this.#shapedAs(kind, shape)
    }
  }

  #shapedAs(kind: number, shape: ReadShape | null): object {
    if (kind !== SHAPED || shape === null) return damaged(`holds a value of the kind ${kind}`)
    this.#at--
    this.#deeper()
    const value = shape.read(this)
    this.#depth--
    return value
  }

  #byte(): number {
    if (this.#at >= this.#end) damaged('ends within its values')
    return this.#bytes[this.#at++]!
  }

  #varint(): number {
    const first = this.#byte()
    if (first < 0x80) return first
    let n = first & 0x7f
    let factor = 0x80
    for (;;) {
      const byte = this.#byte()
      n += (byte & 0x7f) * factor
      if (byte < 0x80) break
      factor *= 0x80
      if (factor > Number.MAX_SAFE_INTEGER) damaged('holds a number without end')
    }
    if (!Number.isSafeInteger(n)) damaged('holds a number that is too large')
    return n
  }

  #double(): number {
    const from = this.#at
    this.#at += 8
    if (this.#at > this.#end) damaged('ends within a number')
    for (let i = 0; i < 8; i++) doubleBytes[i] = this.#bytes[from + i]!
    return double[0]!
  }

  /**
   * A long string is taken from the bytes, a copy: a view of the whole text would keep the entry in
   * memory for as long as somebody keeps one id of it.
   */
  #text(units: number): string {
    const from = this.#narrowAt
    const to = from + units
    if (to > this.#narrow.length) damaged('ends within a text')
    this.#narrowAt = to
    if (units <= COPIED_UNITS) return this.#narrow.substring(from, to)
    return this.#bytes.toString('latin1', this.#narrowFrom + from, this.#narrowFrom + to)
  }

  #wideText(units: number): string {
    const from = this.#wideFrom + this.#wideAt
    const to = from + units * 2
    if (to > this.#bytes.length) damaged('ends within a text')
    this.#wideAt += units * 2
    return this.#bytes.toString('utf16le', from, to)
  }

  #list(length: number, shape: ReadShape | null): unknown[] {
    this.#holds(length)
    const list: unknown[] = []
    this.#deeper()
    for (let i = 0; i < length; i++) list.push(this.#valueOf(this.#byte(), shape))
    this.#depth--
    return list
  }

  #map(map: Record<string, unknown>): object {
    const count = this.#varint()
    this.#holds(count)
    this.#deeper()
    for (let i = 0; i < count; i++) {
      const key = this.#valueOf(this.#byte(), null)
      if (typeof key !== 'string') return damaged('has a member without a name')
      const value = this.#valueOf(this.#byte(), null)
      // An assignment would set the prototype.
      if (key === '__proto__') setOwn(map, key, value)
      else map[key] = value
    }
    this.#depth--
    return map
  }

  /** Each value takes a byte at least: what says more of itself is damaged. */
  #holds(count: number): void {
    if (count > this.#end - this.#at) damaged('ends within a list')
  }

  #deeper(): void {
    if (++this.#depth > VALUE_DEPTH_MAX) damaged('is nested too deep')
  }
}

/**
 * The first value of what a writer has made, where it is a count; null where these are no such
 * bytes. For a question that is asked of every entry.
 */
export function countIn(bytes: Uint8Array): number | null {
  if (bytes[0] !== MARK) return null
  let at = 1
  for (let sizes = 0; sizes < 3; at++) if (bytes[at]! < 0x80 || at >= bytes.length) sizes++
  return at < bytes.length && bytes[at]! < 0x80 ? bytes[at]! : null
}

function setOwn(map: object, key: string, value: unknown): void {
  Object.defineProperty(map, key, { value, writable: true, enumerable: true, configurable: true })
}

function damaged(how: string): never {
  throw new Error(`not the bytes of an entry, or damaged ones: what is there ${how}`)
}

function bitsOf(mask: number): number {
  let bits = 0
  for (let left = mask; left > 0; left >>>= 1) bits += left & 1
  return bits
}
