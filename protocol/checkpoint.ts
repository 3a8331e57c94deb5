// Ids that are derived instead of stored: checkpoints and the ids made inside a turn. The same
// message on the same version makes the same ids again, so a turn can be replayed, previewed and
// simulated. Source: ARCHITECTURE 2.

import { fnv1aText, formatUuid, stampUuid7 } from './ids.ts'

/** sfc32, seeded with a text and a number: spreads well and costs a few nanoseconds a step. */
function sfc32(text: string, seed: number): () => number {
  let a = fnv1aText(text)
  let b = fnv1aText(text, a ^ 0x5bd1e995)
  let c = fnv1aText(text, b ^ seed)
  let d = seed ^ 0x9e3779b9
  const next = (): number => {
    const t = (((a + b) | 0) + d) | 0
    d = (d + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + t) | 0
    return t >>> 0
  }
  for (let i = 0; i < 12; i++) next()
  return next
}

const bytes = new Uint8Array(16)

function fill(next: () => number, nowMs: number): string {
  for (let i = 4; i < 16; i += 4) {
    const word = next()
    bytes[i] = word & 0xff
    bytes[i + 1] = (word >>> 8) & 0xff
    bytes[i + 2] = (word >>> 16) & 0xff
    bytes[i + 3] = word >>> 24
  }
  return formatUuid(stampUuid7(bytes, nowMs))
}

/** Maker of a turn's ids: UUIDv7 of `nowMs`, the rest seeded by message id and version. */
export function turnIds(messageId: string, version: number, nowMs: number): () => string {
  let next: (() => number) | null = null
  return () => {
    next ??= sfc32(messageId, version)
    return fill(next, nowMs)
  }
}

/** A UUIDv7 derived from a text: the same text and time make the same id. */
export function derivedId(text: string, nowMs: number): string {
  return fill(sfc32(text, 0), nowMs)
}

/**
 * Id of the checkpoint that an entry made (CONTRACT 1.3: one per message that committed records).
 */
export function checkpointId(actorId: string, messageId: string, timeMs: number): string {
  return derivedId(`checkpoint/${actorId}/${messageId}`, timeMs)
}
