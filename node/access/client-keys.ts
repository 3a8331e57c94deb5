// Whether a client's public key can open anything: with one that nothing reads nobody signs in, so
// an owner with no other is none. Source: RFC 7517 4, RFC 7518 3.3, 3.4, CONTRACT 1.8 "one owner
// stays".

import { createPublicKey } from 'node:crypto'
import type { JsonWebKey } from 'node:crypto'
import { LIMITS } from '../../config/limits.ts'

/** Signatures with a public key: with a shared one (HS256) or none nobody has shown anything. */
export const PUBLIC_KEY_ALGORITHMS: readonly string[] = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
]

const CURVES = ['P-256', 'P-384', 'P-521', 'Ed25519']
const RSA_BITS_MIN = 2_048

/** Members that only a private or a shared key has (RFC 7518 6.2.2, 6.3.2, 6.4). */
const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

/**
 * Why a client may not register a key: it would lie open, or anybody who signs something in the
 * client's name would have the node work for long. null: it may.
 */
export function faultOfKey(jwk: Readonly<Record<string, unknown>>): string | null {
  const { rsaKeyBitsMax, rsaExponentBytesMax } = LIMITS.access
  const told = PRIVATE.find((name) => jwk[name] !== undefined)
  if (told !== undefined) return `has the private part "${told}"; register the public key`
  if (jwk['kty'] !== 'RSA') return null
  if (bytesOf(jwk['n']) * 8 > rsaKeyBitsMax) return `is an RSA key of over ${rsaKeyBitsMax} bits`
  if (bytesOf(jwk['e']) <= rsaExponentBytesMax) return null
  return `has an exponent of over ${rsaExponentBytesMax} bytes; the usual one is AQAB`
}

const bytesOf = (base64: unknown): number =>
  typeof base64 === 'string' ? Math.floor((base64.length * 3) / 4) : 0

/** It is a public key that a signature of a sign-in can be checked with. */
export function canVerify(jwk: Readonly<Record<string, unknown>>): boolean {
  const { use = 'sig', kty, crv } = jwk
  if (use !== 'sig' || faultOfKey(jwk) !== null) return false
  try {
    const { asymmetricKeyDetails } = createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' })
    if (kty === 'RSA') return (asymmetricKeyDetails?.modulusLength ?? 0) >= RSA_BITS_MIN
    return CURVES.includes(crv as string)
  } catch {
    return false
  }
}
