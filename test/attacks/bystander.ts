// Somebody who has nothing to do with an attack, and what it costs them: how long they wait for an
// answer, and how much memory the node takes meanwhile. For the tests of this folder.

import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import type { Test } from 'tap'
import type { NodeProcess } from '../harness/node-process.ts'
import { tick } from '../harness/patience.ts'

const LOOKS_AFTER = 50
const MiB = 1024 * 1024
/** What an attack may cost others. */
const WAIT_MS_MAX = 200
const BYTES_MAX = 100 * MiB

export interface Cost {
  /** The longest that the bystander waited for an answer beyond what this machine takes idle. */
  readonly waitedMs: number
  /** What the node took beyond what it had. */
  readonly bytes: number
}

/** Memory of the node's own, mapped files not counted. */
function memoryOf(node: NodeProcess): number {
  const status = readFileSync(`/proc/${node.pid}/status`, 'utf8')
  return Number(/RssAnon:\s+([0-9]+) kB/.exec(status)![1]) * 1024
}

/** CPU time that the node has spent, in milliseconds: what else the machine does is not in it. */
function cpuOf(node: NodeProcess): number {
  const fields = readFileSync(`/proc/${node.pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/**
 * Runs the attack with somebody beside it who asks for one small answer after another. A wait
 * counts as far as the node itself was at work in it: the tests run beside others.
 */
export async function costOf(node: NodeProcess, run: () => Promise<unknown>): Promise<Cost> {
  const before = memoryOf(node)
  let [waitedMs, most] = [0, before]
  const attack = { isOver: false }
  const look = async (): Promise<void> => {
    const [began, cpu] = [performance.now(), cpuOf(node)]
    const { status } = await node.send('/health/live')
    if (status !== 200) throw new Error(`the bystander got ${status}`)
    const worked = Math.min(performance.now() - began, cpuOf(node) - cpu)
    waitedMs = Math.max(waitedMs, worked)
    most = Math.max(most, memoryOf(node))
  }
  const beside = (async () => {
    // What was sent is still at work when it has left: so some more looks.
    for (let left = LOOKS_AFTER; left > 0;) {
      await look()
      await tick(5)
      if (attack.isOver) left--
    }
  })()
  try {
    await run()
  } finally {
    attack.isOver = true
    await beside
  }
  return { waitedMs, bytes: most - before }
}

/** Connections that are ended together. */
export class Crowd {
  readonly sockets: Socket[] = []
  readonly #port: number

  constructor(port: number) {
    this.#port = port
  }

  /** A connection that has sent this, and reads only if it is told to. */
  send(...parts: readonly (string | Buffer)[]): Socket {
    const socket = connect(this.#port, '127.0.0.1').on('error', () => undefined)
    for (const part of parts) socket.write(part)
    this.sockets.push(socket)
    return socket
  }

  /** Resolves when all that was written has left, or the connection is closed or held back. */
  async settled(ms = 1_500): Promise<void> {
    const end = performance.now() + ms
    const isBusy = (socket: Socket): boolean => !socket.destroyed && socket.writableLength > 0
    while (performance.now() < end && this.sockets.some(isBusy)) await tick(20)
  }

  leave(): void {
    for (const socket of this.sockets) socket.destroy()
  }
}

/** Runs the attack: nobody else waits for long, and the node takes little. */
export async function survives(
  t: Test,
  node: NodeProcess,
  attack: (crowd: Crowd) => Promise<unknown>,
): Promise<void> {
  const crowd = new Crowd(node.port)
  const cost = await costOf(node, () => attack(crowd)).finally(() => crowd.leave())
  t.ok(cost.waitedMs < WAIT_MS_MAX, `others waited ${Math.round(cost.waitedMs)} ms`)
  t.ok(cost.bytes < BYTES_MAX, `it took ${Math.round(cost.bytes / MiB)} MiB`)
}
