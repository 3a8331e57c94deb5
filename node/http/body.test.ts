// Bodies over real sockets: everything that a client may get wrong, by mistake or on purpose.

import { Type } from '@sinclair/typebox'
import t from 'tap'
import { Agent, request as httpRequest } from 'node:http'
import { gzipSync } from 'node:zlib'
import type { Authenticate } from './core.ts'
import type { Operation } from './operation.ts'
import { eventually } from './testing/raw-client.ts'
import type { RawClient, RawResponse } from './testing/raw-client.ts'
import {
  authenticate,
  errorOf,
  operation,
  pieces,
  request,
  startServer,
} from './testing/test-server.ts'

const MiB = 1024 * 1024
let handled = 0

const echo: Operation['handle'] = (r) => {
  handled++
  return { status: 200, body: { body: r.body ?? null, bytes: r.bodyBytes.length } }
}

const operations = [
  operation('POST', '/json', echo, { body: { type: 'json', required: true } }),
  operation('POST', '/maybe', echo, { body: { type: 'json', required: false } }),
  operation('POST', '/later', async (r) => Promise.resolve(echo(r)), {
    body: { type: 'json', required: true },
  }),
  operation('POST', '/shape', echo, {
    body: {
      type: 'json',
      required: true,
      code: 'INVALID_PARAMETERS',
      schema: Type.Object({ a: Type.Object({ n: Type.Integer() }) }),
    },
  }),
  operation('POST', '/form', (r) => ({ status: 200, body: [...(r.body as URLSearchParams)] }), {
    body: { type: 'form', required: true },
    errors: 'oauth',
  }),
  operation(
    'POST',
    '/faults',
    (r) => ({ status: 200, body: [r.bodyFault?.errors[0]!.code ?? null, r.bodyBytes.length] }),
    { body: { type: 'json', required: true, handlesFaults: true } },
  ),
  operation('POST', '/ignores', () => ({ status: 200, body: 'ignored' })),
]

const JSON_TYPE = { 'Content-Type': 'application/json' }
const json = (response: RawResponse): unknown => JSON.parse(response.body.toString())

type Post = (
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: string | Buffer,
) => Promise<RawResponse>

/** Sends one request on a connection and reads its answer. */
function postOn(c: RawClient): Post {
  return (path, headers, body = '') => {
    const length = { 'Content-Length': String(Buffer.byteLength(body)), ...headers }
    return c
      .send(request(`POST ${path}`, length))
      .send(body)
      .response()
  }
}

t.test('bodies that are taken', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const post = postOn(http.client())
  for (const path of ['/json', '/later', '/maybe']) {
    t.same(json(await post(path, JSON_TYPE, '{"a":[1]}')), { body: { a: [1] }, bytes: 9 }, path)
  }
  for (const type of [
    'application/json; charset=utf-8',
    'APPLICATION/JSON;charset="UTF-8"',
    'application/merge-patch+json',
  ]) {
    t.equal((await post('/json', { 'Content-Type': type }, '1')).status, 200, type)
  }
  t.equal((await post('/json', {}, '1')).status, 200, 'a type is not required')
  t.same(json(await post('/maybe', {})), { body: null, bytes: 0 })
  t.same(json(await post('/ignores', JSON_TYPE, 'not json')), 'ignored')
  t.same(json(await post('/form', {}, 'a=1&a=2&b=%C3%A9+x')), [
    ['a', '1'],
    ['a', '2'],
    ['b', 'é x'],
  ])
})

t.test('bodies in pieces, chunked, gzipped', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const c = http.client()
  for (const piece of pieces(request('POST /json', JSON_TYPE, '{"a":"bytes"}'))) {
    c.send(piece)
    await new Promise(setImmediate)
  }
  t.same(json(await c.response()), { body: { a: 'bytes' }, bytes: 13 })
  const head = request('POST /json', { ...JSON_TYPE, 'Transfer-Encoding': 'chunked' })
  c.send(`${head}4\r\n{"a"\r\n2\r\n:1\r\n1\r\n}\r\n0\r\n\r\n`)
  const chunked = await c.response()
  t.same(json(chunked), { body: { a: 1 }, bytes: 7 })
  t.equal(chunked.headers['connection'], 'close')
  await c.closed()
  const none = http.client().send(`${head}0\r\n\r\n`)
  t.match(errorOf(await none.response()).message, /body is missing/)
  const post = postOn(http.client())
  const packed = gzipSync('{"a":2}')
  for (const path of ['/json', '/later']) {
    t.same(json(await post(path, { 'Content-Encoding': 'gzip' }, packed)), {
      body: { a: 2 },
      bytes: 7,
    })
  }
  const three = 'x'.repeat(3 * MiB)
  const large = await post('/json', JSON_TYPE, JSON.stringify(three))
  t.same(json(large), { body: three, bytes: three.length + 2 })
})

t.test('types, charsets and encodings that are not taken', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const post = postOn(http.client())
  const cases: Record<string, string>[] = [
    { 'Content-Type': 'text/plain' },
    { 'Content-Type': 'application/x-www-form-urlencoded' },
    { 'Content-Type': 'application/jsonx' },
    { 'Content-Type': 'application/json; charset=latin1' },
    { 'Content-Type': 'application/x-ndjson' },
    { 'Content-Encoding': 'br' },
    { 'Content-Encoding': 'gzip, gzip' },
  ]
  for (const headers of cases) {
    const response = await post('/json', headers, '{}')
    t.equal(response.status, 415, JSON.stringify(headers))
    t.equal(errorOf(response).code, 'UNSUPPORTED_MEDIA_TYPE')
  }
  const form = await post('/form', JSON_TYPE, '{}')
  t.equal(form.status, 415)
  t.match(json(form), { error: 'invalid_request', error_description: /takes application\/x-www/ })
})

t.test('content that is not taken', async (t) => {
  handled = 0
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const post = postOn(http.client())
  const refused = async (body: string | Buffer, message: RegExp, path = '/json'): Promise<void> => {
    const response = await post(path, {}, body)
    t.equal(response.status, 400, String(message))
    t.equal(errorOf(response).code, 'MALFORMED_REQUEST')
    t.match(errorOf(response).message, message)
  }
  await refused('', /body is missing/)
  await refused('{"a":}', /line 1, column 6/)
  await refused(Buffer.from([0x22, 0xff, 0x22]), /not valid UTF-8 at byte 1/)
  await refused('"\\ud800"', /surrogate/)
  await refused('{"__proto__":{}}', /__proto__/)
  await refused('['.repeat(65) + ']'.repeat(65), /deeper than 64/)
  await refused('1e999', /out of range/)
  const gzipped = await post('/json', { 'Content-Encoding': 'gzip' }, 'not gzip')
  t.match(errorOf(gzipped).message, /not valid gzip/)
  const cut = await post(
    '/json',
    { 'Content-Encoding': 'gzip' },
    gzipSync('"text"').subarray(0, 15),
  )
  t.equal(cut.status, 400)
  const shape = await post('/shape', {}, '{"a":{"n":"x"}}')
  t.equal(shape.status, 400)
  t.same(errorOf(shape).code, 'INVALID_PARAMETERS')
  t.same(errorOf(shape).details, { member: 'a.n' })
  t.match(errorOf(await post('/shape', {}, '[]')).message, /^the body must be object/)
  const form = await post('/form', {}, Buffer.from([0x61, 0x3d, 0xff]))
  t.equal(form.status, 400)
  t.match(json(form), { error: 'invalid_request' })
  t.equal(handled, 0)
})

t.test('bodies that are too large get their answer', async (t) => {
  handled = 0
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const announced = http.client()
  announced.send(request('POST /json', { 'Content-Length': String(11 * MiB) }))
  const early = await announced.response()
  t.equal(early.status, 413, 'before the first byte of the body')
  t.equal(early.headers['connection'], 'close')
  t.same(errorOf(early).details, { bytesMax: 10 * MiB })

  const whole = http.client()
  const eleven = Buffer.alloc(11 * MiB, 0x20)
  const posted = await postOn(whole)('/json', {}, eleven)
  t.equal(posted.status, 413, 'after all of it')

  const chunked = http.client()
  chunked.send(request('POST /json', { 'Transfer-Encoding': 'chunked' }))
  for (let i = 0; i < 11; i++) {
    chunked.send('100000\r\n').send(eleven.subarray(0, MiB)).send('\r\n')
  }
  chunked.send('0\r\n\r\n')
  t.equal((await chunked.response()).status, 413, 'chunked')

  // Node's own client, which fails when the connection is reset under its request.
  const agent = new Agent({ keepAlive: true })
  for (let i = 0; i < 3; i++) {
    const status = await new Promise((resolve, reject) => {
      const options = { port: http.port, method: 'POST', path: '/json', agent }
      const sent = httpRequest(options, (response) => {
        response.resume().on('end', () => resolve(response.statusCode))
      })
      sent.on('error', reject).end(eleven)
    })
    t.equal(status, 413)
  }
  agent.destroy()
  const exact = Buffer.alloc(10 * MiB, 0x20)
  exact[0] = 0x31
  t.equal(
    (await postOn(http.client())('/maybe', {}, exact)).status,
    200,
    'the bound itself is taken',
  )
  t.equal(handled, 1)
})

t.test('a gzip bomb ends at the bound', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const bomb = gzipSync(Buffer.alloc(200 * MiB, 0x20))
  const before = process.memoryUsage().rss
  const response = await postOn(http.client())('/json', { 'Content-Encoding': 'gzip' }, bomb)
  t.equal(response.status, 413)
  t.match(errorOf(response).message, /unpacked body/)
  t.ok(process.memoryUsage().rss - before < 100 * MiB)
})

t.test('framing that is in doubt closes the connection', async (t) => {
  handled = 0
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const framings: Record<string, string>[] = [
    { 'Content-Length': '3x' },
    { 'Content-Length': '-3' },
    { 'Content-Length': '0x3' },
    { 'Content-Length': '3, 3' },
    { 'Content-Length': '9'.repeat(30) },
    { 'Content-Length': '' },
    { 'Transfer-Encoding': 'gzip, chunked' },
    { 'Transfer-Encoding': 'identity' },
    { 'Transfer-Encoding': 'chunked', 'Content-Length': '3' },
    { 'Content-Length': '3', host: 'another' },
  ]
  const heads = framings.map((headers) => request('POST /json', headers))
  heads.push(
    request('POST /json', { 'Content-Length': '3' }).replace(
      '\r\n\r\n',
      '\r\nContent-Length: 5\r\n\r\n',
    ),
  )
  for (const head of heads) {
    const c = http.client()
    const response = await c.send(`${head}123`).response()
    t.equal(response.status, 400, head)
    t.equal(response.headers['connection'], 'close')
    await c.closed()
    const smuggler = http.client().send(`${head}123${request('POST /ignores')}`)
    await smuggler.closed()
    t.notMatch(smuggler.rest.toString(), / 200 |ignored/, 'nothing after it is served')
  }
  t.equal(handled, 0)
})

t.test('clients that leave in the middle', async (t) => {
  handled = 0
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const inFlight = (n: number): boolean =>
    http.metrics.text().includes(`kontor_http_requests_in_flight ${n}\n`)
  for (const leave of [
    (c: RawClient) => c.destroy(),
    (c: RawClient) => c.socket.resetAndDestroy(),
  ]) {
    const c = http.client()
    c.send(`${request('POST /json', { 'Content-Length': '100' })}{"a":`)
    await eventually(() => inFlight(1), 'the request has begun')
    leave(c)
    await eventually(() => inFlight(0), 'the abort was seen')
  }
  t.equal(handled, 0)
  t.same(http.log, [])
})

t.test('bodies that stall or trickle are closed, slow ones are not', async (t) => {
  const limits = { bodyIdleMs: 500, bodyBytesPerSecondMin: 20 }
  const http = await startServer(operations, { known: true, limits })
  t.teardown(http.stop)
  const silent = http.client().send(request('POST /json', { 'Content-Length': '100' }))
  const stalled = http.client().send(`${request('POST /json', { 'Content-Length': '100' })}{"a":`)
  const trickling = http.client().send(request('POST /json', { 'Content-Length': '500' }))
  const slow = http.client().send(request('POST /json', { 'Content-Length': '40' }))
  const drip = setInterval(() => trickling.send(' '), 100)
  t.teardown(() => clearInterval(drip))
  for (let i = 0; i < 10; i++) {
    slow.send(i === 0 ? '1   ' : '    ')
    await new Promise((resolve) => setTimeout(resolve, 60))
  }
  t.equal((await slow.response()).status, 200, 'a slow body that keeps coming is served')
  await Promise.all([silent.closed(), stalled.closed(), trickling.closed()])
  t.equal(stalled.rest.length, 0)
})

t.test('large bodies together are bounded', async (t) => {
  const http = await startServer(operations, { known: true, limits: { bodiesBytesMax: 2 * MiB } })
  t.teardown(http.stop)
  const first = http.client().send(request('POST /json', { 'Content-Length': String(2 * MiB) }))
  first.send(Buffer.alloc(MiB, 0x20))
  const second = http.client().send(request('POST /json', { 'Content-Length': String(2 * MiB) }))
  second.send(Buffer.alloc(2 * MiB - 10, 0x20))
  const response = await second.response()
  t.equal(response.status, 429)
  t.equal(errorOf(response).code, 'TOO_BUSY')
  second.destroy()
  first.send(Buffer.alloc(MiB, 0x31))
  t.equal((await first.response()).status, 400, 'the first one is read: a number too large')
  const third = await postOn(http.client())('/json', {}, Buffer.alloc(MiB + MiB / 2, 0x20))
  t.equal(third.status, 400, 'what was refused is counted no more')
  const gone = http.client().send(request('POST /json', { 'Content-Length': String(2 * MiB) }))
  gone.send(Buffer.alloc(MiB + MiB / 2, 0x20))
  const inFlight = (n: number): boolean =>
    http.metrics.text().includes(`kontor_http_requests_in_flight ${n}\n`)
  await eventually(() => inFlight(1), 'it has begun')
  gone.destroy()
  await eventually(() => inFlight(0), 'it has gone')
  const fourth = await postOn(http.client())('/json', {}, Buffer.alloc(MiB + MiB / 2, 0x20))
  t.equal(fourth.status, 400, 'nor what has gone')
})

t.test('what uWebSockets.js answers itself', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const ten = await http.client().send('POST /json HTTP/1.0\r\nHost: a\r\n\r\n').response()
  t.equal(ten.status, 505)
  const huge = http.client().send(request('POST /json', { A: 'a'.repeat(40_000) }))
  t.equal((await huge.response()).status, 431)
  const large = http.client().send(request('POST /ignores', { A: 'a'.repeat(20_000) }))
  t.equal((await large.response()).status, 200, 'the bound is ours, not the default of 4 KiB')
  const expecting = http.client()
  expecting.send(request('POST /json', { Expect: '100-continue', 'Content-Length': '1' }))
  t.equal((await expecting.response()).status, 100)
  t.equal((await expecting.send('1').response()).status, 200)
})

void t.test('a body that was long on its way: who sent it is looked up again', async (t) => {
  for (const [systemStaleMs, wanted, isLater] of [
    [60_000, 200, false],
    [0, 401, false],
    [0, 401, true],
  ] as const) {
    let looks = 0
    const look: Authenticate = (authorization) =>
      authenticate(looks++ === 0 ? authorization : 'Bearer revoked')
    const http = await startServer(
      [
        operation('POST', '/body', (r) => ({ status: 200, body: r.body }), {
          access: 'token',
          body: { type: 'json', required: true },
        }),
      ],
      { limits: { systemStaleMs }, authenticate: isLater ? async (a) => look(a) : look },
    )
    t.teardown(http.stop)
    const headers = { Authorization: 'Bearer good' }
    const c = http.client()
    t.equal((await c.send(request('POST /body', headers, '{"a":1}')).response()).status, wanted)
    t.equal(looks, wanted === 200 ? 1 : 2)
  }
})

t.test('an operation that handles faults gets a whole body that is no good', async (t) => {
  const http = await startServer(operations, { known: true })
  t.teardown(http.stop)
  const post = postOn(http.client())
  for (const [body, fault] of [
    ['{"a":1}', null],
    ['{"a"', 'MALFORMED_REQUEST'],
    ['', 'MALFORMED_REQUEST'],
  ] as const) {
    t.same(json(await post('/faults', JSON_TYPE, body)), [fault, body.length])
  }
})
