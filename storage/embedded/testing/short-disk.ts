// What the system says of the room on its disks, as a test wants it. The file system has more than
// enough.

import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import type { Test } from 'tap'

export interface ShortDisk {
  /** Bytes that are left on every disk; null: as it is. */
  left: number | null
}

/** As it is until `left` is set, and again when the test ends. */
export function shortDisk(t: Test): ShortDisk {
  const disk: ShortDisk = { left: null }
  const { statfsSync } = fs
  const told = (path: fs.PathLike) => {
    const found = statfsSync(path)
    return disk.left === null ? found : Object.assign(found, { bavail: disk.left, bsize: 1 })
  }
  Object.assign(fs, { statfsSync: told })
  syncBuiltinESMExports()
  t.teardown(() => {
    Object.assign(fs, { statfsSync })
    syncBuiltinESMExports()
  })
  return disk
}
