// HTTPS with a key and a certificate made here.

import t from 'tap'
import { writeFileSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import { keyAndCertificate } from '../../test/harness/self-signed.ts'
import { operation, startServer } from './testing/test-server.ts'

t.test('requests over TLS', async (t) => {
  const directory = t.testdir({})
  const { key, cert } = keyAndCertificate()
  const tlsKeyFile = join(directory, 'key.pem')
  const tlsCertFile = join(directory, 'cert.pem')
  writeFileSync(tlsKeyFile, key)
  writeFileSync(tlsCertFile, cert)
  const echo = operation('POST', '/echo', (r) => ({ status: 200, body: r.body }), {
    body: { type: 'json', required: true },
  })
  const http = await startServer([echo], { known: true, settings: { tlsKeyFile, tlsCertFile } })
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
