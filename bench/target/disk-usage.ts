// What a node's data directory takes of the disk, by what the files are for. Sizes are blocks that
// the files really have: a file that was filled ahead counts whole, a hole doesn't count.

import { readdirSync, statSync } from 'node:fs'
import { join, relative, sep } from 'node:path'

/** stat counts blocks of so many bytes, whatever the file system's are. */
const BLOCK_BYTES = 512

export const DISK_KINDS = ['log', 'places', 'graph', 'other'] as const

export type DiskKind = (typeof DISK_KINDS)[number]

/** Bytes. */
export type DiskUsage = Readonly<Record<DiskKind, number>>

/** What a file is, by its path in the data directory; the first that fits. */
const KINDS: readonly (readonly [DiskKind, RegExp])[] = [
  ['log', /^log\//],
  // LMDB's one file holds log and places of a store where they are not apart.
  ['log', /^data\.mdb$/],
  ['places', /^places\//],
  ['graph', /^graph/],
]

/** Null where the directory can't be seen. */
export function diskUsage(dir: string | null): DiskUsage | null {
  if (dir === null) return null
  const usage = Object.fromEntries(DISK_KINDS.map((kind) => [kind, 0])) as Record<DiskKind, number>
  try {
    for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const path = join(entry.parentPath, entry.name)
      usage[kindOf(relative(dir, path).replaceAll(sep, '/'))] += bytesOf(path)
    }
    return usage
  } catch {
    return null
  }
}

function kindOf(path: string): DiskKind {
  return KINDS.find(([, pattern]) => pattern.test(path))?.[0] ?? 'other'
}

/** 0 for a file that went away since the directory was read. */
function bytesOf(path: string): number {
  return (statSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * BLOCK_BYTES
}
