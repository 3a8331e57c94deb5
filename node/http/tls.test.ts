// HTTPS with a key and a certificate made here: the least of ASN.1 that a self-signed one needs.

import t from 'tap'
import { generateKeyPairSync, sign } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import { operation, startServer } from './testing/test-server.ts'

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

t.test('requests over TLS', async (t) => {
  const directory = t.testdir({})
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const tlsKeyFile = join(directory, 'key.pem')
  const tlsCertFile = join(directory, 'cert.pem')
  writeFileSync(tlsKeyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  writeFileSync(tlsCertFile, selfSigned(publicKey, privateKey))
  const echo = operation('POST', '/echo', (r) => ({ status: 200, body: r.body }), {
    body: { type: 'json', required: true },
  })
  const http = await startServer([echo], { settings: { tlsKeyFile, tlsCertFile } })
  t.teardown(http.stop)
  const text = JSON.stringify('é'.repeat(100_000))
  const answer = await new Promise<string>((resolve, reject) => {
    const options = { port: http.port, method: 'POST', path: '/echo', rejectUnauthorized: false }
    const sent = httpsRequest(options, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve(Buffer.concat(chunks).toString()))
    })
    sent.on('error', reject).end(text)
  })
  t.equal(answer, text)
  const plain = http.client().send('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await plain.closed()
  t.notMatch(plain.rest.toString(), /HTTP\/1.1 2/, 'plain text gets no answer')
})
