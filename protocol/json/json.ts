// JSON from outside, read so that nothing in it can hurt the code that takes objects, keys and
// numbers at their word. Node's own parser does the parsing; one pass over the bytes before it
// finds what that parser would let through. Source: CONTRACT 0 "Bodies".

import { isUtf8 } from 'node:buffer'
import { RequestError } from '../errors.ts'
import { invalidUtf8At, syntaxFaultOf } from './json-fault.ts'

/** Deepest nesting that is read where the caller names no other bound. */
export const JSON_DEPTH_MAX = 64
/**
 * Most values of one text, members and elements of all levels: each is some 100 bytes of heap, and
 * work for every step that follows.
 */
export const JSON_VALUES_MAX = 250_000
/** Most members of one object: V8 takes microseconds for each of a large one. */
export const JSON_MEMBERS_MAX = 20_000

// What a byte means outside a string; 0 is a byte that needs no look.
const QUOTE = 1
const OPEN = 2
const CLOSE = 3
const DIGIT = 4
const COMMA = 5
const CLASS = new Uint8Array(256)
CLASS[0x22] = QUOTE
CLASS[0x2c] = COMMA
for (const c of '[{') CLASS[c.charCodeAt(0)] = OPEN
for (const c of ']}') CLASS[c.charCodeAt(0)] = CLOSE
for (const c of '0123456789') CLASS[c.charCodeAt(0)] = DIGIT

const BACKSLASH = 0x5c
const BRACE = 0x7b
/** Where counting begins for an array: no text has as many commas as are left above it. */
const ARRAY = 0x4000_0000
/** Digits that can't overflow whatever they are; longer runs and exponents are looked at. */
const PLAIN_DIGITS_MAX = 300
const PROTO = '__proto__'
const CONSTRUCTOR = 'constructor'

/**
 * The value of a JSON text in UTF-8, or the refusal to send: 400 MALFORMED_REQUEST with the place.
 * Refused beyond bad syntax: invalid UTF-8, escapes of lone surrogates, `__proto__` keys and
 * `constructor.prototype`, nesting deeper than `depthMax`, numbers that a double can't hold; 413
 * for more than JSON_VALUES_MAX values, or JSON_MEMBERS_MAX members of one object.
 */
export function parseJson(bytes: Uint8Array, depthMax = JSON_DEPTH_MAX): unknown {
  if (!isUtf8(bytes)) {
    const position = invalidUtf8At(bytes)
    return malformed(`the JSON text is not valid UTF-8 at byte ${position}`, { position })
  }
  const scan = new Scan(bytes, depthMax)
  const refused = scan.run()
  if (refused !== null) return refused
  const text = textOf(bytes)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return explainSyntax(text)
  }
  if (scan.constructorSeen && pollutes(value)) {
    return malformed("a key 'constructor' holds an object with the key 'prototype'", {})
  }
  return value
}

function tooMany(what: string, most: number): RequestError {
  return new RequestError('TOO_LARGE', `the JSON text has more than ${most} ${what}`, { most })
}

function textOf(bytes: Uint8Array): string {
  const buffer = Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return buffer.toString('utf8')
}

function malformed(message: string, details: Record<string, unknown>): RequestError {
  return new RequestError('MALFORMED_REQUEST', message, details)
}

function explainSyntax(text: string): RequestError {
  const fault = syntaxFaultOf(text)
  const { position, line, column } = fault
  return malformed(
    `not JSON: at line ${line}, column ${column} there is ${fault.found}, expected ${fault.expected}`,
    { position, line, column },
  )
}

/**
 * The pass over the bytes. It needs no valid JSON: what it says about an invalid text is a refusal
 * either way. Nesting is checked before the parser runs, which would build a million arrays first.
 */
class Scan {
  private readonly bytes: Uint8Array
  private readonly depthMax: number
  /** Where the string under the scan has its first escape, or -1. */
  private escapeAt = -1
  constructorSeen = false
  /** Commas seen at each depth since it was last opened by a brace. */
  private readonly commas: Uint32Array

  constructor(bytes: Uint8Array, depthMax: number) {
    this.bytes = bytes
    this.depthMax = depthMax
    this.commas = new Uint32Array(depthMax + 1)
  }

  run(): RequestError | null {
    const bytes = this.bytes
    const length = bytes.length
    let depth = 0
    const { commas } = this
    let values = 1
    let i = 0
    while (i < length) {
      const kind = CLASS[bytes[i]!]!
      if (kind === 0) {
        i++
      } else if (kind === QUOTE) {
        const start = i + 1
        i = this.stringEnd(start)
        if (i < 0) return this.loneSurrogate(-i)
        if (this.suspect(start, i) && this.isRefusedKey(start, i)) {
          return malformed(`the key '${PROTO}' at byte ${start - 1} is not allowed`, {
            position: start - 1,
          })
        }
        i++
      } else if (kind === DIGIT) {
        const start = i
        do i++
        while (i < length && CLASS[bytes[i]!] === DIGIT)
        const next = bytes[i]
        if (i - start > PLAIN_DIGITS_MAX || next === 0x2e || next === 0x65 || next === 0x45) {
          i = this.numberEnd(i)
          const refused = this.numberFault(start, i)
          if (refused !== null) return refused
        }
      } else if (kind === OPEN) {
        if (++depth > this.depthMax) return this.tooDeep(i)
        if (++values > JSON_VALUES_MAX) return tooMany('values', JSON_VALUES_MAX)
        // Elements of an array are as good as any number of members.
        commas[depth] = bytes[i] === BRACE ? 0 : ARRAY
        i++
      } else if (kind === COMMA) {
        if (++values > JSON_VALUES_MAX) return tooMany('values', JSON_VALUES_MAX)
        if (++commas[depth]! === JSON_MEMBERS_MAX) {
          return tooMany('members in one object', JSON_MEMBERS_MAX)
        }
        i++
      } else {
        depth--
        i++
      }
    }
    return null
  }

  /** Index of the closing quote (or the length); minus the place of a lone surrogate's escape. */
  private stringEnd(start: number): number {
    const bytes = this.bytes
    const length = bytes.length
    this.escapeAt = -1
    let i = start
    while (i < length) {
      const c = bytes[i]!
      if (c === 0x22) return i
      if (c !== BACKSLASH) {
        i++
        continue
      }
      if (this.escapeAt < 0) this.escapeAt = i
      if (bytes[i + 1] !== 0x75) {
        i += 2
        continue
      }
      const unit = this.hex4(i + 2)
      if (unit < 0xd800 || unit > 0xdfff) {
        i += 6
        continue
      }
      if (unit >= 0xdc00) return -i
      const paired = bytes[i + 6] === BACKSLASH && bytes[i + 7] === 0x75
      const low = paired ? this.hex4(i + 8) : 0
      if (low < 0xdc00 || low > 0xdfff) return -i
      i += 12
    }
    return length
  }

  /** Returns the code unit of four hex digits, or 0 when they are none: the parser says so. */
  private hex4(at: number): number {
    let unit = 0
    for (let i = at; i < at + 4; i++) {
      const c = this.bytes[i] ?? 0
      const digit = c >= 0x30 && c <= 0x39 ? c - 0x30 : (c | 0x20) >= 0x61 ? (c | 0x20) - 0x57 : 99
      if (digit > 15) return 0
      unit = unit * 16 + digit
    }
    return unit
  }

  /** Cheap test that leaves few strings to look at as keys. */
  private suspect(start: number, end: number): boolean {
    if (this.escapeAt >= 0) return true
    const length = end - start
    const first = this.bytes[start]
    return (
      (length === PROTO.length && first === 0x5f) ||
      (length === CONSTRUCTOR.length && first === 0x63)
    )
  }

  private isRefusedKey(start: number, end: number): boolean {
    let after = end + 1
    while (isSpace(this.bytes[after])) after++
    if (this.bytes[after] !== 0x3a) return false
    let key = textOf(this.bytes.subarray(start, end))
    if (this.escapeAt >= 0) {
      try {
        key = JSON.parse(`"${key}"`) as string
      } catch {
        return false
      }
    }
    if (key === CONSTRUCTOR) this.constructorSeen = true
    return key === PROTO
  }

  private numberEnd(from: number): number {
    let i = from
    while (i < this.bytes.length) {
      const c = this.bytes[i]!
      const inNumber =
        CLASS[c] === DIGIT || c === 0x2e || c === 0x2b || c === 0x2d || c === 0x65 || c === 0x45
      if (!inNumber) break
      i++
    }
    return i
  }

  private numberFault(start: number, end: number): RequestError | null {
    // A decimal of ordinary size is the usual case; only exponents and long runs can overflow.
    if (end - start < 20 && !this.hasExponent(start, end)) return null
    const text = textOf(this.bytes.subarray(start, end))
    const value = Number(text)
    if (Number.isNaN(value)) return null
    const vanished = value === 0 && /[1-9]/.test(text.split(/e/i, 1)[0]!)
    if (Number.isFinite(value) && !vanished) return null
    const shown = text.length > 40 ? `${text.slice(0, 40)}...` : text
    return malformed(`the number ${shown} at byte ${start} is out of range`, { position: start })
  }

  private hasExponent(start: number, end: number): boolean {
    for (let i = start; i < end; i++) if ((this.bytes[i]! | 0x20) === 0x65) return true
    return false
  }

  private loneSurrogate(position: number): RequestError {
    return malformed(
      `the escape at byte ${position} is half of a surrogate pair; both halves are needed`,
      { position },
    )
  }

  private tooDeep(position: number): RequestError {
    return malformed(`nested deeper than ${this.depthMax} levels at byte ${position}`, {
      position,
      depthMax: this.depthMax,
    })
  }
}

function isSpace(c: number | undefined): boolean {
  return c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09
}

function pollutes(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return value.some(pollutes)
  for (const [key, member] of Object.entries(value)) {
    const held = typeof member === 'object' && member !== null
    if (key === CONSTRUCTOR && held && Object.hasOwn(member, 'prototype')) return true
    if (pollutes(member)) return true
  }
  return false
}
