// How many files the process may have open. Each connection is a file.

import { readFileSync } from 'node:fs'

/** Soft limit of open files; null where it is not told (no Linux), or there is none. */
export function openFilesMax(account = '/proc/self/limits'): number | null {
  try {
    const found = /^Max open files\s+([0-9]+)/m.exec(readFileSync(account, 'utf8'))?.[1]
    return found === undefined ? null : Number(found)
  } catch {
    return null
  }
}
