// Which boot of which kernel this is. It tells whether the machine went down since something was
// noted: what a process wrote without syncing is there after the process has ended, and may not be
// after the machine has.

import { readFileSync } from 'node:fs'

/** An id that every boot has for itself (random(4)); null: this system doesn't say. */
export function bootId(): string | null {
  try {
    const id = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return id === '' ? null : id
  } catch {
    return null
  }
}
