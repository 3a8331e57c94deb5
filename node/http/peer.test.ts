// PROXY preambles over real sockets: they count where a setting says so, and nobody else's do.

import t from 'tap'
import { Peers } from './peer.ts'
import type { Peer } from './peer.ts'
import { errorOf, operation, request, startServer } from './testing/test-server.ts'

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')

/** A preamble of version 2 for TCP; without an address one of the proxy's own requests (LOCAL). */
function preamble(address?: readonly number[]): Buffer {
  if (address === undefined) return Buffer.concat([SIGNATURE, Buffer.from([0x20, 0, 0, 0])])
  const isV4 = address.length === 4
  const addresses = [...address, ...address, 0, 80, 0, 81]
  const head = [0x21, isV4 ? 0x11 : 0x21, 0, addresses.length]
  return Buffer.concat([SIGNATURE, Buffer.from([...head, ...addresses])])
}

const STRANGER = preamble([203, 0, 113, 9])
const GET = Buffer.from(request('GET /from'))

const operations = [
  operation('GET', '/from', (r) => ({ status: 200, body: r.address })),
  operation('GET', '/mine', (r) => ({ status: 200, body: r.address }), { access: 'token' }),
]

t.test('a preamble of somebody else is refused, whatever comes behind it', async (t) => {
  for (const proxyFrom of [[], ['10.0.0.0/8', '::1']]) {
    const http = await startServer(operations, { settings: { proxyFrom } })
    t.teardown(http.stop)
    const client = http.client()
    t.equal((await client.send(GET).response()).body.toString(), '"127.0.0.1"')
    const refused = await client.send(Buffer.concat([STRANGER, GET])).response()
    t.equal(refused.status, 400)
    t.match(errorOf(refused), {
      code: 'MALFORMED_REQUEST',
      message: /PROXY.*KONTOR_HTTP_PROXY_FROM/,
    })
    await client.closed()
    const several = http.client().send(Buffer.concat([STRANGER, GET, GET]))
    await several.closed()
    t.notMatch(several.rest.toString(), '200 OK')
  }
})

t.test('with a token it counts for nothing', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const mine = request('GET /mine', { Authorization: 'Bearer good' })
  const answer = await http
    .client()
    .send(Buffer.concat([STRANGER, Buffer.from(mine)]))
    .response()
  t.strictSame([answer.status, answer.body.toString()], [200, '"127.0.0.1"'])
})

t.test('that of a proxy that is trusted counts', async (t) => {
  for (const proxyFrom of [['127.0.0.1'], ['10.0.0.0/8', '127.0.0.0/8']]) {
    const http = await startServer(operations, { settings: { proxyFrom } })
    t.teardown(http.stop)
    const from = async (first: Buffer): Promise<unknown> => {
      const client = http.client().send(Buffer.concat([first, GET]))
      return JSON.parse((await client.response()).body.toString())
    }
    t.equal(await from(STRANGER), '203.0.113.9')
    const v6 = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    t.equal(await from(preamble(v6)), '2001:db8::1')
    t.equal(await from(preamble()), '127.0.0.1', 'its own request')
    t.equal(await from(Buffer.alloc(0)), '127.0.0.1', 'none')
  }
})

t.test('addresses of both families, and of sockets for both', async (t) => {
  const peer = (near: string, told = ''): Peer => {
    const bytes = (hex: string): ArrayBuffer => new Uint8Array(Buffer.from(hex, 'hex')).buffer
    return { getRemoteAddress: () => bytes(near), getProxiedRemoteAddress: () => bytes(told) }
  }
  const MAPPED = '00000000000000000000ffff0a000001'
  const peers = new Peers(['10.0.0.1', '2001:db8::/32'])
  t.equal(peers.addressOf(peer(MAPPED, 'cb007109')), '203.0.113.9')
  t.notOk(peers.isForged(peer(MAPPED, 'cb007109')))
  const near = '20010db8000000000000000000000007'
  t.equal(peers.addressOf(peer(near, 'cb007109')), '203.0.113.9')
  t.equal(peers.addressOf(peer(near)), '2001:db8::7')
  t.ok(peers.isForged(peer('0a000002', 'cb007109')))
  t.equal(peers.addressOf(peer('0a000002', 'cb007109')), '10.0.0.2')
  t.notOk(peers.isForged(peer('0a000002')))
  const behind = new Peers([], ['10.0.0.0/8'])
  const told = '203.0.113.9, ::ffff:10.0.0.3'
  t.equal(behind.addressOf(peer(MAPPED), told), '203.0.113.9')
  t.equal(behind.addressOf(peer(MAPPED), '::ffff:203.0.113.9'), '203.0.113.9', 'as proxies have it')
  for (const [text, address] of [
    ['203.0.113.9:4711', '203.0.113.9'],
    ['[2001:db8::7]:443', '2001:db8::7'],
    ['[::ffff:203.0.113.9]:1', '203.0.113.9'],
    ['203.0.113.9:x', '10.0.0.1'],
    ['[x]', '10.0.0.1'],
  ] as const) {
    t.equal(behind.addressOf(peer(MAPPED), text), address, text)
  }
})
