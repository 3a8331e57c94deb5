// What a node says of itself at its root: to a browser, to a program, to strangers and to those who
// may know more. Source: CONTRACT 0 "Front page".

import t, { type Test } from 'tap'
import { createHash } from 'node:crypto'
import { LIMITS } from '../../config/limits.ts'
import { Acl, parseAce } from '../../protocol/ace.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { Identity } from '../access/identity.ts'
import type { Authenticate } from '../http/core.ts'
import { startServer } from '../http/testing/test-server.ts'
import type { TestServer } from '../http/testing/test-server.ts'
import { prefersHtml } from '../accept.ts'
import { OrderCount } from './order-count.ts'
import type { Front } from './page.ts'
import { frontOperations } from './routes.ts'
import type { FrontParts } from './routes.ts'

const HTML = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }
const AT = 'http://127.0.0.1:8080'

/** `Bearer <ACE>` may do what the entry says. */
const authenticate: Authenticate = (authorization) => {
  const parsed = parseAce(authorization.replace('Bearer ', ''))
  if (!parsed.ok) return new RequestError('UNAUTHENTICATED', 'this token is not known')
  return { id: 'c', acl: new Acl([parsed.ace]) } as unknown as Identity
}

const HTTP = { host: '127.0.0.1', port: 8080, baseUrl: AT, tlsKeyFile: null, tlsCertFile: null }
const PARTS: FrontParts = {
  version: '1.2.3',
  settings: {
    http: { ...HTTP, connectionsMax: 10, proxyFrom: [], forwardedFrom: [], corsOrigins: [] },
    storageDriver: 'embedded',
    dataDir: '/var/lib/kontor',
    bootstrapSecret: null,
  },
  checks: () => [{ name: 'graph', ok: true }],
  orders: () => Promise.resolve(12_345),
}

function withHttp(http: Partial<FrontParts['settings']['http']>): FrontParts {
  return { ...PARTS, settings: { ...PARTS.settings, http: { ...PARTS.settings.http, ...http } } }
}

async function serve(t: Test, parts: FrontParts): Promise<TestServer> {
  const http = await startServer(frontOperations(parts), { authenticate })
  t.teardown(http.stop)
  return http
}

interface Told {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

async function get(
  { client }: TestServer,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<Told> {
  const lines = Object.entries({ Host: 'localhost:8080', ...headers }).map((h) => h.join(': '))
  const sent = client().send([`${method} / HTTP/1.1`, ...lines, '', ''].join('\r\n'))
  const { status, headers: got, body } = await sent.response(method)
  return { status, headers: got, text: body.toString() }
}

const indexOf = ({ text }: Told): Front => JSON.parse(text) as Front

t.test('a program gets an index', async (t) => {
  const http = await serve(t, PARTS)
  const answer = await get(http)
  t.equal(answer.status, 200)
  t.match(answer.headers, { 'content-type': 'application/json', vary: 'Accept, Authorization' })
  t.match(indexOf(answer), {
    name: 'Kontor',
    version: '1.2.3',
    storage: 'embedded',
    ready: true,
    links: { openapi: '/openapi.json', ready: '/health/ready', metrics: '/metrics' },
  })
  const head = await get(http, {}, 'HEAD')
  t.equal(head.headers['content-length'], answer.headers['content-length'])
})

t.test('a browser gets a page that loads nothing and runs nothing', async (t) => {
  const http = await serve(t, PARTS)
  const { status, headers, text } = await get(http, HTML)
  t.equal(status, 200)
  t.equal(headers['content-type'], 'text/html; charset=utf-8')
  const [, style = ''] = /<style>([^]*)<\/style>/.exec(text)!
  const hash = createHash('sha256').update(style).digest('base64')
  t.match(headers['content-security-policy'], `default-src 'none'; style-src 'sha256-${hash}';`)
  t.notMatch(text, /<script| style="| on[a-z]+="/)
  const places = [...text.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, place]) => place!)
  for (const place of places) t.match(place, /^(\/[a-z/.]+|data:image.*)$/)
  for (const place of ['/live', '/graphiql', '/openapi.json', '/health/ready', '/metrics']) {
    t.ok(places.includes(place), place)
  }
  for (const said of ['1.2.3', 'Ready', 'One process', '12,345']) t.match(text, said)
  const head = await get(http, HTML, 'HEAD')
  t.equal(head.headers['content-length'], String(Buffer.byteLength(text)))
})

t.test('the first request to paste has its body whole, in lines that fit', async (t) => {
  const { text } = await get(await serve(t, PARTS), HTML)
  const [, shown = ''] = /<pre>([^]*)<\/pre>/.exec(text)!
  const script = shown
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
  t.match(script, 'require("/var/lib/kontor/bootstrap.json")')
  for (const line of script.split('\n')) t.ok(line.length <= 90, line)
  const [, body = ''] = /-d '(\[[^]*\])'/.exec(script)!
  t.match(JSON.parse(body), [{ edge: 'orders', limit: 3 }])
})

t.test('strangers are told nothing of the business, and nothing of the machine', async (t) => {
  const cases: [string, FrontParts, Record<string, string>?][] = [
    ['a node that listens to others', withHttp({ host: '0.0.0.0' })],
    ['a public address', withHttp({ baseUrl: 'https://orders.example.com' })],
    ['a name that was made to point here', PARTS, { Host: 'evil.example.com:8080' }],
    ['a name that begins alike', PARTS, { Host: 'localhost.example.com' }],
    ['passed on', PARTS, { 'X-Forwarded-For': '203.0.113.1' }],
    ['passed on, by the RFC', PARTS, { Forwarded: 'for=203.0.113.1' }],
    [
      'a token for something else',
      withHttp({ host: '::' }),
      { Authorization: 'Bearer registry:read' },
    ],
  ]
  for (const [what, parts, headers] of cases) {
    const asked: string[] = []
    const orders = (): Promise<number> => Promise.resolve(asked.push('') * 12_345)
    const http = await serve(t, { ...parts, orders })
    t.notOk('orders' in indexOf(await get(http, headers)), what)
    const { text } = await get(http, { ...HTML, ...headers })
    t.notMatch(text, /12,345|\/var\/lib/, what)
    t.match(text, 'whose token may query orders', what)
    t.equal(asked.length, 0, 'nothing is counted for them')
  }
})

t.test('who may query orders is told how many, and so is who sits there', async (t) => {
  const far = await serve(t, withHttp({ host: '0.0.0.0' }))
  const known = { Authorization: 'Bearer graph/order:query' }
  t.equal(indexOf(await get(far, known)).orders, 12_345)
  t.match((await get(far, { ...HTML, ...known })).text, '12,345')
  t.equal((await get(far, { Authorization: 'Bearer !' })).status, 401)
  for (const Host of ['localhost', '127.0.0.1:80', '[::1]:8080']) {
    t.equal(indexOf(await get(await serve(t, PARTS), { Host })).orders, 12_345, Host)
  }
})

t.test('one that is not ready says why, and what nobody knows is left out', async (t) => {
  const reason = 'the graph is <made> anew'
  const checks: FrontParts['checks'] = () => [{ name: 'graph', ok: false, reason }]
  const http = await serve(t, { ...PARTS, checks, orders: () => Promise.resolve(null) })
  const index = indexOf(await get(http))
  t.match(index, { ready: false, reasons: [reason] })
  t.notOk('orders' in index)
  const { text } = await get(http, HTML)
  t.match(text, 'Not ready</span>: the graph is &lt;made&gt; anew')
  t.match(text, 'not known now')
})

t.test('who asks for a page, and who for data', async (t) => {
  const pages = [
    HTML.Accept,
    'text/html',
    'TEXT/HTML',
    'text/*',
    'text/html, */*',
    'text/html;q=0.9, */*;q=0.1',
  ]
  const data = [
    '',
    '*/*',
    'application/json',
    'application/json, text/html',
    'text/html;q=0',
    'text/html;q=x',
  ]
  for (const accept of [
    ...data,
    'text/html;q=0.5, application/json',
    'image/png',
    `${'a,'.repeat(600)}text/html`,
  ]) {
    t.notOk(prefersHtml(accept), accept.slice(0, 60))
  }
  for (const accept of pages) t.ok(prefersHtml(accept), accept)
})

t.test('however many look, the graph counts once in a while', async (t) => {
  let ran = 0
  let nowMs = 0
  const run = (): Promise<{ json: string }> => {
    ran++
    if (ran === 2) return Promise.reject(new RequestError('UNAVAILABLE', 'away'))
    return Promise.resolve({ json: `{"orders":${ran}}` })
  }
  const count = new OrderCount({ graph: { run }, monotonicMs: () => nowMs })
  t.strictSame(await Promise.all([count.read(), count.read()]), [1, 1])
  nowMs += LIMITS.front.countMs - 1
  t.equal(await count.read(), 1)
  nowMs += 1
  t.equal(await count.read(), null, 'a graph that is away is no failure of the page')
  nowMs += LIMITS.front.countMs
  t.equal(await count.read(), 3)
})
