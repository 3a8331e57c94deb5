// Bodies that are still arriving: each is counted among those that share its bound.

import type { BodyPool, HttpCore } from './core.ts'

/** What of an exchange is needed here. */
export interface Arriving {
  readonly core: HttpCore
  readonly who: object | null
  readonly streaming: boolean
  readonly received: number
  /** Bytes in the count of `pool`. */
  arrived: number
  pool: BodyPool | null
  /** Since when a line of a stream is here in part, and what had been received before it. */
  partSinceMs: number | null
  receivedBefore: number
}

/** Counts bytes of the body that wait for the rest of it; false: there is no room for them. */
export function arrive(x: Arriving, bytes: number): boolean {
  const { known, strangers, lines } = x.core.bodies
  const pool = x.who === null ? strangers : x.streaming ? lines : known
  if (x.pool !== pool) {
    const before = x.arrived
    release(x)
    x.pool = pool
    pool.bytes += before
    x.arrived = before
  }
  x.arrived += bytes
  pool.bytes += bytes
  return pool.bytes <= pool.bytesMax
}

/** They wait no more. */
export function release(x: Arriving): void {
  if (x.pool !== null) x.pool.bytes -= x.arrived
  x.arrived = 0
}

/**
 * Tells how much of a line of a stream is here in part, of which a little is free; false: there is
 * no room for more.
 */
export function holdPart(x: Arriving, bytes: number): boolean {
  if (bytes === 0) {
    x.partSinceMs = null
    if (x.arrived > 0) release(x)
    return true
  }
  if (x.partSinceMs === null) {
    x.partSinceMs = x.core.clock.monotonicMs()
    x.receivedBefore = x.received
  }
  const counted = Math.max(0, bytes - x.core.limits.linePartFreeBytes)
  return counted <= x.arrived || arrive(x, counted - x.arrived)
}
