// Which keys a client may register: public ones, and such as are checked in a short time.

import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { clientOf } from './administration/testing/scene.ts'
import { checkClient } from './administration/client-changes.ts'
import { canVerify, faultOfKey } from './client-keys.ts'

const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 })
const good = createPublicKey(rsa.privateKey).export({ format: 'jwk' })
const bytes = (count: number): string => Buffer.alloc(count, 0xab).toString('base64url')

t.test('keys that take long to check, and such as are none of the public', (t) => {
  t.equal(faultOfKey({ ...good }), null)
  t.ok(canVerify({ ...good }))
  const { rsaKeyBitsMax, rsaExponentBytesMax } = LIMITS.access
  t.equal(faultOfKey({ ...good, n: bytes(rsaKeyBitsMax / 8) }), null)
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' })
  const wrong: [object, RegExp][] = [
    [{ ...good, n: bytes(rsaKeyBitsMax / 8 + 1) }, /bits/],
    // OpenSSL takes one as long as the key where that has 3,072 bits: 6 ms a signature.
    [{ ...good, e: bytes(rsaExponentBytesMax + 1) }, /exponent/],
    [rsa.privateKey.export({ format: 'jwk' }), /private part/],
    [ec, /private part/],
    [{ kty: 'oct', k: bytes(32) }, /private part/],
  ]
  for (const [key, why] of wrong) {
    t.match(faultOfKey({ ...key }), why)
    t.notOk(canVerify({ ...key }))
    const client = clientOf()
    const properties = { ...client.properties, jwks: { keys: [{ ...key }] } }
    t.match(checkClient({ ...client, properties }), { member: 'properties.jwks.keys.0' })
  }
  t.end()
})
