// Sockets over a real connection: what a slow reader may have on its way, and how it ends. Source:
// CONTRACT 1.10.

import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { keyAndCertificate } from '../../../test/harness/self-signed.ts'
import { startServer } from '../testing/test-server.ts'
import type { Socket, SocketHandler, SocketPath } from './sockets.ts'

const UPGRADE =
  'GET /s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'

/** A path whose sockets are handed out, with what happened to them. */
function pathOf(protocols: readonly string[] = []) {
  const opened = Promise.withResolvers<Socket>()
  const seen = { closed: 0, drained: 0, texts: [] as string[] }
  const handler: SocketHandler = {
    text: (text) => void seen.texts.push(text),
    binary() {},
    leaving() {},
    sweep() {},
    drained: () => void seen.drained++,
    closed: () => void seen.closed++,
  }
  const path: SocketPath = {
    path: '/s',
    protocols,
    frameBytesMax: 1_000,
    admit: () => null,
    open(socket) {
      opened.resolve(socket)
      return handler
    },
    sweep() {},
  }
  return { path, seen, opened: opened.promise }
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const end = performance.now() + 10_000
  while (!holds()) {
    if (performance.now() > end) throw new Error(`not in time: ${what}`)
    await new Promise((resolve) => void setImmediate(resolve))
  }
}

t.test(
  'a client that never reads is closed with a bounded buffer, one that reads is not',
  async (t) => {
    const restore = overrideLimits({ 'live.closeMs': 200 })
    t.teardown(restore)
    const http = await startServer([])
    t.teardown(http.stop)
    const { path, seen, opened } = pathOf()
    http.server.serve([], [path])
    const client = connect(http.port, '127.0.0.1').on('error', () => undefined)
    t.teardown(() => client.destroy())
    client.write(`${UPGRADE}\r\n`)
    const socket = await opened
    const frame = 'x'.repeat(100_000)
    client.resume()
    for (let i = 0; i < 100; i++) {
      t.ok(socket.send(frame))
      await until('it is taken', () => socket.bufferedBytes === 0)
    }
    client.pause()
    let sent = 0
    let most = 0
    while (socket.send(frame) && sent++ < 1_000) {
      most = Math.max(most, socket.bufferedBytes)
      await new Promise((resolve) => void setImmediate(resolve))
    }
    t.ok(sent < 1_000, `${sent} frames`)
    t.ok(most <= LIMITS.live.socketBufferBytesMax, `${most} bytes`)
    t.equal(seen.closed, 1, 'its station is told at once')
    t.equal(socket.send(frame), false)
    await until('it is cut', () => http.metrics.text().includes('closes_total{code="1013"} 1'))
    t.match(http.metrics.text(), /kontor_socket_buffers_bytes 0\n/)
    t.match(http.metrics.text(), /kontor_http_connections 0\n/)
  },
)

t.test('over TLS: small frames in, large ones out, a slow reader is closed', async (t) => {
  const directory = t.testdir({})
  const [tlsKeyFile, tlsCertFile] = [join(directory, 'key.pem'), join(directory, 'cert.pem')]
  const { key, cert } = keyAndCertificate()
  writeFileSync(tlsKeyFile, key)
  writeFileSync(tlsCertFile, cert)
  t.teardown(overrideLimits({ 'live.closeMs': 200 }))
  const http = await startServer([], { settings: { tlsKeyFile, tlsCertFile } })
  t.teardown(http.stop)
  const { path, seen, opened } = pathOf()
  http.server.serve([], [path])
  const client = connectTls({ port: http.port, host: '127.0.0.1', rejectUnauthorized: false })
  client.on('error', () => undefined)
  t.teardown(() => client.destroy())
  let bytes = Buffer.alloc(0)
  client.on('data', (some) => void (bytes = Buffer.concat([bytes, some])))
  client.write(`${UPGRADE}\r\n`)
  const socket = await opened
  await until('it is let in', () => bytes.includes('\r\n\r\n'))
  t.match(bytes.toString(), /^HTTP\/1.1 101 /)
  bytes = Buffer.alloc(0)
  client.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]))
  await until('its frame has come', () => seen.texts.length === 1)
  t.strictSame(seen.texts, ['hi'])
  const large = 'x'.repeat(300_000)
  t.ok(socket.send(large))
  await until('all of it has come', () => bytes.length === 10 + large.length)
  t.equal(bytes.subarray(10).toString(), large)
  client.pause()
  let sent = 0
  while (socket.send(large) && sent++ < 1_000) {
    await new Promise((resolve) => void setImmediate(resolve))
  }
  t.ok(sent < 1_000, `${sent} frames`)
  await until('it is cut', () => http.metrics.text().includes('closes_total{code="1013"} 1'))
})

t.test('who takes nothing keeps the room of one caller full, and of nobody else', async (t) => {
  const http = await startServer([])
  t.teardown(http.stop)
  const { path } = pathOf()
  const opened: Socket[] = []
  const handler = path.open({} as Socket)
  http.server.serve([], [{ ...path, open: (socket) => (opened.push(socket), handler) }])
  for (let i = 1; i <= 3; i++) {
    const client = connect(http.port, '127.0.0.1').on('error', () => undefined)
    t.teardown(() => client.destroy())
    client.pause()
    client.write(`${UPGRADE}\r\n`)
    await until('it is let in', () => opened.length === i)
  }
  const [first, second, third] = opened as [Socket, Socket, Socket]
  t.ok(first.send('x'.repeat(16_000_000)), 'one frame may be large')
  await new Promise((resolve) => void setImmediate(resolve))
  const { bufferedBytes } = first
  t.ok(bufferedBytes > 0, 'more than the system takes')
  const frame = 'x'.repeat(1_000)
  const room = 2 * bufferedBytes + 2 * frame.length - 1
  t.teardown(overrideLimits({ 'live.socketBuffersBytesMax': room }))
  third.belongTo('client/other')
  t.ok(third.send(frame), 'who comes next has room')
  t.notOk(second.send(frame), 'whoever has as much as is free has none')
  await until('it is told', () => http.metrics.text().includes('closes_total{code="1013"} 1'))
})

t.test('what the system takes at once counts as taken, also within one tick', async (t) => {
  const restore = overrideLimits({ 'live.socketBufferBytesMax': 100_000 })
  t.teardown(restore)
  const http = await startServer([])
  t.teardown(http.stop)
  const { path, opened } = pathOf()
  http.server.serve([], [path])
  const client = connect(http.port, '127.0.0.1').on('error', () => undefined)
  t.teardown(() => client.destroy())
  client.resume()
  client.write(`${UPGRADE}\r\n`)
  const socket = await opened
  for (let i = 0; i < 6; i++) t.ok(socket.send('x'.repeat(40_000)))
})

t.test('a subprotocol is agreed on, or there is no socket', async (t) => {
  const http = await startServer([])
  t.teardown(http.stop)
  const { path, opened } = pathOf(['new', 'old'])
  http.server.serve([], [path])
  const answer = (offered: string): Promise<string> =>
    new Promise((resolve) => {
      const client = connect(http.port, '127.0.0.1').on('error', () => undefined)
      client.once('data', (data) => {
        resolve(data.toString())
        client.destroy()
      })
      client.write(`${UPGRADE}Sec-WebSocket-Protocol: ${offered}\r\n\r\n`)
    })
  t.match(await answer('none'), /^HTTP\/1.1 400 [^]*new or old/)
  t.match(await answer('other, old'), /^HTTP\/1.1 101 [^]*Sec-WebSocket-Protocol: old/)
  t.equal((await opened).protocol, 'old')
  const lenient = pathOf(['new'])
  http.server.serve([], [{ ...lenient.path, opensOthers: true }])
  t.match(await answer('none'), /^HTTP\/1.1 101 /)
  t.equal((await lenient.opened).protocol, '', 'for its station to close')
})
