// The server over real sockets: routes, tokens, headers, answers, connections.

import t from 'tap'
import { gunzipSync } from 'node:zlib'
import { RequestError } from '../../protocol/errors.ts'
import { acceptsGzip } from './answer.ts'
import { eventually } from './testing/raw-client.ts'
import type { RawResponse } from './testing/raw-client.ts'
import {
  authenticate,
  errorOf,
  operation,
  pieces,
  request,
  startServer,
} from './testing/test-server.ts'
import { closeLatch, later, latch, finished, operations } from './testing/sample-operations.ts'

const json = (response: RawResponse): unknown => JSON.parse(response.body.toString())

t.test('routes, parameters and their escapes', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const c = http.client()
  const get = (path: string): Promise<RawResponse> => c.send(request(`GET ${path}`)).response()
  t.same(json(await get('/things')), { all: true })
  t.same(json(await get('/things/a%2Fb%20%C3%A9')), { id: 'a/b é' })
  t.same(json(await get('/files/a/b/c.txt')), { path: 'a/b/c.txt' })
  t.same(json(await get('/files/')), { path: '' })
  const unknown = await get('/nowhere')
  t.equal(unknown.status, 404)
  t.equal(errorOf(unknown).code, 'NOT_FOUND')
  for (const path of ['/things/%', '/things/%zz', '/things/%ff', '/files/a/%c3']) {
    const response = await get(path)
    t.equal(response.status, 400, path)
    t.equal(errorOf(response).code, 'MALFORMED_REQUEST')
  }
  const long = await get(`/things/${'a'.repeat(9000)}`)
  t.equal(long.status, 413)
  t.match(errorOf(long).message, /URL has more than 8192/)
  t.match(json(await get('/echo?q=1&q=%C3%A9&r=%')), {
    q: ['1', 'é'],
    header: '',
    none: '',
    requestId: /.+/,
    budget: true,
  })
})

t.test('methods', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const c = http.client()
  const wrong = await c.send(request('DELETE /things/1')).response()
  t.equal(wrong.status, 405)
  t.equal(wrong.headers['allow'], 'GET, PUT, HEAD, OPTIONS')
  t.equal(errorOf(wrong).code, 'METHOD_NOT_ALLOWED')
  t.equal((await c.send(request('BREW /things')).response()).status, 405)
  t.equal((await c.send(request('BREW /nowhere')).response()).status, 404)
  const options = await c.send(request('OPTIONS /things')).response()
  t.equal(options.status, 204)
  t.equal(options.headers['allow'], 'GET, HEAD, OPTIONS')
  t.equal(options.headers['content-length'], undefined)
  t.equal((await c.send(request('OPTIONS /nowhere')).response()).status, 404)
  const head = await c.send(request('HEAD /things')).response('HEAD')
  t.equal(head.status, 200)
  t.equal(head.headers['content-length'], '12')
  t.equal((await c.send(request('HEAD /later')).response('HEAD')).headers['content-length'], '7')
  t.equal((await c.send(request('GET /small')).response()).status, 200, 'no body was left behind')
})

t.test('tokens', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const c = http.client()
  const none = await c.send(request('GET /who')).response()
  t.equal(none.status, 401)
  t.equal(none.headers['www-authenticate'], 'Bearer realm="kontor"')
  t.equal(errorOf(none).code, 'UNAUTHENTICATED')
  const bad = await c.send(request('GET /who', { Authorization: 'Bearer bad' })).response()
  t.equal(bad.status, 401)
  t.equal(bad.headers['www-authenticate'], 'Bearer realm="kontor", error="invalid_token"')
  const good = request('GET /who', { authorization: 'Bearer good' })
  t.same(json(await c.send(good).response()), { id: 'client-1' })
  const nobody = await c.send(request('GET /nobody')).response()
  t.equal(nobody.status, 500, 'reading an identity that nobody asked for is our mistake')
})

t.test('a token that has to be looked up, and one that can not be', async (t) => {
  const http = await startServer(
    [
      ...operations,
      operation('POST', '/body', (r) => ({ status: 200, body: r.body }), {
        access: 'token',
        body: { type: 'json', required: true },
      }),
    ],
    {
      authenticate: async (authorization) => {
        await later(0)
        if (authorization === 'Bearer away') throw new Error('the store is away')
        if (authorization === 'Bearer wait') return new RequestError('UNAVAILABLE', 'not now')
        return authenticate(authorization)
      },
    },
  )
  t.teardown(http.stop)
  const c = http.client()
  const as = (token: string): Promise<RawResponse> =>
    c.send(request('POST /body', { Authorization: `Bearer ${token}` }, '{"a":1}')).response()
  t.same(json(await as('good')), { a: 1 })
  t.equal((await as('bad')).status, 401)
  const wait = await as('wait')
  t.equal(wait.status, 503)
  t.equal(wait.headers['www-authenticate'], undefined)
  t.equal(wait.headers['retry-after'], '1')
  t.equal((await as('away')).status, 500)
  t.same(json(await c.send(request('GET /who', { Authorization: 'Bearer good' })).response()), {
    id: 'client-1',
  })
})

t.test('answers of every kind', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const c = http.client()
  const get = (path: string): Promise<RawResponse> => c.send(request(`GET ${path}`)).response()
  const plain = await get('/things')
  t.equal(plain.headers['content-type'], 'application/json')
  t.equal(plain.headers['cache-control'], 'no-store')
  t.equal(plain.headers['x-content-type-options'], 'nosniff')
  t.same(json(await get('/later')), 'later')
  const nothing = await get('/nothing')
  t.equal(nothing.status, 204)
  for (const { headers } of [plain, nothing, await get('/none')]) {
    t.notOk(headers['uwebsockets'], 'what serves it is not told')
  }
  t.equal(nothing.headers['content-length'], undefined)
  t.equal(nothing.headers['content-type'], undefined)
  const empty = await get('/empty')
  t.equal(empty.headers['content-length'], '0')
  t.equal(empty.headers['content-type'], undefined)
  const page = await get('/page')
  t.equal(page.headers['content-type'], 'text/html')
  t.equal(page.headers['cache-control'], 'max-age=60')
  t.equal(page.headers['etag'], '"1"')
  t.equal(page.headers['x-content-type-options'], 'nosniff')
  t.equal(page.body.toString(), '<p>é</p>')
  const bytes = await get('/bytes')
  t.equal(bytes.status, 201)
  t.same([...bytes.body], [0, 255, 1])
  t.same(json(await get('/typed')), { n: 1 })
})

t.test('failures: refusals are told, mistakes are logged', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const c = http.client()
  const get = (path: string): Promise<RawResponse> =>
    c.send(request(`GET ${path}`, { 'X-Request-Id': `id-${path}` })).response()
  const busy = await get('/busy')
  t.equal(busy.status, 429)
  t.equal(busy.headers['retry-after'], '1')
  t.same(json(busy), {
    errors: [{ code: 'TOO_BUSY', message: 'come back later', details: { shard: 1 } }],
    requestId: 'id-/busy',
  })
  t.equal((await get('/full')).headers['retry-after'], '9')
  t.equal(http.log.length, 0, 'a refusal is not logged')
  for (const path of ['/broken', '/rejected', '/circular', '/split', '/untyped']) {
    const response = await get(path)
    t.equal(response.status, 500, path)
    t.equal(errorOf(response).code, 'INTERNAL_ERROR')
    t.notMatch(response.body.toString(), /private|can not be/)
    t.equal(response.headers['x-b'], undefined)
    t.equal(http.log.at(-1)?.fields['requestId'], `id-${path}`)
  }
  t.equal(http.log.length, 5)
  t.match(String(http.log[0]!.fields['err']), /private reasons/)
})

t.test('request ids', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const c = http.client()
  const ask = async (headers: Record<string, string>): Promise<string> => {
    const response = await c.send(request('GET /echo', headers)).response()
    t.equal((json(response) as { requestId: string }).requestId, response.headers['x-request-id'])
    return response.headers['x-request-id']!
  }
  t.equal(await ask({ 'X-Request-Id': 'order 66 / a~b' }), 'order 66 / a~b')
  const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
  const made = await ask({})
  t.match(made, uuid7)
  t.not(await ask({}), made)
  t.match(await ask({ 'X-Request-Id': 'a'.repeat(129) }), uuid7)
  t.match(await ask({ 'X-Request-Id': 'smörgås' }), uuid7)
  t.match(await ask({ 'X-Request-Id': 'a\tb' }), uuid7)
  for (const path of ['/nowhere', '/busy', '/nothing', '/who']) {
    t.match((await c.send(request(`GET ${path}`)).response()).headers['x-request-id'], uuid7, path)
  }
})

t.test('compression when it is asked for and worth it', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const c = http.client()
  const get = (path: string, accept: string): Promise<RawResponse> =>
    c.send(request(`GET ${path}`, { 'Accept-Encoding': accept })).response()
  for (const path of ['/large', '/medium']) {
    const packed = await get(path, 'br, gzip')
    t.equal(packed.headers['content-encoding'], 'gzip', path)
    t.equal(packed.headers['vary'], 'Accept-Encoding')
    t.match(gunzipSync(packed.body).toString(), /lorem ipsum/)
    t.ok(packed.body.length < 1000)
    const plain = await get(path, 'br')
    t.equal(plain.headers['content-encoding'], undefined)
    t.match(json(plain), { text: /lorem/ })
  }
  t.equal((await get('/small', 'gzip')).headers['content-encoding'], undefined)
  for (const yes of ['gzip', 'GZIP;q=0.5', 'br , *', 'x-gzip', 'deflate;q=0, gzip; q=1.0']) {
    t.ok(acceptsGzip(yes), yes)
  }
  for (const no of ['', 'br', 'gzip;q=0', 'gzip;q=0.000', 'gzipped', 'a,'.repeat(200) + 'gzip']) {
    t.notOk(acceptsGzip(no), no)
  }
})

t.test('keep-alive and pipelining', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const c = http.client()
  const ids = ['1', '2', '3', '4', '5']
  c.send(ids.map((id) => request(`GET /things/${id}`)).join(''))
  for (const id of ids) t.same(json(await c.response()), { id })
  c.send(request('GET /later'))
  await eventually(() => http.metrics.text().includes('requests_in_flight'), 'metrics')
  for (const piece of pieces(request('GET /things/6'))) c.send(piece)
  t.same(json(await c.response()), 'later')
  t.same(json(await c.response()), { id: '6' }, 'a request in pieces, behind one that waits')
  c.send(request('GET /small', { Connection: 'close' }))
  t.equal((await c.response()).status, 200)
  await c.closed()
})

t.test('a client that goes away', async (t) => {
  closeLatch()
  const http = await startServer(operations)
  t.teardown(http.stop)
  const gone = http.client()
  gone.send(request('POST /latch'))
  const inFlight = (n: number): boolean =>
    http.metrics.text().includes(`kontor_http_requests_in_flight ${n}\n`)
  await eventually(() => inFlight(1), 'the request has arrived')
  gone.socket.resetAndDestroy()
  await eventually(() => inFlight(0), 'the abort was seen')
  t.equal(finished, 0)
  latch.resolve()
  await eventually(() => finished === 1, 'the work went on')
  t.equal((await http.client().send(request('GET /small')).response()).status, 200)
  t.same(http.log, [], 'the dropped answer is no mistake')
})

t.test('an operation that forgets its deadline', async (t) => {
  closeLatch()
  const limits = { requestBudgetMs: 20, unknownOutcomeMs: 20, bodyIdleMs: 40 }
  const http = await startServer(
    [
      ...operations,
      operation('GET', '/hang', async () => latch.promise.then(() => ({ status: 200 }))),
    ],
    { limits },
  )
  t.teardown(http.stop)
  const c = http.client()
  const post = await c.send(request('POST /latch', { 'Content-Length': '0' })).response()
  t.equal(post.status, 504)
  t.equal(errorOf(post).code, 'OUTCOME_UNKNOWN')
  const get = await c.send(request('GET /hang')).response()
  t.equal(get.status, 503)
  latch.resolve()
  t.equal(
    (await c.send(request('GET /small')).response()).status,
    200,
    'the late answer is dropped',
  )
})

t.test('too many at once', async (t) => {
  closeLatch()
  const http = await startServer(operations, { limits: { requestsInFlightMax: 1 } })
  t.teardown(http.stop)
  const first = http.client().send(request('POST /latch'))
  const inFlight = (): boolean => http.metrics.text().includes('kontor_http_requests_in_flight 1\n')
  await eventually(inFlight, 'the first is under way')
  const second = await http.client().send(request('POST /latch')).response()
  t.equal(second.status, 429)
  t.equal(errorOf(second).code, 'TOO_BUSY')
  latch.resolve()
  t.equal((await first.response()).status, 200)
})

t.test('closing serves what is open, then ends', async (t) => {
  closeLatch()
  const http = await startServer(operations)
  const [busy, idle, active] = [http.client(), http.client(), http.client()]
  busy.send(request('POST /latch'))
  await idle.send(request('GET /small')).response()
  await active.send(request('GET /small')).response()
  const closed = http.server.close(10_000)
  t.equal(http.server.close(10_000), closed, 'closing twice is closing once')
  const served = await active.send(request('GET /small')).response()
  t.equal(served.status, 200)
  t.equal(served.headers['connection'], 'close')
  await active.closed()
  const late = http.client()
  await late.closed()
  latch.resolve()
  const through = await busy.response()
  t.same(json(through), 'through')
  t.equal(through.headers['connection'], 'close')
  await busy.closed()
  await idle.closed()
  await closed
})

t.test('closing waits no longer than it may', async (t) => {
  closeLatch()
  const http = await startServer(operations)
  const stuck = http.client().send(request('POST /latch'))
  const inFlight = (): boolean => http.metrics.text().includes('kontor_http_requests_in_flight 1\n')
  await eventually(inFlight, 'the request has arrived')
  const start = performance.now()
  await http.server.close(100)
  // A timer may fire a millisecond or two early by this clock.
  t.ok(performance.now() - start >= 90)
  t.ok(performance.now() - start < 5_000)
  await stuck.closed()
  latch.resolve()
})

t.test('requests are counted by route and status', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const c = http.client()
  for (const path of ['/things/1', '/things/2', '/nowhere', '/busy']) {
    await c.send(request(`GET ${path}`)).response()
  }
  const text = http.metrics.text()
  t.match(text, 'kontor_http_requests_total{route="GET /things/{id}",status="200"} 2\n')
  t.match(text, 'kontor_http_requests_total{route="none",status="404"} 1\n')
  t.match(text, 'kontor_http_requests_total{route="GET /busy",status="429"} 1\n')
  t.match(text, 'kontor_http_request_duration_seconds_count{route="GET /things/{id}"} 2\n')
})
