// A key and a certificate made here: the least of ASN.1 that a self-signed one needs. For tests of
// TLS.

import { generateKeyPairSync, sign } from 'node:crypto'
import type { KeyObject } from 'node:crypto'

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const size = content.length
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

const SEQUENCE = 0x30
const ECDSA_SHA256 = der(SEQUENCE, Buffer.from('06082a8648ce3d040302', 'hex'))

function selfSigned(publicKey: KeyObject, privateKey: KeyObject): string {
  const commonName = der(
    SEQUENCE,
    Buffer.from('0603550403', 'hex'),
    der(0x0c, Buffer.from('localhost')),
  )
  const name = der(SEQUENCE, der(0x31, commonName))
  const time = (text: string): Buffer => der(0x17, Buffer.from(text))
  const validity = der(SEQUENCE, time('200101000000Z'), time('491231235959Z'))
  const subjectKey = publicKey.export({ type: 'spki', format: 'der' })
  const serial = der(0x02, Buffer.from([1]))
  const body = der(SEQUENCE, serial, ECDSA_SHA256, name, validity, name, subjectKey)
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, privateKey))
  const certificate = der(SEQUENCE, body, ECDSA_SHA256, signature).toString('base64')
  return `-----BEGIN CERTIFICATE-----\n${certificate}\n-----END CERTIFICATE-----\n`
}

/** A key and a certificate of its own for `localhost`, as PEM. */
export function keyAndCertificate(): { readonly key: string; readonly cert: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return { key, cert: selfSigned(publicKey, privateKey) }
}
