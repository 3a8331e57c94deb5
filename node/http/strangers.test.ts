// What anybody can make the server do before it knows them: bytes, time, connections, and answers
// that nobody reads, each within its bound.

import t from 'tap'
import { readdirSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { LIMITS } from '../../config/limits.ts'
import { openFilesMax } from './open-files.ts'
import type { Operation } from './operation.ts'
import { eventually, stalls } from './testing/raw-client.ts'
import type { RawClient } from './testing/raw-client.ts'
import { errorOf, operation, request, startServer } from './testing/test-server.ts'

const KiB = 1024
const MiB = 1024 * KiB
const echo: Operation['handle'] = (r) => ({ status: 200, body: r.bodyBytes.length })
const large = 'z'.repeat(MiB)
/** More than the buffers of both kernels take. */
const huge = Buffer.alloc(16 * MiB, 0x7a)

const operations = [
  operation('POST', '/form', echo, { body: { type: 'form', required: true } }),
  operation('POST', '/json', echo, { access: 'token', body: { type: 'json', required: true } }),
  operation('GET', '/large', () => ({ status: 200, raw: large })),
  operation('GET', '/slow', async () => Promise.resolve({ status: 200, raw: large })),
  operation('GET', '/huge', async () => Promise.resolve({ status: 200, raw: huge })),
  operation('GET', '/soon', async () => Promise.resolve({ status: 200, body: 'small' })),
  operation('GET', '/small', () => ({ status: 200, body: 'small' })),
  operation('DELETE', '/bare', () => ({ status: 204 })),
]
const GOOD = { Authorization: 'Bearer good' }

t.test('a body of somebody unknown is small, and comes as it is', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const c = http.client()
  t.equal((await c.send(request('POST /form', {}, 'a'.repeat(64 * KiB))).response()).status, 200)
  const packed = gzipSync(Buffer.alloc(10 * MiB))
  const head = { 'Content-Encoding': 'gzip', 'Content-Length': String(packed.length) }
  const bomb = await c.send(request('POST /form', head)).send(packed).response()
  t.equal(bomb.status, 415)
  const announced = await http
    .client()
    .send(request('POST /form', { 'Content-Length': String(64 * KiB + 1) }))
    .response()
  t.equal(announced.status, 413)
  t.same(errorOf(announced).details, { bytesMax: 64 * KiB })
})

t.test('bodies that never end cost those who are known nothing', async (t) => {
  const limits = { strangerBodiesBytesMax: 100 * KiB, strangerBodyMs: 500, bodyIdleMs: 400 }
  const http = await startServer(operations, { limits })
  t.teardown(http.stop)
  const clients: RawClient[] = []
  const half = Buffer.alloc(60 * KiB, 0x61)
  for (let i = 0; i < 4; i++) {
    clients.push(
      http
        .client()
        .send(request('POST /form', { 'Content-Length': '65536' }))
        .send(half),
    )
  }
  await Promise.any(clients.map((c) => c.response()))
  const known = http.client().send(request('POST /json', { ...GOOD, 'Content-Length': '65538' }))
  known.send('"').send(half)
  const dripping = setInterval(() => clients.forEach((c) => c.send('a')), 50)
  t.teardown(() => clearInterval(dripping))
  known.send(Buffer.alloc(65_536 - half.length, 0x61)).send('"')
  t.equal((await known.response()).status, 200)
  // A byte every now and then is no longer enough: there is an end to it.
  await eventually(() => http.metrics.text().includes('requests_in_flight 0\n'), 'all ended')
})

t.test('answers that nobody reads are not kept', async (t) => {
  const http = await startServer(operations, { limits: { answersBytesMax: 3 * MiB } })
  t.teardown(http.stop)
  for (const line of ['GET /large', 'GET /small', 'HEAD /large', 'GET /slow', 'OPTIONS /small']) {
    const c = http.client()
    c.socket.pause()
    const before = process.memoryUsage().rss
    const requests = request(line).repeat(1_000)
    for (let i = 0; i < 40 && !c.socket.destroyed; i++) {
      if (!c.socket.write(requests)) await stalls(() => c.socket.bytesWritten, 'held back')
    }
    t.ok(process.memoryUsage().rss - before < 40 * MiB, line)
    c.destroy()
  }
  await eventually(() => http.metrics.text().includes('unread_answers_bytes 0\n'), 'all are gone')
})

t.test('of answers that are not read those that wait longest go', async (t) => {
  const http = await startServer(operations, { limits: { answersBytesMax: 40 * MiB } })
  t.teardown(http.stop)
  const clients: RawClient[] = []
  const waiting = (n: number): boolean =>
    http.metrics.text().includes(`unread_answers_bytes ${n * huge.length}\n`)
  for (let i = 0; i < 5; i++) {
    const c = http.client()
    c.socket.pause()
    c.send(request('GET /huge'))
    await eventually(() => waiting(Math.min(i + 1, 2)), `${i} wait`)
    clients.push(c)
  }
  const reading = clients.at(-1)!
  reading.socket.resume()
  t.equal((await reading.response()).body.length, huge.length)
  for (const c of clients.slice(0, 2)) {
    c.socket.resume()
    await c.closed()
    t.ok(c.rest.length < huge.length, 'who came first had to go')
  }
  const fine = await http.client().send(request('GET /large')).response()
  t.equal(fine.body.length, MiB, 'who reads is served')
})

t.test('who reads too slowly is closed', async (t) => {
  const limits = { bodyIdleMs: 300 }
  const http = await startServer(operations, { limits })
  t.teardown(http.stop)
  const c = http.client()
  c.socket.pause()
  c.send(request('GET /huge'))
  await eventually(() => /unread_answers_bytes [1-9]/.test(http.metrics.text()), 'it waits')
  await eventually(() => http.metrics.text().includes('unread_answers_bytes 0\n'), 'it is closed')
})

t.test('connections have a cap', async (t) => {
  const http = await startServer(operations, { settings: { connectionsMax: 3 } })
  t.teardown(http.stop)
  const three = [http.client(), http.client(), http.client()]
  for (const c of three) t.equal((await c.send(request('GET /small')).response()).status, 200)
  const fourth = http.client().send(request('GET /small'))
  await fourth.closed()
  t.equal(fourth.rest.length, 0)
  three[0]!.destroy()
  await eventually(() => http.metrics.text().includes('kontor_http_connections 2\n'), 'one left')
  const next = await http.client().send(request('GET /small')).response()
  t.equal(next.status, 200, 'its place is free')
})

t.test('the cap stays below what the process may open', (t) => {
  const found = openFilesMax()
  if (process.platform === 'linux') t.ok(found! > readdirSync('/proc/self/fd').length)
  t.equal(openFilesMax('/nowhere'), null)
  t.end()
})

t.test('who sends many at once is answered a few, however the answers come', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  for (const path of ['/small', '/soon']) {
    const few = http.client().send(request(`GET ${path}`).repeat(LIMITS.http.answersTogetherMax))
    for (let i = 0; i < LIMITS.http.answersTogetherMax; i++) {
      t.equal((await few.response()).status, 200, path)
    }
    few.destroy()
    const many = http.client().send(request(`GET ${path}`).repeat(200))
    await many.closed()
    const answers = many.rest.toString().split('HTTP/1.1 200').length - 1
    t.ok(answers <= LIMITS.http.answersTogetherMax + 1, `${path}: ${answers} answers`)
    t.equal(
      (
        await http
          .client()
          .send(request(`GET ${path}`))
          .response()
      ).status,
      200,
    )
  }
})

t.test('behind a chunked body nothing is served', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const smuggled = request('GET /small')
  for (const [line, more] of [
    ['POST /json', GOOD],
    ['POST /json', {}],
    ['GET /small', {}],
    ['GET /soon', {}],
    ['DELETE /bare', {}],
    ['HEAD /small', {}],
    ['POST /nowhere', {}],
  ] as const) {
    const head = request(line, { ...more, 'Transfer-Encoding': 'chunked' })
    for (const end of ['0\r\n\r\n', '0\r\nX:']) {
      const together = http.client().send(`${head}1\r\n1\r\n${end}${smuggled}`)
      await together.closed()
      t.notMatch(together.rest.toString(), /small"/, `${line}, together`)
      const apart = http.client().send(`${head}1\r\n1\r\n${end}`)
      const method = line.split(' ')[0]!
      t.equal((await apart.response(method)).headers['connection'], 'close', line)
      apart.send(smuggled)
      if (method === 'POST' || method === 'GET') await apart.closed()
      // Of others nothing more is read, and the connection ends as an idle one.
      else await stalls(() => apart.rest.length, 'nothing comes')
      t.equal(apart.rest.length, 0, `${line}, apart`)
    }
  }
})
