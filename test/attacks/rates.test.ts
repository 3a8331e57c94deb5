// The protection that settings switch on, on a real node: rates, origins, HTTPS, proxies, wrong
// sign-ins. Source: CONTRACT 0, 1.11.

import t from 'tap'
import { RawClient } from '../../node/http/testing/raw-client.ts'
import { NodeProcess, SECRET } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { upgradeOf } from './raw-sockets.ts'

const SHOP = 'https://shop.example'
const node = new NodeProcess({
  KONTOR_BASE_URL: 'https://kontor.example',
  KONTOR_HTTP_CORS_ORIGINS: SHOP,
  KONTOR_HTTP_FORWARDED_FROM: '127.0.0.1',
  KONTOR_RATE_CLIENT: '20',
  KONTOR_RATE_SIGN_IN_ADDRESS: '40',
  KONTOR_RATE_SIGN_IN_CLIENT: '12',
  KONTOR_WRONG_SIGN_INS: '2',
})
t.teardown(() => node.clear())
await node.start()
const token = await node.token()

/** A sign-in from an address of its own, by what a proxy says. */
function signIn(from: string, secret = SECRET, id = 'bootstrap'): Promise<Answer> {
  const form = { grant_type: 'client_credentials', client_id: id, client_secret: secret }
  return node.send('/oauth/token', {
    method: 'POST',
    raw: new URLSearchParams(form).toString(),
    headers: { 'Content-Type': 'application/x-www-form-urlencoded', 'X-Forwarded-For': from },
  })
}

/** Asks until it is refused; how often it was not. */
async function untilRefused(ask: () => Promise<Answer>, most: number): Promise<[number, Answer]> {
  for (let i = 0; i <= most; i++) {
    const answer = await ask()
    if (answer.status === 429) return [i, answer]
  }
  throw new Error(`${most} were not refused`)
}

function isOver(t: Tap, { headers, text }: Answer): void {
  const after = Number(headers['retry-after'])
  t.ok(after >= 1 && after <= 60, `${after} ${text}`)
  t.match(headers['ratelimit'], /;r=0;t=\d+/)
}

type Tap = Pick<typeof t, 'ok' | 'match'>

t.test('pages of another origin, and HTTPS', async (t) => {
  const { headers } = await node.send('/health/live', { headers: { Origin: SHOP } })
  t.equal(headers['access-control-allow-origin'], SHOP)
  t.match(headers['strict-transport-security'], /^max-age=\d{8}$/)
  const asks = { Origin: SHOP, 'Access-Control-Request-Method': 'POST' }
  const preflight = await node.send('/resources/graph', { method: 'OPTIONS', headers: asks })
  t.strictSame(
    [preflight.status, preflight.headers['access-control-allow-methods']],
    [200, 'GET, POST, HEAD'],
  )
})

t.test('their sockets, and nobody else’s', async (t) => {
  for (const [origin, status] of [
    [SHOP, 101],
    ['https://kontor.example', 101],
    ['https://shop.example.evil', 403],
    ['null', 403],
  ] as const) {
    const client = new RawClient(node.port)
    t.teardown(() => client.destroy())
    client.send(upgradeOf('/ws').replace('\r\n\r\n', `\r\nOrigin: ${origin}\r\n\r\n`))
    t.equal((await client.response()).status, status, origin)
  }
})

t.test('wrong sign-ins wait, for an account from an address', async (t) => {
  for (let i = 0; i < 2; i++) t.equal((await signIn('192.0.2.1', 'wrong', 'nobody')).status, 401)
  const slowed = await signIn('192.0.2.1', 'wrong', 'nobody')
  t.strictSame([slowed.status, slowed.headers['retry-after']], [429, '1'])
  t.equal((await signIn('192.0.2.2', 'wrong', 'nobody')).status, 401, 'not from elsewhere')
  t.equal((await signIn('192.0.2.1')).status, 200, 'nor of somebody else')
})

t.test('requests of a client, sign-ins of an address, tokens for a client', async (t) => {
  const [asked, over] = await untilRefused(() => node.ask('/resources/graph/meta', { token }), 20)
  t.ok(asked > 0)
  isOver(t, over)
  t.match(over.json(), { errors: [{ code: 'RATE_LIMITED' }] })
  t.equal((await node.send('/health/ready')).status, 200, 'who is not known is not counted')
  const [signedIn, full] = await untilRefused(() => signIn('192.0.2.3'), 12)
  t.ok(signedIn > 0 && signedIn < 12, 'the node’s own start took some')
  isOver(t, full)
  t.match(full.json(), { error: 'temporarily_unavailable', error_description: /of this client/ })
  const [, busy] = await untilRefused(() => signIn('192.0.2.4', '', ''), 40)
  isOver(t, busy)
  t.equal((await signIn('192.0.2.5', '', '')).status, 401, 'another address')
})

t.test('a person whose form is one too many is told so on a page', async (t) => {
  const send = (from: string): Promise<Answer> =>
    node.send('/oauth/authorize', {
      method: 'POST',
      raw: 'form=x',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', 'X-Forwarded-For': from },
    })
  const [sent, over] = await untilRefused(() => send('192.0.2.6'), 40)
  t.equal(sent, 40)
  isOver(t, over)
  t.equal(over.headers['content-type'], 'text/html; charset=utf-8')
  t.match(over.headers['content-security-policy'], /^default-src 'none'; style-src 'sha256-/)
  t.match(over.text, /<h1>Not now<\/h1>[^]*Too many requests in a minute[^]*in \d+ s/)
  t.equal((await send('192.0.2.7')).status, 400, 'another address')
})
