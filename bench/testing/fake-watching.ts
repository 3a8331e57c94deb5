// `/ws` of the small installation: it takes every live query, and tells those whose filter names
// the customer or the number of an order that was stamped.

import type { Server } from 'node:http'
import type { Socket } from 'node:net'

const HEAD = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'

interface Asked {
  readonly type: string
  readonly query?: { readonly filter: string }
}

export class FakeWatching {
  readonly #filters = new Map<Socket, string[]>()
  /** Of so many changes one is not told of. */
  readonly #loses: number
  #told = 0

  constructor(server: Server, loses: number) {
    this.#loses = loses
    server.on('upgrade', (_, stream) => {
      const socket = stream as Socket
      this.#filters.set(socket, [])
      socket.write(HEAD)
      let rest = Buffer.alloc(0)
      socket.on('data', (piece) => {
        rest = Buffer.concat([rest, piece])
        for (let frame = readFrame(rest); frame !== null; frame = readFrame(rest)) {
          rest = rest.subarray(frame.end)
          this.#take(socket, JSON.parse(frame.text) as Asked)
        }
      })
      socket.on('error', () => {})
      socket.on('close', () => this.#filters.delete(socket))
    })
  }

  changed(names: readonly string[], stamp: number): void {
    for (const [socket, filters] of this.#filters) {
      const isWatched = filters.some((one) => names.some((name) => one.includes(`'${name}'`)))
      if (!isWatched || ++this.#told % this.#loses === 0) continue
      send(socket, { type: 'liveQueryUpdate', node: { dynamic: { stamp } } })
    }
  }

  #take(socket: Socket, { type, query }: Asked): void {
    if (type === 'auth') send(socket, { type: 'authenticated' })
    if (query === undefined) return
    this.#filters.get(socket)?.push(query.filter)
    send(socket, { type: 'liveQueryCreated', nodes: [] })
  }
}

/** A masked frame of a client; null: not whole yet. */
function readFrame(bytes: Buffer): { readonly text: string; readonly end: number } | null {
  if (bytes.length < 8) return null
  const short = bytes[1]! & 127
  const head = short === 126 ? 8 : 6
  const end = head + (short === 126 ? bytes.readUInt16BE(2) : short)
  return bytes.length < end ? null : { text: bytes.toString('utf8', head, end), end }
}

/** Of any length; the longest form of it for all but the shortest. */
function send(socket: Socket, frame: object): void {
  const payload = Buffer.from(JSON.stringify(frame))
  const head = Buffer.alloc(payload.length < 126 ? 2 : 10)
  head[0] = 0x81
  head[1] = payload.length < 126 ? payload.length : 127
  if (payload.length >= 126) head.writeBigUInt64BE(BigInt(payload.length), 2)
  socket.write(Buffer.concat([head, payload]))
}
