// The log's manifest: which store it is of and what must be there at least. Segment files name one
// another backwards, and no file names the end of that chain: without it a last file that went
// missing would be a log that is shorter.

import { crc32 } from 'node:zlib'
import { JournalDamage } from '../damage.ts'
import type { Disk } from './disk.ts'

const NAME = 'manifest.json'
const FORMAT = 1

export interface Manifest {
  readonly generation: string
  /** A file that is in use; the last one may be a newer one. */
  readonly last: number
  /** The end of that file, where its writer has closed it. */
  readonly end: number | null
}

/** Null when there is none. Throws JournalDamage when it can't be read or is another store's. */
export function readManifest(disk: Disk, generation: string): Manifest | null {
  if (!disk.exists(NAME)) return null
  const file = disk.open(NAME)
  const text = file.read(0, file.bytes()).toString()
  file.close()
  let found: Manifest | null = null
  try {
    found = JSON.parse(text) as Manifest
  } catch {
    // Told below: it is no manifest.
  }
  if (typeof found !== 'object' || found === null || text !== textOf(found))
    throw damage(disk, 'is no manifest of a log')
  if (found.generation !== generation) {
    throw damage(disk, `belongs to store ${found.generation}, not to ${generation}`)
  }
  return found
}

/** On the disk when it resolves. */
export async function writeManifest(disk: Disk, manifest: Manifest): Promise<void> {
  await disk.replace(NAME, textOf(manifest))
}

export function missingManifest(disk: Disk): JournalDamage {
  return damage(disk, 'is missing')
}

function textOf({ generation, last, end }: Manifest): string {
  const fields = { format: FORMAT, generation, last, end }
  return `${JSON.stringify({ ...fields, check: crc32(JSON.stringify(fields)) })}\n`
}

function damage(disk: Disk, what: string): JournalDamage {
  const file = `${disk.path}/${NAME}`
  return new JournalDamage(
    `${file}: ${what}, at position 0. Nothing was changed. Way back: restore it from a backup`,
    { file, shard: null, offset: null },
  )
}
