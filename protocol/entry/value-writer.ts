// Writes values in their binary form (values.ts). What JSON has no form for is written as
// JSON.stringify would.

import { assert } from '../errors.ts'
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

const SCRATCH_BYTES = 64 * 1024
/** What one value takes before its content, at most. */
const HEAD_BYTES = 24
/** Below it, bit operations do. */
const SMALL = 2 ** 31
// eslint-disable-next-line no-control-regex -- all of Latin-1
const WIDE = /[^\u0000-\u00ff]/

/** Writes the members of one kind of object by position. */
export interface WriteShape {
  readonly write: (to: ValueWriter, value: object) => void
}

const double = new Float64Array(1)
const doubleBytes = new Uint8Array(double.buffer)

/** Takes values one by one; `size` and `into` give what was taken. One at a time. */
export class ValueWriter {
  #bytes = new Uint8Array(SCRATCH_BYTES)
  #at = 0
  #depth = 0
  #narrow = ''
  #wide = ''
  /** Each string is looked at: there is one that Latin-1 has no form for. */
  #isWide = false

  /** Begins with nothing taken. */
  begin(isWide: boolean): void {
    this.#at = 0
    this.#depth = 0
    this.#narrow = ''
    this.#wide = ''
    this.#isWide = isWide
    if (this.#bytes.length > SCRATCH_BYTES) this.#bytes = new Uint8Array(SCRATCH_BYTES)
  }

  /** True: what was taken must be taken again, by a writer that has begun wide. */
  get needsWide(): boolean {
    return !this.#isWide && WIDE.test(this.#narrow)
  }

  count(n: number): void {
    this.#room()
    this.#varint(n)
  }

  value(value: unknown): void {
    this.#room()
    switch (typeof value) {
      case 'string':
        return this.#text(value)
      case 'number':
        return this.#number(value)
      case 'boolean':
        this.#bytes[this.#at++] = value ? TRUE : FALSE
        return
      case 'object':
        if (value === null) this.#bytes[this.#at++] = NULL
        else if (Array.isArray(value)) this.#list(value, null)
        else this.#map(value as Readonly<Record<string, unknown>>)
        return
      default:
        assert(typeof value !== 'bigint', 'a BigInt is no JSON value')
        this.#bytes[this.#at++] = NULL
    }
  }

  /** A value that has the shape where it is an object, and a list of such where it is a list. */
  shaped(shape: WriteShape, value: unknown): void {
    if (typeof value !== 'object' || value === null) return this.value(value)
    if (Array.isArray(value)) {
      this.#room()
      return this.#list(value, shape)
    }
    this.#deeper()
    shape.write(this, value)
    this.#depth--
  }

  /** Begins the members of a shape; those of the mask's bits follow, lowest first. */
  members(mask: number): void {
    this.#room()
    this.#bytes[this.#at++] = SHAPED
    this.#varint(mask)
  }

  /** Bytes of all that was taken. */
  get size(): number {
    const { length } = this.#narrow
    const wide = this.#wide.length * 2
    return (
      1 + varintSize(this.#at) + varintSize(length) + varintSize(wide) + this.#at + length + wide
    )
  }

  /** Writes all that was taken, `size` bytes, to `at`. */
  into(target: Buffer, at: number): void {
    const structure = this.#at
    const wide = this.#wide.length * 2
    let to = at
    target[to++] = MARK
    to = putVarint(target, to, structure)
    to = putVarint(target, to, this.#narrow.length)
    to = putVarint(target, to, wide)
    target.set(this.#bytes.subarray(0, structure), to)
    to += structure
    to += target.write(this.#narrow, to, 'latin1')
    if (wide > 0) target.write(this.#wide, to, 'utf16le')
  }

  #room(): void {
    if (this.#at + HEAD_BYTES <= this.#bytes.length) return
    const larger = new Uint8Array(this.#bytes.length * 2)
    larger.set(this.#bytes)
    this.#bytes = larger
  }

  #varint(n: number): void {
    this.#at = putVarint(this.#bytes, this.#at, n)
  }

  #text(text: string): void {
    const { length } = text
    if (this.#isWide && WIDE.test(text)) {
      this.#bytes[this.#at++] = WIDE_TEXT
      this.#varint(length)
      this.#wide += text
      return
    }
    if (length < TEXT_MAX) {
      this.#bytes[this.#at++] = length
    } else {
      this.#bytes[this.#at++] = TEXT
      this.#varint(length)
    }
    this.#narrow += text
  }

  #number(n: number): void {
    const bytes = this.#bytes
    if (Number.isSafeInteger(n)) {
      if (n >= 0 && n < TEXT_MAX) {
        bytes[this.#at++] = TEXT_MAX + n
        return
      }
      bytes[this.#at++] = n < 0 ? NEGATIVE : INTEGER
      return this.#varint(Math.abs(n))
    }
    const cents = Math.round(Math.abs(n) * 100)
    if (cents < SMALL && cents / 100 === Math.abs(n)) {
      bytes[this.#at++] = n < 0 ? NEGATIVE_CENTS : CENTS
      return this.#varint(cents)
    }
    if (!Number.isFinite(n)) {
      bytes[this.#at++] = NULL
      return
    }
    bytes[this.#at++] = DOUBLE
    double[0] = n
    bytes.set(doubleBytes, this.#at)
    this.#at += 8
  }

  #list(list: readonly unknown[], shape: WriteShape | null): void {
    const { length } = list
    if (length < SHORT_LIST_MAX) {
      this.#bytes[this.#at++] = SHORT_LIST + length
    } else {
      this.#bytes[this.#at++] = LIST
      this.#varint(length)
    }
    this.#deeper()
    if (shape === null) for (let i = 0; i < length; i++) this.value(list[i])
    else for (let i = 0; i < length; i++) this.shaped(shape, list[i])
    this.#depth--
  }

  #map(map: Readonly<Record<string, unknown>>): void {
    const { toJSON } = map
    if (typeof toJSON === 'function') return this.value((toJSON as () => unknown).call(map))
    const keys = Object.keys(map)
    let count = 0
    for (const key of keys) if (isThere(map[key])) count++
    this.#bytes[this.#at++] = MAP
    this.#varint(count)
    this.#deeper()
    for (const key of keys) {
      const value = map[key]
      if (!isThere(value)) continue
      this.#room()
      this.#text(key)
      this.value(value)
    }
    this.#depth--
  }

  #deeper(): void {
    assert(++this.#depth <= VALUE_DEPTH_MAX, `nested deeper than ${VALUE_DEPTH_MAX} levels`)
  }
}

/** Whether a map has a member of this value: JSON leaves the others out. */
export function isThere(value: unknown): boolean {
  return value !== undefined && typeof value !== 'function' && typeof value !== 'symbol'
}

/** Writes a number of up to 53 bits, seven a byte, lowest first; answers where it ends. */
function putVarint(target: Uint8Array, at: number, n: number): number {
  let to = at
  let left = n
  while (left >= SMALL) {
    target[to++] = (left % 0x80) | 0x80
    left = Math.floor(left / 0x80)
  }
  while (left >= 0x80) {
    target[to++] = (left & 0x7f) | 0x80
    left >>>= 7
  }
  target[to++] = left
  return to
}

function varintSize(n: number): number {
  let size = 1
  for (let left = n; left >= 0x80; left = Math.floor(left / 0x80)) size++
  return size
}
