// What every answer is guarded by, over real sockets: headers, origins, rates, and whom a proxy
// stands for. Source: CONTRACT 0 "Browsers", "Rate limits", "Connections".

import t from 'tap'
import type { Test } from 'tap'
import { lacking } from '../../../protocol/errors.ts'
import type { RawResponse } from '../testing/raw-client.ts'
import { errorOf, operation, request, startServer } from '../testing/test-server.ts'
import type { TestServerOptions } from '../testing/test-server.ts'

const PAGE = { 'Content-Type': 'text/html', 'Content-Security-Policy': "default-src 'self'" }
const ETAG = { ETag: '"1"' }
const SHOP = 'https://shop.example'
const GOOD = { Authorization: 'Bearer good' }

const operations = [
  operation('GET', '/bare', () => ({ status: 204 })),
  operation('GET', '/plain', () => ({ status: 200, body: 1 })),
  operation('GET', '/own', () => ({ status: 200, body: 1, headers: ETAG })),
  operation('GET', '/page', () => ({ status: 200, raw: 'x', headers: PAGE })),
  operation('GET', '/file', () => ({
    ...{ status: 200, raw: 'x'.repeat(4_000) },
    headers: { 'Content-Type': 'text/css', 'Cache-Control': 'no-cache' },
  })),
  operation('GET', '/fault', () => {
    throw new Error('a fault')
  }),
  operation('GET', '/mine', () => ({ status: 200, body: 1 }), { access: 'token' }),
  operation('PUT', '/mine', () => ({ status: 200, body: 1 }), { access: 'token' }),
  operation(
    'GET',
    '/closed',
    () => {
      throw lacking('cluster:read')
    },
    { access: 'token', permissions: ['cluster:read'] },
  ),
  operation('GET', '/from', (r) => ({ status: 200, body: r.address })),
  operation('POST', '/sign-in', () => ({ status: 200, body: 1 }), { rate: 'sign-in' }),
]

type Get = (line: string, headers?: Record<string, string>) => Promise<RawResponse>

async function serve(t: Test, options: TestServerOptions = {}): Promise<Get> {
  const http = await startServer(operations, options)
  t.teardown(http.stop)
  return (line, headers = {}) =>
    http.client().send(request(line, headers)).response(line.split(' ')[0])
}

t.test('every answer has the headers, whatever it is, and each once', async (t) => {
  const get = await serve(t)
  for (const line of [
    ...['GET /bare', 'GET /plain', 'GET /own', 'GET /page', 'GET /file', 'GET /fault'],
    ...['GET /mine', 'GET /nowhere', 'DELETE /plain', 'OPTIONS /plain', 'HEAD /plain'],
  ]) {
    const { headers } = await get(line, { 'Accept-Encoding': 'gzip' })
    t.equal(headers['x-content-type-options'], 'nosniff', line)
    t.equal(headers['referrer-policy'], 'no-referrer', line)
    t.equal(headers['cross-origin-resource-policy'], 'same-origin', line)
    t.equal(headers['strict-transport-security'], undefined, line)
    t.match(headers['cache-control'], /^no-(store|cache)$/, line)
    const policy =
      line === 'GET /page' ? "default-src 'self'" : "default-src 'none'; frame-ancestors 'none'"
    t.equal(headers['content-security-policy'], policy, line)
    t.notOk(
      Object.keys(headers).some((name) => name.startsWith('access-control')),
      line,
    )
    t.equal(headers['ratelimit'], undefined)
  }
  const packed = await get('GET /file', { 'Accept-Encoding': 'gzip' })
  t.match(packed.headers, { 'content-encoding': 'gzip', vary: 'Accept-Encoding' })
})

t.test('RFC 6797: behind HTTPS browsers are told to stay there', async (t) => {
  const get = await serve(t, { settings: { baseUrl: 'https://kontor.example' } })
  for (const line of ['GET /plain', 'GET /page', 'GET /nowhere']) {
    const { headers } = await get(line)
    t.equal(headers['strict-transport-security'], 'max-age=31536000', line)
  }
})

t.test('RFC 6750 3: what is asked for of who is known', async (t) => {
  const get = await serve(t)
  const { status, headers } = await get('GET /closed', GOOD)
  t.strictSame(
    [status, headers['www-authenticate']],
    [403, 'Bearer realm="kontor", error="insufficient_scope", scope="cluster:read"'],
  )
  t.equal((await get('GET /closed')).headers['www-authenticate'], 'Bearer realm="kontor"')
})

t.test('pages of the origins that are named, and of no other', async (t) => {
  const get = await serve(t, { settings: { corsOrigins: [SHOP, 'http://localhost:3000'] } })
  const told = ({ headers }: RawResponse) => [
    headers['access-control-allow-origin'],
    headers['vary'],
  ]
  for (const line of ['GET /plain', 'GET /mine', 'GET /nowhere', 'GET /fault', 'GET /own']) {
    const answer = await get(line, { Origin: SHOP })
    t.strictSame(told(answer), [SHOP, 'Origin'], line)
    t.match(answer.headers['access-control-expose-headers'], /ETag.*RateLimit.*X-Consistency/)
    t.equal(answer.headers['access-control-allow-credentials'], undefined)
  }
  for (const origin of [
    ...['https://shop.example.evil', 'http://shop.example', 'https://shop.example:8443'],
    ...['https://evil.shop.example', 'null', '*', 'HTTPS://SHOP.EXAMPLE', `${SHOP}/`],
    ...[`${SHOP}, ${SHOP}`, '__proto__'],
  ]) {
    t.strictSame(told(await get('GET /plain', { Origin: origin })), [undefined, 'Origin'], origin)
  }
  t.strictSame(told(await get('GET /plain')), [undefined, 'Origin'], 'what a cache keeps')
})

t.test('a preflight is answered before anybody asks who it is', async (t) => {
  const get = await serve(t, {
    settings: { corsOrigins: [SHOP] },
    limits: { strayBareAnswersMax: 0 },
  })
  const asks = { 'Access-Control-Request-Method': 'PUT' }
  const good = await get('OPTIONS /mine', { Origin: SHOP, ...asks })
  t.match(good, {
    status: 200,
    headers: {
      'access-control-allow-origin': SHOP,
      'access-control-allow-methods': 'GET, PUT, HEAD',
      'access-control-allow-headers': /Authorization.*Content-Type.*If-Match/,
      'access-control-max-age': '7200',
    },
  })
  const evil = await get('OPTIONS /mine', { Origin: 'https://evil.example', ...asks })
  t.equal(evil.headers['access-control-allow-origin'], undefined)
  t.equal(evil.headers['access-control-allow-methods'], undefined)
  t.equal((await get('OPTIONS /nowhere', { Origin: SHOP, ...asks })).status, 404)
})

t.test('callers have so many requests, addresses so many sign-ins', async (t) => {
  const get = await serve(t, { rates: { client: 2, signInAddress: 3 } })
  const left = ({ headers }: RawResponse) => headers['ratelimit']?.replace(/;t=\d+$/, '')
  t.strictSame(left(await get('GET /mine', GOOD)), '"client";r=1')
  t.equal((await get('GET /mine', GOOD)).headers['ratelimit-policy'], '"client";q=2;w=60')
  const over = await get('GET /mine', GOOD)
  t.equal(over.status, 429)
  t.equal(errorOf(over).code, 'RATE_LIMITED')
  const seconds = Number(over.headers['retry-after'])
  t.ok(seconds >= 1 && seconds <= 60, String(seconds))
  t.equal(left(over), '"client";r=0')
  t.equal(left(await get('GET /plain')), undefined, 'who says nothing isn’t counted')
  t.equal((await get('GET /mine')).status, 401)
  for (const one of ['2', '1', '0']) t.equal(left(await get('POST /sign-in')), `"address";r=${one}`)
  t.equal((await get('POST /sign-in')).status, 429)
})

t.test('X-Forwarded-For counts from the proxies that are named', async (t) => {
  const from = async (get: Get, forwarded: string): Promise<string> =>
    JSON.parse((await get('GET /from', { 'X-Forwarded-For': forwarded })).body.toString()) as string
  const nobody = await serve(t)
  t.equal(await from(nobody, '192.0.2.1'), '127.0.0.1')
  const other = await serve(t, { settings: { forwardedFrom: ['10.0.0.0/8'] } })
  t.equal(await from(other, '192.0.2.1'), '127.0.0.1')
  const get = await serve(t, { settings: { forwardedFrom: ['127.0.0.1', '10.0.0.0/8'] } })
  for (const [forwarded, address] of [
    ['192.0.2.1', '192.0.2.1'],
    ['203.0.113.7, 192.0.2.1', '192.0.2.1'],
    ['203.0.113.7, 192.0.2.1, 10.0.0.3', '192.0.2.1'],
    ['203.0.113.7,2001:db8::1', '2001:db8::1'],
    ['10.0.0.4', '10.0.0.4'],
    ['', '127.0.0.1'],
    ['unknown', '127.0.0.1'],
    ['192.0.2.1, unknown', '127.0.0.1'],
    ['192.0.2.1, ', '127.0.0.1'],
    ['192.0.2.1:8080', '192.0.2.1'],
    ['192.0.2.1:', '127.0.0.1'],
  ] as const) {
    t.equal(await from(get, forwarded), address, forwarded)
  }
})
