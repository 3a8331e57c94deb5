// For how long the bytes of a body are counted among those that share a bound.

import { gzipSync } from 'node:zlib'
import t from 'tap'
import { release } from './arriving.ts'
import { gatherBody } from './body.ts'
import type { Exchange } from './exchange.ts'
import { operation, request, startServer } from './testing/test-server.ts'

/** A body of six bytes in two pieces; what is counted behind each. */
function gathered(encoding: string) {
  const known = { bytes: 0, bytesMax: 100 }
  const counted: number[] = []
  let deliver: (chunk: ArrayBuffer, last: boolean) => void = () => undefined
  const x = {
    core: {
      bodies: { known, strangers: { ...known }, lines: { ...known } },
      clock: { monotonicMs: () => 0 },
    },
    ...{ who: {}, streaming: false, received: 0, arrived: 0, pool: null },
    route: { door: { bytesMax: 100, packed: true } },
    header: (name: string) => (name === 'content-encoding' ? encoding : ''),
    hold: () => undefined,
    res: { onData: (take: typeof deliver) => (deliver = take) },
  } as unknown as Exchange
  gatherBody(x, 6, () => counted.push(known.bytes))
  deliver(new ArrayBuffer(4), false)
  counted.unshift(known.bytes)
  deliver(new ArrayBuffer(2), true)
  release(x)
  return [...counted, known.bytes]
}

t.test('a packed body is counted until it is unpacked, any other until it is whole', async (t) => {
  t.strictSame(gathered(''), [4, 0, 0])
  t.strictSame(gathered('gzip'), [4, 4, 0])
})

t.test('nothing stays counted of what was served', async (t) => {
  const echo = operation('POST', '/echo', ({ body }) => ({ status: 200, body }), {
    body: { type: 'json', required: true },
    access: 'token',
  })
  const http = await startServer([echo], { limits: { bodiesBytesMax: 300 } })
  t.teardown(http.stop)
  const [good, broken] = [gzipSync(JSON.stringify('x'.repeat(50))), Buffer.alloc(50)]
  for (let i = 0; i < 20; i++) {
    const body = i % 2 ? broken : good
    const length = { 'Content-Length': String(body.length) }
    const head = { Authorization: 'Bearer good', 'Content-Encoding': 'gzip', ...length }
    const c = http.client().send(request('POST /echo', head)).send(body.subarray(0, 20))
    await new Promise((resolve) => setImmediate(resolve))
    const { status } = await c.send(body.subarray(20)).response()
    t.equal(status, i % 2 ? 400 : 200)
  }
})
