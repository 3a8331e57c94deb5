// TLS in front of an engine that speaks without: what the engine's own TLS would be to a driver.
// The engine behind it is real, or a server that stands for one.

import { connect, type AddressInfo, type Socket } from 'node:net'
import { createServer, type TlsOptions } from 'node:tls'
import type { EngineAddress } from './engines.ts'

/** The part of a test that a proxy needs: to be told when it is over. */
interface Owner {
  teardown(end: () => Promise<void>): void
}

/** Listens on 127.0.0.1 and hands what it decrypts to the engine. */
export async function tlsProxyTo(
  t: Owner,
  engine: EngineAddress,
  tls: TlsOptions,
): Promise<EngineAddress> {
  const sockets = new Set<Socket>()
  const server = createServer(tls, (near) => {
    const far = connect(engine.port, engine.host)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
    near.pipe(far)
    far.pipe(near)
  })
  server.on('tlsClientError', () => undefined)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
}
