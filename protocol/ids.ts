// Identifiers and where they lead: UUIDv7 making, and the pinned hashes that say which shard an
// actor or a natural key belongs to. It stands between callers' names for things and the shards.
// Changing a hash or a layout here re-maps stored data: ids.test.ts pins them with golden values.

const HEX: string[] = Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0'))

/** Source of random bytes; injected so that a simulation can seed it. */
export type FillRandom = (bytes: Uint8Array) => void

/** The `system` shard: what every member needs at hand (PROTOCOL 3.0). */
export const SYSTEM_SHARD = -1

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const UUID_ANY_CASE = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** True for a UUID in its canonical lower-case form. */
export function isUuid(text: string): boolean {
  return text.length === 36 && UUID.test(text)
}

/** The canonical form of a UUID in any letter case, or null. */
export function toUuid(text: string): string | null {
  return text.length === 36 && UUID_ANY_CASE.test(text) ? text.toLowerCase() : null
}

export function formatUuid(b: Uint8Array): string {
  return (
    HEX[b[0]!]! +
    HEX[b[1]!]! +
    HEX[b[2]!]! +
    HEX[b[3]!]! +
    '-' +
    HEX[b[4]!]! +
    HEX[b[5]!]! +
    '-' +
    HEX[b[6]!]! +
    HEX[b[7]!]! +
    '-' +
    HEX[b[8]!]! +
    HEX[b[9]!]! +
    '-' +
    HEX[b[10]!]! +
    HEX[b[11]!]! +
    HEX[b[12]!]! +
    HEX[b[13]!]! +
    HEX[b[14]!]! +
    HEX[b[15]!]!
  )
}

/** The sixteen bytes of a canonical UUID. */
export function uuidBytes(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex')
}

const pool = new Uint8Array(4096)
const scratch = new Uint8Array(16)

/**
 * Maker of UUIDv7 (RFC 9562 5.7): 48 bits of milliseconds, the rest random. `tail`, when given,
 * becomes the last two bytes: a `create` with a chosen number puts the number's hash there, so
 * that alias and actor fall into one shard (ARCHITECTURE 4).
 */
export function uuidMaker(random: FillRandom): (nowMs: number, tail?: number) => string {
  const own = new Uint8Array(pool.length)
  let used = own.length
  return (nowMs, tail) => {
    if (used + 10 > own.length) {
      random(own)
      used = 0
    }
    scratch.set(own.subarray(used, used + 10), 6)
    used += 10
    return formatUuid(stampUuid7(scratch, nowMs, tail))
  }
}

/** Puts time, version, variant and `tail` into sixteen bytes whose rest is already chosen. */
export function stampUuid7(bytes: Uint8Array, nowMs: number, tail?: number): Uint8Array {
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
    bytes[14] = (tail >>> 8) & 0xff
    bytes[15] = tail & 0xff
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

/**
 * Places of keys that are a prefix and a number: `keyPlacer(t, p)(n)` is `placeOfKey(t, p + n)`,
 * without making the text. About as many are tried for a generated number as there are shards.
 */
export function keyPlacer(type: string, prefix: string): (n: number) => number {
  const start = fnv1aText(prefix, fnv1aText(type) ^ 0x9e3779b9)
  return (n) => {
    let divisor = 1
    while (n / divisor >= 10) divisor *= 10
    let h = start
    for (; divisor >= 1; divisor /= 10) {
      const digit = 48 + (Math.floor(n / divisor) % 10)
      h = Math.imul(Math.imul(h ^ digit, 0x01000193), 0x01000193)
    }
    h >>>= 0
    return (h ^ (h >>> 16)) & 0xffff
  }
}

/** The shard of a place, of `shards` (a power of two). */
export function shardOf(place: number, shards: number): number {
  return place & (shards - 1)
}

/** A place in that shard: `place`, but for the bits that say which shard it is. */
export function placeIn(shard: number, place: number, shards: number): number {
  return (place & ~(shards - 1)) | shard
}

/** Where a reader of a shard stands: "done up to and including". */
export interface Position {
  readonly shard: number
  readonly offset: number
}
