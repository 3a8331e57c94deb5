// Tokens and codes: base64url(16-byte session UUID ‖ 32 random bytes). The first 16 bytes name the
// session, which keeps a SHA-256 of the whole: enough for 256 random bits. Source: CONTRACT 1.11.

import { createHash, timingSafeEqual } from 'node:crypto'
import { formatUuid } from '../../protocol/ids.ts'
import type { FillRandom } from '../../protocol/ids.ts'

const TOKEN_BYTES = 48
const TOKEN_CHARS = 64
const UUID_BYTES = 16
/** Where the shared part of a refresh token ends, and 128 bits of its own begin. */
const FAMILY_END = 32
/** Base64 characters that hold nothing but the session's UUID. */
const SESSION_CHARS = 21

export interface NewToken {
  readonly sessionId: string
  readonly token: string
  /** base64url SHA-256 of the token's bytes. */
  readonly hash: string
}

export interface NewRefreshToken extends NewToken {
  /** base64url SHA-256 of the part that the refresh tokens of a session share. */
  readonly family: string
}

/** An access token or a code. The session's UUID is of version 4: it must not tell its time. */
export function makeToken(random: FillRandom, sessionId?: string): NewToken {
  const bytes = Buffer.alloc(TOKEN_BYTES)
  random(bytes)
  if (sessionId === undefined) {
    bytes[6] = (bytes[6]! & 0x0f) | 0x40
    bytes[8] = (bytes[8]! & 0x3f) | 0x80
  } else bytes.write(sessionId.replaceAll('-', ''), 'hex')
  return {
    sessionId: sessionId ?? formatUuid(bytes),
    token: bytes.toString('base64url'),
    hash: sha256(bytes).toString('base64url'),
  }
}

/**
 * A refresh token: half of its secret is that of all refresh tokens of its session, which only
 * their holders know. By it one that was rotated is told from one that was made up, without
 * keeping the hashes of all.
 */
export function makeRefreshToken(
  random: FillRandom,
  sessionId: string,
  last: ReadToken | null,
): NewRefreshToken {
  const bytes = Buffer.alloc(TOKEN_BYTES)
  random(bytes)
  bytes.write(sessionId.replaceAll('-', ''), 'hex')
  last?.bytes.copy(bytes, UUID_BYTES, UUID_BYTES, FAMILY_END)
  return {
    sessionId,
    token: bytes.toString('base64url'),
    hash: sha256(bytes).toString('base64url'),
    family: familyOf({ sessionId, bytes }),
  }
}

/** Hash of the part that the refresh tokens of a session share. */
export function familyOf({ bytes }: ReadToken): string {
  return sha256(bytes.subarray(0, FAMILY_END)).toString('base64url')
}

export function hashOf({ bytes }: ReadToken): string {
  return sha256(bytes).toString('base64url')
}

export interface ReadToken {
  readonly sessionId: string
  readonly bytes: Buffer
}

/**
 * The parts of a token's text, or null: not a token of ours. Node takes `+` and `/` for `-` and
 * `_`; here a token has the one spelling that was handed out, as caches and revocations go by it.
 */
export function readToken(text: string): ReadToken | null {
  if (text.length !== TOKEN_CHARS) return null
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length !== TOKEN_BYTES || bytes.toString('base64url') !== text) return null
  return { sessionId: formatUuid(bytes), bytes }
}

/** True when the token is the one whose hash is kept. Takes the same time either way. */
export function isTokenOf(token: ReadToken, hash: string): boolean {
  const kept = Buffer.from(hash, 'base64url')
  return kept.length === 32 && timingSafeEqual(sha256(token.bytes), kept)
}

/** Whether two kept hashes are the same. Takes the same time either way. */
export function isSameHash(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Name of a token in memory: only what its session is called, nothing of its secret. */
export function sessionPart(token: string): string {
  return token.slice(0, SESSION_CHARS)
}

/** The same name, from the session's UUID. */
export function sessionPartOf(sessionId: string): string {
  return Buffer.from(sessionId.replaceAll('-', ''), 'hex')
    .toString('base64url')
    .slice(0, SESSION_CHARS)
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest()
}
