// Identifiers and where they lead: UUIDv7 making, and the pinned hashes that say which shard an
// actor or a natural key belongs to. Changing a hash or a layout here re-maps stored data:
// ids.test.ts pins them with golden values.

const DIGITS = '0123456789abcdef'
/** Character codes of a byte's two hex digits. */
const HIGH = Uint8Array.from({ length: 256 }, (_, byte) => DIGITS.charCodeAt(byte >>> 4))
const LOW = Uint8Array.from({ length: 256 }, (_, byte) => DIGITS.charCodeAt(byte & 0xf))
const DASH = 0x2d
const UUID_CHARS = 36

/** Source of random bytes; injected so that a simulation can seed it. */
export type FillRandom = (bytes: Uint8Array) => void

/** The `system` shard: what every member needs at hand (PROTOCOL 3.0). */
export const SYSTEM_SHARD = -1

const LOWER = 1
const UPPER = 2
const MIXED = LOWER | UPPER
/** What a character is in a UUID; 0: nothing. */
const HEX_CASE = new Uint8Array(128)
for (const c of DIGITS) HEX_CASE[c.charCodeAt(0)] = LOWER
for (const c of 'ABCDEF') HEX_CASE[c.charCodeAt(0)] = UPPER

/** LOWER or MIXED: the case of a UUID's digits; 0 for what is no UUID. */
function caseOf(text: string): number {
  if (text.length !== UUID_CHARS) return 0
  let found = LOWER
  for (let i = 0; i < UUID_CHARS; i++) {
    const c = text.charCodeAt(i)
    if (i === 8 || i === 13 || i === 18 || i === 23) {
      if (c !== DASH) return 0
      continue
    }
    const digit = c < 128 ? HEX_CASE[c]! : 0
    if (digit === 0) return 0
    found |= digit
  }
  return found
}

/** True for a UUID in its canonical lower-case form. */
export function isUuid(text: string): boolean {
  return caseOf(text) === LOWER
}

/** The canonical form of a UUID in any letter case, or null. */
export function toUuid(text: string): string | null {
  const found = caseOf(text)
  if (found === LOWER) return text
  return found === MIXED ? text.toLowerCase() : null
}

/** All characters in one call: joined byte by byte they would be a chain of twenty strings. */
export function formatUuid(b: Uint8Array): string {
  return String.fromCharCode(
    HIGH[b[0]!]!,
    LOW[b[0]!]!,
    HIGH[b[1]!]!,
    LOW[b[1]!]!,
    HIGH[b[2]!]!,
    LOW[b[2]!]!,
    HIGH[b[3]!]!,
    LOW[b[3]!]!,
    DASH,
    HIGH[b[4]!]!,
    LOW[b[4]!]!,
    HIGH[b[5]!]!,
    LOW[b[5]!]!,
    DASH,
    HIGH[b[6]!]!,
    LOW[b[6]!]!,
    HIGH[b[7]!]!,
    LOW[b[7]!]!,
    DASH,
    HIGH[b[8]!]!,
    LOW[b[8]!]!,
    HIGH[b[9]!]!,
    LOW[b[9]!]!,
    DASH,
    HIGH[b[10]!]!,
    LOW[b[10]!]!,
    HIGH[b[11]!]!,
    LOW[b[11]!]!,
    HIGH[b[12]!]!,
    LOW[b[12]!]!,
    HIGH[b[13]!]!,
    LOW[b[13]!]!,
    HIGH[b[14]!]!,
    LOW[b[14]!]!,
    HIGH[b[15]!]!,
    LOW[b[15]!]!,
  )
}

/** The sixteen bytes of a canonical UUID. */
export function uuidBytes(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex')
}

const pool = new Uint8Array(4096)
const scratch = new Uint8Array(16)

/** Makes a UUIDv7; of `tail`, when given, the bits that `mask` has become those of its end. */
export type MakeUuid = (nowMs: number, tail?: number, mask?: number) => string

/**
 * Maker of UUIDv7 (RFC 9562 5.7): 48 bits of milliseconds, the rest random. `tail`, when given,
 * becomes the last two bytes: a `create` with a chosen number puts the number's hash there, so
 * that alias and actor fall into one shard (ARCHITECTURE 4).
 */
export function uuidMaker(random: FillRandom): MakeUuid {
  const own = new Uint8Array(pool.length)
  let used = own.length
  return (nowMs, tail, mask) => {
    if (used + 10 > own.length) {
      random(own)
      used = 0
    }
    for (let i = 6; i < 16; i++) scratch[i] = own[used++]!
    return formatUuid(stampUuid7(scratch, nowMs, tail, mask))
  }
}

/**
 * Puts time, version, variant and the bits of `tail` that `mask` has into sixteen bytes whose rest
 * is already chosen.
 */
export function stampUuid7(
  bytes: Uint8Array,
  nowMs: number,
  tail?: number,
  mask = 0xffff,
): Uint8Array {
  const high = Math.floor(nowMs / 0x1_0000_0000)
  bytes[0] = (high >>> 8) & 0xff
  bytes[1] = high & 0xff
  const low = nowMs % 0x1_0000_0000
  bytes[2] = (low >>> 24) & 0xff
  bytes[3] = (low >>> 16) & 0xff
  bytes[4] = (low >>> 8) & 0xff
  bytes[5] = low & 0xff
  bytes[6] = (bytes[6]! & 0x0f) | 0x70
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  if (tail !== undefined) {
    const end = ((((bytes[14]! << 8) | bytes[15]!) & ~mask) | (tail & mask)) & 0xffff
    bytes[14] = end >>> 8
    bytes[15] = end & 0xff
  }
  return bytes
}

/** FNV-1a, 32 bits, over UTF-16 code units low byte first. Pinned. */
export function fnv1aText(text: string, seed = 0x811c9dc5): number {
  let h = seed
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    h = Math.imul(h ^ (c & 0xff), 0x01000193)
    h = Math.imul(h ^ (c >>> 8), 0x01000193)
  }
  return h >>> 0
}

function fnv1aBytes(bytes: Uint8Array): number {
  let h = 0x811c9dc5
  for (const b of bytes) h = Math.imul(h ^ b, 0x01000193)
  return h >>> 0
}

/** Sixteen bits to place an actor by: a version 7's last two bytes, any other's FNV-1a. Pinned. */
export function placeOfActor(uuid: string): number {
  if (uuid.charCodeAt(14) === 0x37) return Number.parseInt(uuid.slice(32), 16)
  const h = fnv1aBytes(uuidBytes(uuid))
  return (h ^ (h >>> 16)) & 0xffff
}

/** Sixteen bits to place a natural key by. Pinned. */
export function placeOfKey(type: string, key: string): number {
  const h = fnv1aText(key, fnv1aText(type) ^ 0x9e3779b9)
  return (h ^ (h >>> 16)) & 0xffff
}

/** Keys made of a prefix and a number, and the shard of `shards` in which they should lie. */
export interface NumberKeys {
  readonly type: string
  readonly prefix: string
  readonly shard: number
  readonly shards: number
}

/**
 * The lowest number above `after` whose key lies in the shard. About as many are tried as there are
 * shards, so no text is made for each: of ten after each other only the last digit differs.
 */
export function nextNumberIn({ type, prefix, shard, shards }: NumberKeys, after: number): number {
  const start = fnv1aText(prefix, fnv1aText(type) ^ 0x9e3779b9)
  let tens = Math.floor((after + 1) / 10)
  let digit = after + 1 - tens * 10
  for (;;) {
    const stem = tens === 0 ? start : fnv1aText(String(tens), start)
    for (; digit < 10; digit++) {
      const h = Math.imul(Math.imul(stem ^ (0x30 + digit), 0x01000193), 0x01000193)
      if (shardOf((h ^ (h >>> 16)) & 0xffff, shards) === shard) return tens * 10 + digit
    }
    tens++
    digit = 0
  }
}

/** The shard of a place, of `shards` (a power of two). */
export function shardOf(place: number, shards: number): number {
  return place & (shards - 1)
}

/** Where a reader of a shard stands: "done up to and including". */
export interface Position {
  readonly shard: number
  readonly offset: number
}
