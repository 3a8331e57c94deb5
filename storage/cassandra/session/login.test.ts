// A Cassandra that asks for a user and refuses the one it is given: the message names the settings.
// The server here speaks as much of the native protocol (version 4) as a login takes.

import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import t from 'tap'
import { Session } from './session.ts'

const OPCODE = { error: 0, startup: 1, authenticate: 3, options: 5, supported: 6, response: 15 }
const HEADER_BYTES = 9
const BAD_CREDENTIALS = 0x0100

function text(value: string): Buffer {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(value.length)
  return Buffer.concat([length, Buffer.from(value)])
}

function frame(stream: number, opcode: number, body: Buffer): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt8(0x84, 0)
  header.writeInt16BE(stream, 2)
  header.writeUInt8(opcode, 4)
  header.writeUInt32BE(body.length, 5)
  return Buffer.concat([header, body])
}

function answer(stream: number, opcode: number): Buffer {
  switch (opcode) {
    case OPCODE.options:
      return frame(stream, OPCODE.supported, Buffer.alloc(2))
    case OPCODE.startup:
      return frame(stream, OPCODE.authenticate, text('PasswordAuthenticator'))
    default: {
      const code = Buffer.alloc(4)
      code.writeInt32BE(BAD_CREDENTIALS)
      return frame(stream, OPCODE.error, Buffer.concat([code, text('wrong password')]))
    }
  }
}

function serve(socket: Socket): void {
  let unread: Buffer = Buffer.alloc(0)
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    unread = Buffer.concat([unread, chunk])
    while (unread.length >= HEADER_BYTES) {
      const end = HEADER_BYTES + unread.readUInt32BE(5)
      if (unread.length < end) return
      socket.write(answer(unread.readInt16BE(2), unread.readUInt8(4)))
      unread = unread.subarray(end)
    }
  })
}

t.test('a login that is asked for, or refused, names the settings', async (t) => {
  const server = createServer(serve)
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const quiet = () => undefined
  const options = {
    contactPoints: [`127.0.0.1:${port}`],
    datacenter: 'datacenter1',
    now: () => 0,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
  }
  const names = /\(KONTOR_CASSANDRA_USERNAME and KONTOR_CASSANDRA_PASSWORD\)/
  const refused = async (more: object): Promise<string> => {
    const error: unknown = await Session.connect({ ...options, ...more }).catch((e: unknown) => e)
    return (error as Error).message
  }
  const without = await refused({})
  t.match(without, /requires authentication/)
  t.match(without, names)
  const wrong = await refused({ credentials: { username: 'u', password: 'secret' } })
  t.match(wrong, /wrong password/)
  t.match(wrong, names)
  t.notMatch(wrong, /secret/)
})
