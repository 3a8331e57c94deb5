// A TCP connection of the load generator: bytes come in a buffer of its own that is used again, so
// that nothing is allocated for each piece.

import { connect, type Socket } from 'node:net'

export interface ConnectionEvents {
  /** The bytes are overwritten after the call. */
  read(buffer: Buffer, length: number): void
  /** It is gone. May come twice. */
  gone(why: string): void
}

export function openConnection(
  { host, port, readBytes }: { host: string; port: number; readBytes: number },
  events: ConnectionEvents,
): Socket {
  const socket = connect({
    host,
    port,
    noDelay: true,
    onread: {
      buffer: Buffer.allocUnsafe(readBytes),
      callback: (length, buffer) => {
        events.read(buffer as Buffer, length)
        return true
      },
    },
  })
  socket.on('error', (error) => events.gone(error.message))
  socket.on('close', () => events.gone('closed'))
  return socket
}
