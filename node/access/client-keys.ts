// Whether a client's public key can open anything: with one that nothing reads nobody signs in, so
// an owner with no other is none. Source: RFC 7517 4, RFC 7518 3.3, 3.4, CONTRACT 1.8 "one owner
// stays".

import { createPublicKey } from 'node:crypto'
import type { JsonWebKey } from 'node:crypto'

const CURVES = ['P-256', 'P-384', 'P-521', 'Ed25519']
const RSA_BITS_MIN = 2_048

/** It is a public key that a signature of a sign-in can be checked with. */
export function canVerify(jwk: Readonly<Record<string, unknown>>): boolean {
  const { use = 'sig', kty, crv } = jwk
  if (use !== 'sig') return false
  try {
    const { asymmetricKeyDetails } = createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' })
    if (kty === 'RSA') return (asymmetricKeyDetails?.modulusLength ?? 0) >= RSA_BITS_MIN
    return CURVES.includes(crv as string)
  } catch {
    return false
  }
}
