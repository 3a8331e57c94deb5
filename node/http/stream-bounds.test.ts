// What streams may hold and how they end: half lines, chunked bodies, a server that closes.

import t from 'tap'
import { request as httpRequest } from 'node:http'
import { gzipSync } from 'node:zlib'
import { eventually, stalls } from './testing/raw-client.ts'
import type { RawClient } from './testing/raw-client.ts'
import { operation, request, startServer } from './testing/test-server.ts'

const NDJSON = { 'Content-Type': 'application/x-ndjson' }
/** Lines of 10 kB: more than the buffers of both kernels hold. */
const FLOOD_LINES = 1_000
let written = 0

const body = { type: 'ndjson', required: true } as const
const handle = (): { status: number } => ({ status: 200 })
const operations = [
  operation('POST', '/count', handle, {
    body,
    stream: async (_, { lines, write }) => {
      let read = 0
      for await (const line of lines) read += line.bytes.length + 1
      await write(String(read))
    },
  }),
  operation('POST', '/flood', handle, {
    body,
    stream: async (_, { write }) => {
      for (written = 0; written < FLOOD_LINES; written++) await write('x'.repeat(10_000))
    },
  }),
]

t.test('an answer that ends while the server closes is whole', async (t) => {
  const http = await startServer(operations, { known: true })
  const sent = httpRequest({ port: http.port, method: 'POST', path: '/flood', headers: NDJSON })
  const whole = new Promise<string>((resolve, reject) => {
    sent.on('error', reject)
    sent.on('response', (response) => {
      let received = 0
      response.on('data', (chunk: Buffer) => (received += chunk.length))
      response.on('error', reject)
      response.on('end', () => resolve(received >= FLOOD_LINES * 10_001 ? 'whole' : 'cut'))
    })
  })
  sent.end('a')
  await eventually(() => written > 10, 'the flood runs')
  const closed = http.server.close(10_000)
  t.equal(await whole, 'whole')
  await closed
})

t.test('behind a chunked body of a stream no request is served', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const c = http.client()
  c.send(request('POST /count', { ...NDJSON, 'Transfer-Encoding': 'chunked' }))
  c.send('2\r\na\n\r\n0\r\n')
  // uWebSockets.js takes the two bytes behind the last chunk for its end, whatever they are.
  c.send('X:')
  t.equal((await c.response()).body.toString(), '2\n')
  c.send(request('POST /count', NDJSON, 'smuggled'))
  await stalls(() => c.rest.length, 'nothing comes')
  t.equal(c.rest.length, 0)
})

t.test('lines that are here in part', async (t) => {
  const limits = {
    bodyIdleMs: 300,
    bodyBytesPerSecondMin: 100,
    linePartFreeBytes: 1_000,
    linePartsBytesMax: 100_000,
  }
  const http = await startServer(operations, { known: true, limits })
  t.teardown(http.stop)
  const packed = gzipSync('y'.repeat(90_000))
  const begin = (): RawClient =>
    http
      .client()
      .send(
        request('POST /count', { ...NDJSON, 'Content-Encoding': 'gzip', 'Content-Length': '500' }),
      )
      .send(packed.subarray(0, packed.length - 10))
  const first = begin()
  await eventually(() => http.metrics.text().includes('requests_in_flight 1\n'), 'the first')
  await eventually(() => http.metrics.text().includes('line_parts_bytes 8'), 'its part is counted')
  const refused = await begin().response()
  t.equal(refused.status, 429)
  first.destroy()
  const slow = http.client().send(request('POST /count', { ...NDJSON, 'Content-Length': '500' }))
  slow.send('whole\npart of a li')
  // A byte now and then keeps no line: it has a least rate while it comes.
  const drip = setInterval(() => slow.send('n'), 50)
  t.teardown(() => clearInterval(drip))
  await slow.closed()
  await eventually(() => http.metrics.text().includes('line_parts_bytes 0\n'), 'all is given back')
})
