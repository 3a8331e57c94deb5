// Proof Key for Code Exchange: whether a verifier is the one that a challenge was made of. Source:
// RFC 7636 4.6.

import { createHash, timingSafeEqual } from 'node:crypto'

/** Method S256 alone: base64url(SHA-256(verifier)). Takes the same time either way. */
export function isChallengeOf(challenge: string, verifier: string): boolean {
  const kept = Buffer.from(challenge)
  const made = Buffer.from(createHash('sha256').update(verifier).digest('base64url'))
  return kept.length === made.length && timingSafeEqual(kept, made)
}
