// Streamed operations over real sockets: lines in and out, back-pressure both ways, and ends of
// all kinds.

import t from 'tap'
import { request as httpRequest } from 'node:http'
import type { ClientRequest } from 'node:http'
import { gzipSync } from 'node:zlib'
import { RequestError } from '../../protocol/errors.ts'
import type { LineStream, Operation, OperationRequest } from './operation.ts'
import { eventually, stalls } from './testing/raw-client.ts'
import type { RawClient } from './testing/raw-client.ts'
import { errorOf, operation, request, startServer } from './testing/test-server.ts'

const MiB = 1024 * 1024
const NDJSON = { 'Content-Type': 'application/x-ndjson' }

/** Lines of 10 kB: more than the buffers of both kernels hold. */
const FLOOD_LINES = 5_000

let read = 0
let ended = ''
let latch: PromiseWithResolvers<void> = Promise.withResolvers()

function streamed(
  path: string,
  stream: (r: OperationRequest, s: LineStream) => Promise<void>,
  more: Partial<Operation> = {},
): Operation {
  const handle: Operation['handle'] = () => ({ status: 200, body: 'handled' })
  return operation('POST', path, handle, {
    stream,
    body: { type: 'ndjson', required: true },
    ...more,
  })
}

const operations = [
  streamed('/echo', async (_, { lines, write }) => {
    for await (const { number, bytes } of lines) {
      await write(`${number}:${typeof bytes === 'string' ? bytes : bytes.toString()}`)
    }
  }),
  streamed('/count', async (r, { lines, write }) => {
    ended = ''
    read = 0
    for await (const line of lines) read += line.bytes.length + 1
    ended = r.aborted() ? 'aborted' : 'read'
    await write(String(read))
  }),
  streamed('/gated', async (_, { lines, write }) => {
    read = 0
    for await (const line of lines) {
      await latch.promise
      read += line.bytes.length + 1
    }
    await write(String(read))
  }),
  streamed('/first', async (_, { lines, write }) => {
    for await (const line of lines) {
      await write(`only ${line.bytes.toString()}`)
      break
    }
  }),
  streamed('/flood', async (r, { write }) => {
    ended = ''
    const line = 'x'.repeat(10_000)
    read = 0
    for (let i = 0; i < FLOOD_LINES && !r.aborted(); i++) {
      await write(line)
      read++
    }
    ended = r.aborted() ? 'aborted' : 'written'
  }),
  streamed('/refuses', async () => {
    throw new RequestError('TOO_BUSY', 'not now')
  }),
  streamed('/breaks', async (_, { write }) => {
    await write('one')
    throw new Error('private')
  }),
  streamed('/refuses-late', async (_, { write }) => {
    await write('one')
    throw new RequestError('UNAVAILABLE', 'no more')
  }),
  streamed('/who', async (r, { write }) => await write(r.identity.id), { access: 'token' }),
  streamed('/both', async (_, { write }) => await write('streamed'), {
    body: { type: 'json', required: false },
  }),
]

/** Sends `line` again and again, as fast as the socket takes it; tells how much it has given. */
function pump(c: RawClient, line: string, total: number): () => number {
  let sent = 0
  const more = (): void => {
    while (sent < total) {
      sent += line.length
      if (!c.socket.write(line)) {
        c.socket.once('drain', more)
        return
      }
    }
  }
  more()
  return () => sent
}

const post = (path: string, headers: Readonly<Record<string, string>>, body: string): string =>
  request(`POST ${path}`, { ...NDJSON, ...headers }, body)

t.test('lines in, lines out', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const c = http.client()
  const response = await c.send(post('/echo', {}, 'a\n\nb\r\n{"é":1}')).response()
  t.equal(response.status, 200)
  t.equal(response.headers['content-type'], 'application/x-ndjson')
  t.equal(response.headers['transfer-encoding'], 'chunked')
  t.ok(response.headers['x-request-id'])
  t.equal(response.body.toString(), '1:a\n3:b\n4:{"é":1}\n')
  const chunked = request('POST /echo', { ...NDJSON, 'Transfer-Encoding': 'chunked' })
  const again = await c.send(`${chunked}3\r\na\nb\r\n2\r\nc\n\r\n0\r\n\r\n`).response()
  t.equal(again.body.toString(), '1:a\n2:bc\n')
  t.equal(again.headers['connection'], 'close')
  const empty = await http.client().send(request('POST /echo', NDJSON)).response()
  t.equal(empty.status, 200)
  t.equal(empty.body.length, 0)
})

t.test('an answer line comes before the next line is sent', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const c = http.client()
  c.send(request('POST /echo', { ...NDJSON, 'Transfer-Encoding': 'chunked' }))
  for (const [number, line] of ['first', 'second', 'third'].entries()) {
    c.send(`${(line.length + 1).toString(16)}\r\n${line}\n\r\n`)
    await eventually(() => c.rest.toString().includes(`${number + 1}:${line}\n`), line)
  }
  c.send('0\r\n\r\n')
  t.equal((await c.response()).body.toString(), '1:first\n2:second\n3:third\n')
})

t.test('which requests are streamed', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const c = http.client()
  t.equal(
    (await c.send(request('POST /both', NDJSON, 'a')).response()).body.toString(),
    'streamed\n',
  )
  t.equal((await c.send(request('POST /both', {}, '1')).response()).body.toString(), '"handled"')
  const json = { 'Content-Type': 'application/json' }
  const wrong = await c.send(request('POST /echo', json, 'a')).response()
  t.equal(wrong.status, 415)
  t.equal(errorOf(wrong).code, 'UNSUPPORTED_MEDIA_TYPE')
  const coded = await c.send(post('/echo', { 'Content-Encoding': 'br' }, 'a')).response()
  t.equal(coded.status, 415)
  const bad = { Authorization: 'Bearer bad' }
  t.equal((await c.send(post('/who', bad, 'a')).response()).status, 401)
  const good = await c.send(post('/who', { Authorization: 'Bearer good' }, 'a')).response()
  t.equal(good.body.toString(), 'client-1\n')
})

t.test('a token that has to be looked up holds the stream', async (t) => {
  const slow = await startServer(operations, {
    authenticate: async (authorization) => {
      await new Promise(setImmediate)
      return authorization === 'Bearer good'
        ? ({ id: 'looked-up' } as never)
        : new RequestError('UNAUTHENTICATED', 'no')
    },
  })
  t.teardown(slow.stop)
  const c = slow.client()
  const good = await c.send(post('/who', { Authorization: 'Bearer good' }, 'a')).response()
  t.equal(good.body.toString(), 'looked-up\n')
  t.equal((await c.send(post('/who', { Authorization: 'Bearer bad' }, 'a')).response()).status, 401)
})

t.test('a line that is too long is told, the rest goes on', async (t) => {
  const http = await startServer(operations, { known: true, limits: { bulkLineBytesMax: 1000 } })
  t.teardown(http.stop)
  const body = `a\n${'b'.repeat(1000)}\n${'c'.repeat(1001)}\nd\n${'e'.repeat(3 * MiB)}\nf`
  const response = await http
    .client()
    .send(post('/echo', {}, body))
    .response()
  t.equal(
    response.body.toString(),
    `1:a\n2:${'b'.repeat(1000)}\n3:too-large\n4:d\n5:too-large\n6:f\n`,
  )
})

t.test('gzip bodies, good and bad', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const packed = gzipSync('a\nb\n'.repeat(10_000))
  const head = (length: number, path = '/echo'): string =>
    request(`POST ${path}`, {
      ...NDJSON,
      'Content-Encoding': 'gzip',
      'Content-Length': String(length),
    })
  const c = http.client()
  const good = await c.send(head(packed.length)).send(packed).response()
  t.equal(good.body.toString().split('\n').length, 20_001)
  t.ok(good.body.toString().endsWith('20000:b\n'))
  const bad = await c.send(head(8)).send('not gzip').response()
  t.equal(bad.status, 400)
  t.match(errorOf(bad).message, /not valid gzip/)
  const cut = packed.subarray(0, packed.length - 20)
  const half = await http.client().send(head(cut.length)).send(cut).response()
  t.match(half.body.toString(), /not valid gzip/)
  const bomb = gzipSync(Buffer.alloc(100 * MiB, 0x20))
  const before = process.memoryUsage().rss
  const counted = await http.client().send(head(bomb.length, '/count')).send(bomb).response()
  t.match(counted.body.toString(), /^[0-9]+\n$/)
  t.ok(process.memoryUsage().rss - before < 60 * MiB, 'a bomb is only as large as what waits')
})

t.test('ends before the body does', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const c = http.client()
  const first = await c.send(post('/first', {}, `1\n${'2\n'.repeat(500_000)}`)).response()
  t.equal(first.body.toString(), 'only 1\n')
  const refused = await c.send(post('/refuses', {}, 'a\n'.repeat(500_000))).response()
  t.equal(refused.status, 429)
  t.equal(refused.headers['retry-after'], '1')
  t.equal((await c.send(post('/echo', {}, 'z')).response()).body.toString(), '1:z\n')
  const late = await c.send(post('/refuses-late', {}, 'a')).response()
  t.equal(late.status, 200)
  const [one, failure] = late.body.toString().trimEnd().split('\n')
  t.equal(one, 'one')
  t.match(JSON.parse(failure!), { errors: [{ code: 'UNAVAILABLE' }], requestId: /.+/ })
  const broken = await c.send(post('/breaks', {}, 'a')).response()
  t.match(broken.body.toString(), /^one\n\{"errors":\[\{"code":"INTERNAL_ERROR"/)
  t.notMatch(broken.body.toString(), /private/)
  t.equal(http.log.length, 1)
})

t.test('a slow operation pauses the client', async (t) => {
  latch = Promise.withResolvers()
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const total = 64 * MiB
  const line = `${'y'.repeat(64 * 1024 - 1)}\n`
  const c = http.client()
  c.send(request('POST /gated', { ...NDJSON, 'Content-Length': String(total) }))
  const before = process.memoryUsage().arrayBuffers
  const sent = pump(c, line, total)
  // The client stalls once the server's read-ahead and the kernel's buffers are full.
  await stalls(() => c.socket.bytesWritten, 'the client is held back')
  t.ok(sent() < total / 2, `${sent()} bytes were taken`)
  t.ok(process.memoryUsage().arrayBuffers - before < 24 * MiB)
  latch.resolve()
  t.equal((await c.response()).body.toString(), `${total}\n`)
})

t.test('a client that reads slowly holds the operation back', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const c = http.client()
  c.socket.pause()
  c.send(post('/flood', {}, 'a'))
  await eventually(() => read > 0, 'the operation writes')
  await stalls(() => read, 'the operation waits')
  t.ok(read < 2_000, `${read} lines were written`)
  t.equal(ended, '')
  c.socket.resume()
  // A socket that is full is tried by a space, which before a JSON value means nothing.
  const flood = (await c.response()).body.toString('latin1').replaceAll(' ', '')
  t.equal(flood.length, FLOOD_LINES * 10_001)
  t.equal(ended, 'written')
})

t.test('full in both directions at once', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const total = 160 * MiB
  const line = `${'y'.repeat(64 * 1024 - 1)}\n`
  const c = http.client()
  c.socket.pause()
  const before = process.memoryUsage().arrayBuffers
  c.send(request('POST /echo', { ...NDJSON, 'Content-Length': String(total) }))
  const sent = pump(c, line, total)
  await stalls(() => c.socket.bytesWritten, 'the client is held back')
  t.ok(sent() < total / 2, `${sent()} bytes were taken`)
  t.ok(process.memoryUsage().arrayBuffers - before < 24 * MiB)
  c.socket.resume()
  const { body } = await c.response()
  const lines = body.toString().trimEnd().split('\n')
  t.equal(lines.length, total / line.length)
  t.ok(lines.every((got, i) => got.trimStart() === `${i + 1}:${line.trimEnd()}`))
})

t.test('a client that leaves ends the iteration and the writing', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const c = http.client()
  c.send(request('POST /count', { ...NDJSON, 'Content-Length': '1000' })).send('a\nb\nhalf a li')
  await eventually(() => read === 4, 'two lines')
  c.destroy()
  await eventually(() => ended === 'aborted', 'the iteration ended')
  t.equal(read, 4, 'the half line is none')
  const reader = http.client()
  reader.socket.pause()
  reader.send(post('/flood', {}, 'a'))
  await eventually(() => read > 10 && ended === '', 'the flood runs')
  reader.socket.resetAndDestroy()
  await eventually(() => ended === 'aborted', 'the writing ended')
  await eventually(() => http.metrics.text().includes('requests_in_flight 0\n'), 'all have ended')
  t.same(http.log, [])
})

t.test('a silent client is closed, a stream that waits for us is not', async (t) => {
  latch = Promise.withResolvers()
  const http = await startServer(operations, {
    known: true,
    limits: { bodyIdleMs: 200, requestBudgetMs: 100 },
  })
  t.teardown(http.stop)
  const silent = http.client().send(request('POST /count', { ...NDJSON, 'Content-Length': '99' }))
  const waiting = http.client().send(post('/gated', {}, 'a\n'))
  await silent.closed()
  t.equal(silent.rest.length, 0)
  latch.resolve()
  t.equal((await waiting.response()).body.toString(), '2\n')
})

// Reading and writing are both held back here, again and again: a socket that is paused and full at
// once says nothing of itself.
t.test('memory stays flat over a long stream', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const line = `${JSON.stringify({ id: 'x', text: 'z'.repeat(1000) })}\n`
  const total = 60_000
  const sent: ClientRequest = httpRequest({
    port: http.port,
    method: 'POST',
    path: '/echo',
    headers: NDJSON,
  })
  let received = 0
  const done = new Promise<void>((resolve, reject) => {
    sent.on('error', reject)
    sent.on('response', (response) => {
      response.on('data', (chunk: Buffer) => {
        // Spaces between the lines are how a socket is tried; they mean nothing in JSON.
        received += chunk.toString('latin1').replaceAll(' ', '').length
      })
      response.on('end', resolve)
    })
  })
  let peak = 0
  const before = process.memoryUsage().rss
  for (let i = 0; i < total; i++) {
    if (!sent.write(line)) await new Promise((resolve) => sent.once('drain', resolve))
    if (i % 5000 === 0) peak = Math.max(peak, process.memoryUsage().rss - before)
  }
  sent.end()
  await done
  const numbers = Array.from({ length: total }, (_, i) => `${i + 1}:`.length).reduce(
    (a, b) => a + b,
  )
  t.equal(received, total * line.length + numbers)
  t.ok(peak < 120 * MiB, `${Math.round(peak / MiB)} MiB`)
})
