// Small files that must be on the disk before the program goes on: what is in them, and that they
// are in their folder.

import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'

/** On the disk when this returns; that the folder has it, only after syncFolder. */
export function writeSynced(path: string, text: string): void {
  const file = openSync(path, 'w', 0o600)
  try {
    writeSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** What was made, renamed or removed in the folder is on the disk when this returns. */
export function syncFolder(dir: string): void {
  const folder = openSync(dir, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
