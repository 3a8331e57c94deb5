// Gives memory back after a burst: V8 keeps what its heap has grown to, and collects only when it
// needs more. Under load it does nothing. Target: ARCHITECTURE 8, under 300 MB at rest.

import { performance } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { LIMITS } from '../config/limits.ts'

/** Share of the time a thread may be busy and still count as idle. */
const IDLE_SHARE = 0.02
/** Heap above this is worth a collection of some ten milliseconds. */
const WORTH_BYTES = 48 * 1024 * 1024

/**
 * Watches the calling thread; returns the way to stop. Each thread has a heap of its own and calls
 * it for itself.
 */
export function giveMemoryBackWhenIdle(): () => void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (options: object) => void
  let last = performance.eventLoopUtilization()
  let collectedAt = 0
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    const share = performance.eventLoopUtilization(now, last).utilization
    last = now
    // Not `process.memoryUsage()`: it opens a file, and throws where no more can be opened.
    const heapTotal = getHeapStatistics().total_heap_size
    if (share > IDLE_SHARE || heapTotal < WORTH_BYTES || heapTotal <= collectedAt) return
    collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
    collectedAt = getHeapStatistics().total_heap_size * 1.1
  }, LIMITS.node.idleMemoryMs)
  timer.unref()
  return () => clearInterval(timer)
}
