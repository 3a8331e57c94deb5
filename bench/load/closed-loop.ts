// Closed loop: as many requests under way as there are connections, each followed by the next at
// once. Shows the most a server gives at a concurrency. See load.ts for the other loops.

import { setTimeout as delay } from 'node:timers/promises'
import type { HttpSocket } from './http-socket.ts'
import { DRAIN_MS, loadResult, type LoadOptions, type LoadResult } from './load.ts'
import { Pool } from './pool.ts'
import { Recorder } from './recorder.ts'

export interface ClosedLoopOptions extends LoadOptions {
  /** Asked at each answer of the measured time: ends the load before its seconds are over. */
  readonly enough?: () => boolean
}

export async function closedLoop(options: ClosedLoopOptions): Promise<LoadResult> {
  const recorder = options.recorder ?? new Recorder()
  const ended = new AbortController()
  let running = true
  let measuring = false
  const send = (socket: HttpSocket): void => {
    if (!running) return
    const nowMs = performance.now()
    const request = options.next(nowMs)
    socket.kind = request.kind
    socket.sentAt = nowMs
    socket.send(request.bytes)
  }
  const pool = new Pool({
    to: options.to,
    connections: options.connections,
    recorder,
    sample: options.sample,
    answered: (socket, status) => {
      if (status === 200) {
        recorder.success(socket.kind, socket.sentAt, performance.now())
      } else {
        recorder.failure(socket.said)
      }
      if (measuring && options.enough?.() === true) {
        running = false
        ended.abort()
      }
      send(socket)
    },
    reopened: send,
  })
  await pool.open()
  if (options.warmUpSeconds > 0) {
    for (const socket of pool.sockets) send(socket)
    await delay(options.warmUpSeconds * 1000)
  }
  const start = performance.now()
  options.readings.started()
  recorder.startMeasuring(start)
  measuring = true
  // What the warm-up has begun goes on by itself.
  if (options.warmUpSeconds <= 0) for (const socket of pool.sockets) send(socket)
  // Aborted: there was enough.
  await delay(options.seconds * 1000, undefined, { signal: ended.signal }).catch(() => {})
  measuring = false
  const end = performance.now()
  recorder.stopMeasuring(end)
  options.readings.ended()
  running = false
  await pool.drain(DRAIN_MS)
  return loadResult(recorder, end - start)
}
