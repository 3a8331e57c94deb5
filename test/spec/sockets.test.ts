// `/ws` over real sockets: who may come in, frames, and why a connection ends. Source: CONTRACT
// 1.10.

import t from 'tap'
import { connect as connectTcp } from 'node:net'
import { LIMITS } from '../../config/limits.ts'
import { startNode } from '../harness/node-process.ts'
import { connect, signIn } from '../harness/socket-client.ts'

const node = await startNode(t)

t.test('who sends a good token first is let in', async (t) => {
  const client = await connect(node)
  client.send({ type: 'auth', token: await node.token(), requestId: 'r1' })
  t.strictSame(await client.frame('authenticated'), { type: 'authenticated', requestId: 'r1' })
  client.send({ type: 'ping', requestId: 'r2' })
  t.strictSame(await client.frame('pong'), { type: 'pong', requestId: 'r2' })
  client.close()
  t.equal((await client.ended()).code, 1005)
})

t.test('frames that come with the token wait for it', async (t) => {
  const client = await connect(node)
  client.send({ type: 'auth', token: await node.token() })
  client.send({ type: 'ping' })
  await client.frame('pong')
  t.equal(client.frames[0]?.type, 'authenticated')
  client.close()
})

for (const [what, frame] of [
  ['a token that is none', { type: 'auth', token: 'A'.repeat(64), requestId: 'r' }],
  ['another frame first', { type: 'ping' }],
  ['no token in it', { type: 'auth' }],
  ['what is no frame', '[1]'],
  ['what is no JSON', '{'],
] as const) {
  t.test(`${what} ends with 4401`, async (t) => {
    const client = await connect(node)
    client.send(frame)
    t.match(await client.frame('error'), { code: 'AUTH_FAILED', message: /./ })
    t.equal((await client.ended()).code, 4401)
  })
}

t.test('a bad frame of one who is known is answered, and no more', async (t) => {
  const client = await signIn(node)
  for (const [frame, message] of [
    ['{', /JSON/],
    ['7', /object/],
    [{ requestId: 'x' }, /`type`/],
    [{ type: 'toString', requestId: 'q' }, /no such type of frame/],
  ] as const) {
    client.send(frame)
    t.match(await client.frame('error'), { code: 'MALFORMED_REQUEST', message })
  }
  client.send({ type: 'nothing', requestId: 'q' })
  t.match(await client.frame('error'), { requestId: 'q' })
  client.send({ type: 'ping' })
  await client.frame('pong')
  client.close()
})

t.test('bytes, large frames and floods end with a code', async (t) => {
  const bytes = await signIn(node)
  bytes.sendBytes(new Uint8Array([1]))
  t.equal((await bytes.ended()).code, 1003)
  const large = await signIn(node)
  large.send({ type: 'ping', x: 'x'.repeat(LIMITS.live.frameBytesMax) })
  t.equal((await large.ended()).code, 1009)
  const stranger = await connect(node)
  stranger.send({ type: 'auth', token: 'x'.repeat(LIMITS.live.authFrameBytesMax) })
  t.equal((await stranger.ended()).code, 1009)
  const flood = await signIn(node)
  for (let i = 0; i < 5 * LIMITS.live.framesAtOnceMax; i++) flood.send({ type: 'pong' })
  t.equal((await flood.ended()).code, 1008)
})

t.test('a revoked token ends its connections within a second, and no others', async (t) => {
  const token = await node.token()
  const [mine, other] = [await signIn(node, token), await signIn(node)]
  const revoked = await node.form('/oauth/revoke', { token })
  t.equal(revoked.status, 200)
  const began = performance.now()
  t.match(await mine.frame('error'), { code: 'AUTH_FAILED' })
  t.equal((await mine.ended()).code, 4401)
  t.ok(performance.now() - began < 5_000)
  other.send({ type: 'ping' })
  await other.frame('pong')
  other.close()
})

t.test('HTTP beside it is as it was', async (t) => {
  const plain = await node.send('/ws')
  t.equal(plain.status, 426, 'not without an upgrade')
  t.match(plain.headers, { upgrade: 'websocket', connection: /upgrade/i })
  t.match(plain.json(), { errors: [{ code: 'UPGRADE_REQUIRED' }] })
  t.equal((await node.send('/ws')).status, 426, 'the connection goes on')
  t.not((await node.send('/graphql')).status, 426, 'it answers without one, too')
  await t.rejects(connect(node, '/other'), /lets no socket in/)
  t.equal((await node.send('/health/live')).status, 200)
})

/** The status line of an upgrade with these headers. */
function upgrade(headers: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTcp(node.port, '127.0.0.1')
    socket.on('error', reject)
    socket.once('data', (data) => {
      resolve(data.toString().split('\r\n')[0]!)
      socket.destroy()
    })
    socket.write(
      `GET /ws HTTP/1.1\r\nHost: 127.0.0.1:${node.port}\r\nConnection: Upgrade\r\n` +
        `Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${headers}\r\n`,
    )
  })
}

t.test('pages of other origins and other versions are refused', async (t) => {
  const version = 'Sec-WebSocket-Version: 13\r\n'
  t.match(await upgrade(version), / 101 /)
  t.match(await upgrade(`${version}Origin: http://127.0.0.1:${node.port}\r\n`), / 101 /)
  t.match(await upgrade(`${version}Origin: http://evil.example\r\n`), / 403 /)
  t.match(await upgrade(`${version}Origin: null\r\n`), / 403 /)
  t.match(await upgrade('Sec-WebSocket-Version: 8\r\n'), / 400 /)
})

t.test('a node that stops says so', async (t) => {
  const client = await signIn(node)
  const ending = node.stop()
  const closing = await client.frame('closing')
  const { reconnectAfterMs } = closing as unknown as { reconnectAfterMs: number }
  t.ok(reconnectAfterMs >= 0 && reconnectAfterMs <= LIMITS.live.comeBackMsMax)
  t.equal((await client.ended()).code, 1001)
  t.equal(await ending, 0)
})
