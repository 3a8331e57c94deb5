// Closed loop: as many requests under way as there are connections, each followed by the next at
// once. Shows the most a server gives at a concurrency. See load.ts for the other loops.

import { setTimeout as delay } from 'node:timers/promises'
import type { HttpSocket } from './http-socket.ts'
import { DRAIN_MS, loadResult, type LoadOptions, type LoadResult } from './load.ts'
import { Pool } from './pool.ts'
import { Recorder } from './recorder.ts'

export async function closedLoop(options: LoadOptions): Promise<LoadResult> {
  const recorder = options.recorder ?? new Recorder()
  let running = true
  const send = (socket: HttpSocket): void => {
    if (!running) return
    const request = options.next()
    socket.kind = request.kind
    socket.sentAt = performance.now()
    socket.send(request.bytes)
  }
  const pool = new Pool({
    to: options.to,
    connections: options.connections,
    recorder,
    answered: (socket, status) => {
      if (status === 200) {
        recorder.success(socket.kind, socket.sentAt, performance.now())
      } else {
        recorder.failure(socket.said)
      }
      send(socket)
    },
    reopened: send,
  })
  await pool.open()
  for (const socket of pool.sockets) send(socket)
  await delay(options.warmUpSeconds * 1000)
  const start = performance.now()
  options.readings.started()
  recorder.startMeasuring(start)
  await delay(options.seconds * 1000)
  const end = performance.now()
  recorder.stopMeasuring(end)
  options.readings.ended()
  running = false
  await pool.drain(DRAIN_MS)
  return loadResult(recorder, end - start)
}
