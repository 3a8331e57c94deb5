// A connection to an engine that a test can cut, silence in one direction, and heal.

import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'
import type { EngineAddress } from '../../../test/harness/engines.ts'

export interface Proxy extends EngineAddress {
  /** Ends all connections, and takes no new ones until `heal`. */
  cut(): void
  /** What the engine answers is lost from now on, but what it is sent is not. */
  silence(): void
  heal(): void
}

export async function proxyTo(t: Test, engine: EngineAddress): Promise<Proxy> {
  const sockets = new Set<Socket>()
  let state: 'whole' | 'cut' | 'silent' = 'whole'
  const server = createServer((near) => {
    if (state === 'cut') {
      near.destroy()
      return
    }
    const far = connect(engine.port, engine.host)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('close', () => {
        sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
      socket.on('error', () => socket.destroy())
    }
    near.on('data', (data) => far.write(data))
    far.on('data', (data) => {
      if (state !== 'silent') near.write(data)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => sockets.forEach((socket) => socket.destroy())
  t.teardown(async () => {
    close()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    cut() {
      state = 'cut'
      close()
    },
    silence() {
      state = 'silent'
    },
    heal() {
      // What was lost on the way leaves connections out of step: they are made anew.
      state = 'whole'
      close()
    },
  }
}
