// Lines on their way out of the process. The file descriptor may be a full disk, a pipe whose
// reader has gone or a terminal that was closed: none of these may end the process or hold it up
// for long.

import { writeSync } from 'node:fs'
import { LIMITS } from '../../config/limits.ts'

export interface LineWriter {
  /** Takes whole lines, with the line end. Never throws: what can't be written is dropped. */
  write(lines: string): void
}

/** What a writer needs of the world. */
export interface Outlet {
  /** Writes some of the bytes and says how many, as fs.writeSync does. */
  readonly put: (bytes: Buffer) => number
  /** Stands still for a millisecond. */
  readonly pause: () => void
}

export function outletOf(fd: number): Outlet {
  const nothing = new Int32Array(new SharedArrayBuffer(4))
  return {
    put: (bytes) => writeSync(fd, bytes),
    pause: () => void Atomics.wait(nothing, 0, 0, 1),
  }
}

export function lineWriter({ put, pause }: Outlet): LineWriter {
  let isTorn = false
  // A full pipe is waited for once; until something goes through, what follows is dropped at once.
  let patience: number = LIMITS.node.logWaitMs
  const writeAll = (bytes: Buffer): void => {
    let left = bytes
    while (left.length > 0) {
      try {
        left = left.subarray(put(left))
        patience = LIMITS.node.logWaitMs
      } catch (error) {
        const isFull = (error as NodeJS.ErrnoException).code === 'EAGAIN'
        if (!isFull || patience === 0) {
          isTorn ||= left.length < bytes.length
          return
        }
        patience--
        pause()
      }
    }
    isTorn = false
  }
  // The rest of a line that was cut is lost: the next one begins a line.
  return { write: (lines) => writeAll(Buffer.from(isTorn ? `\n${lines}` : lines)) }
}
