// Lets a worker thread yield to the others: what follows the journal must not take the processor
// from those who wait for an answer.

import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'

/**
 * Lowers the calling thread's priority (0 as it was, 19 the lowest). Linux counts priorities by
 * thread; elsewhere, and where it is not permitted, nothing changes: it is a courtesy, not a rule.
 */
export function lowerThreadPriority(priority: number): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    if (Number.isInteger(thread) && thread !== process.pid) setPriority(thread, priority)
  } catch {
    // Not Linux, or not permitted.
  }
}
