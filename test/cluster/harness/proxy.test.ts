// The faults that a proxy makes are what they say they are: bytes held back arrive when it is
// healed, in their order; those of a broken connection never; and of frames only those that are
// picked.

import t from 'tap'
import type { Test } from 'tap'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { until } from '../../harness/patience.ts'
import { AppendPicker, frames, isAppend } from './cassandra-frames.ts'
import { Proxy } from './proxy.ts'
import type { Splitter } from './proxy.ts'

interface Scene {
  readonly proxy: Proxy
  /** What the engine has got. */
  readonly heard: () => string
  /** A connection of the member, and what it got. */
  readonly member: () => { socket: Socket; got: () => string; isOpen: () => boolean }
}

/** An engine that says back what it hears, in capitals. */
async function scene(t: Test, split?: Splitter): Promise<Scene> {
  let heard = ''
  const engine = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      heard += bytes.toString()
      socket.write(bytes.toString().toUpperCase())
    })
  })
  await new Promise<void>((resolve) => void engine.listen(0, '127.0.0.1', resolve))
  const { port } = engine.address() as AddressInfo
  const proxy = await new Proxy(() => ({ host: '127.0.0.1', port }), split).listen()
  const sockets: Socket[] = []
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    await proxy.close()
    await new Promise((resolve) => void engine.close(resolve))
  })
  const member: Scene['member'] = () => {
    const socket = connect({ host: '127.0.0.1', port: proxy.port })
    sockets.push(socket)
    let got = ''
    let open = true
    socket.on('data', (bytes) => void (got += bytes.toString()))
    socket.on('error', () => undefined)
    socket.on('close', () => (open = false))
    return { socket, got: () => got, isOpen: () => open }
  }
  return { proxy, heard: () => heard, member }
}

t.test('healed, all passes in its order', async (t) => {
  const { proxy, heard, member } = await scene(t)
  const a = member()
  a.socket.write('one ')
  await until('it is answered', () => a.got() === 'ONE ')
  proxy.cut()
  a.socket.write('two ')
  const b = member()
  b.socket.write('new ')
  a.socket.write('three ')
  await until('both are there', () => proxy.connections === 2)
  proxy.heal()
  await until('all is answered', () => a.got() === 'ONE TWO THREE ' && b.got() === 'NEW ')
  t.match(heard(), /^one /)
})

t.test('an answer that is never heard', async (t) => {
  const { proxy, heard, member } = await scene(t)
  const a = member()
  proxy.hold('answers')
  a.socket.write('done')
  await until('the engine has done it', () => heard() === 'done')
  proxy.break()
  await until('the connection is lost', () => !a.isOpen())
  t.equal(a.got(), '')
  proxy.heal()
  const b = member()
  b.socket.write('again')
  await until('a new one works', () => b.got() === 'AGAIN')
})

t.test('a request that arrives after its sender is gone', async (t) => {
  const { proxy, heard, member } = await scene(t)
  const a = member()
  a.socket.write('one')
  await until('it is connected', () => heard() === 'one')
  proxy.hold('requests')
  a.socket.write(' late', () => a.socket.destroy())
  await until('the member has left', () => !a.isOpen())
  t.equal(heard(), 'one')
  proxy.heal()
  await until('it arrives', () => heard() === 'one late')
})

t.test('slow, in order', async (t) => {
  const { proxy, member } = await scene(t)
  const a = member()
  proxy.delay('answers', 150)
  const began = performance.now()
  a.socket.write('a')
  await until('it is answered', () => a.got() === 'A')
  t.ok(performance.now() - began >= 145)
  a.socket.write('b')
  proxy.delay('answers', 0)
  a.socket.write('c')
  await until('all is answered', () => a.got() === 'ABC')
})

t.test('refused', async (t) => {
  const { proxy, member } = await scene(t)
  const a = member()
  a.socket.write('x')
  await until('it works', () => a.got() === 'X')
  proxy.refuse()
  await until('it is lost', () => !a.isOpen())
  const b = member()
  await until('a new one is refused', () => !b.isOpen())
  t.equal(proxy.connections, 0)
})

/** A frame of the native protocol: of that opcode and stream, its body beginning with a byte. */
function frame(opcode: number, stream: number, first: number): Buffer {
  const bytes = Buffer.from([4, 0, 0, 0, opcode, 0, 0, 0, 3, first, 65, 66])
  bytes.writeInt16BE(stream, 2)
  return bytes
}

t.test('frames are told apart, however they are cut', async (t) => {
  const all = Buffer.concat([frame(0x0d, 1, 0), frame(0x0a, 2, 0), frame(0x0d, 3, 1)])
  for (let at = 0; at <= all.length; at++) {
    const first = frames(all.subarray(0, at))
    const second = frames(Buffer.concat([first.rest, all.subarray(at)]))
    t.equal(first.units.length + second.units.length, 3)
    t.equal(second.rest.length, 0)
  }
  t.same(frames(all).units.map(isAppend), [true, false, false], 'only a logged batch is an append')
})

t.test('of answers only those to appends are held', async (t) => {
  const { proxy, heard, member } = await scene(t, frames)
  const picker = new AppendPicker()
  proxy.hold('requests', picker.mark)
  proxy.hold('answers', picker.answers)
  const a = member()
  const append = frame(0x0d, 1, 0)
  a.socket.write(Buffer.concat([append, frame(0x0a, 2, 0)]))
  await until('both have come', () => heard().length === append.length * 2)
  await until('one is answered', () => a.got().length === append.length)
  t.equal(picker.seen, 1)
  t.equal(a.got()[3], '\x02', 'the other one')
  proxy.heal()
  await until('both are answered', () => a.got().length === append.length * 2)
})
