// WebSockets byte by byte: those of an attack do what no client does, and leave nothing behind. For
// the tests of this folder.

import type { Socket } from 'node:net'
import type { Test } from 'tap'
import type { NodeProcess } from '../harness/node-process.ts'
import { Patience, tick } from '../harness/patience.ts'
import { type Crowd, survives } from './bystander.ts'

export function upgradeOf(path: string, protocol?: string): string {
  const subprotocol = protocol === undefined ? '' : `Sec-WebSocket-Protocol: ${protocol}\r\n`
  return (
    `GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
    `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${subprotocol}\r\n`
  )
}

/** A text frame of a client, masked with zeros. */
export function frame(text: string, bytes = Buffer.byteLength(text)): Buffer {
  const head =
    bytes < 126
      ? Buffer.from([0x81, 0x80 | bytes, 0, 0, 0, 0])
      : Buffer.concat([
          Buffer.from([0x81, 0x80 | 127, 0, 0, 0, 0]),
          Buffer.from([bytes >>> 24, bytes >>> 16, bytes >>> 8, bytes, 0, 0, 0, 0]),
        ])
  return Buffer.concat([head, Buffer.from(text)])
}

/** A socket that is let in and then says this. */
export function entered(
  crowd: Crowd,
  path: string | readonly [path: string, protocol: string],
  ...said: readonly Buffer[]
): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = crowd.send(typeof path === 'string' ? upgradeOf(path) : upgradeOf(...path))
    socket
      .once('close', () => resolve(socket))
      .once('data', () => {
        for (const part of said) socket.write(part)
        resolve(socket)
      })
  })
}

export async function leavesNoSocket(
  t: Test,
  node: NodeProcess,
  attack: (crowd: Crowd) => Promise<unknown>,
): Promise<void> {
  await survives(t, node, attack)
  await until(t, 'all sockets are gone', async () => (await node.metric('kontor_sockets')) === 0)
}

export async function until(t: Test, what: string, holds: () => Promise<boolean>): Promise<void> {
  const patience = new Patience(20_000)
  while (!(await holds())) {
    if (patience.isOver()) {
      t.fail(what)
      return
    }
    await tick()
  }
}
