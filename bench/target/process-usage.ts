// CPU and memory of a process as the kernel counts them (Linux /proc): of the server, from the
// outside.

import { readFileSync } from 'node:fs'

/** /proc counts CPU in hundredths of a second on Linux (USER_HZ). */
const TICK_MS = 10

export interface ProcessUsage {
  /** User and system time of all threads since the process began. */
  readonly cpuMs: number
  readonly rssMiB: number
  /** Memory of its own; the rest of RSS is mapped files, the kernel's to give back. */
  readonly rssAnonMiB: number
}

/** Null where the process can't be seen: another machine, or no /proc. */
export function processUsage(pid: number | null): ProcessUsage | null {
  if (pid === null) return null
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may hold anything; counted from behind it, utime is field 12.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return {
      cpuMs: (Number(fields[11]) + Number(fields[12])) * TICK_MS,
      rssMiB: kiB(status, 'VmRSS') / 1024,
      rssAnonMiB: kiB(status, 'RssAnon') / 1024,
    }
  } catch {
    return null
  }
}

function kiB(status: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN)
}
