// `npm run backup`: copies the embedded store of a node, which may be at work, to a directory that
// a node can be started on. storage/embedded only reads the store. Source: PROTOCOL 3.16.

import { setTimeout as pause } from 'node:timers/promises'
import { backUp } from '../storage/embedded/backup.ts'
import { storeArguments } from './store-arguments.ts'

const USAGE = `Usage: npm run backup -- [--data DIR] --to DIR
  --data DIR  the directory of KONTOR_DATA_DIR, ./data unless set; its node may be running
  --to DIR    where the backup is to be: a new or empty directory, or one that has an earlier
              backup of the same store: then only what is new is copied, and one that was broken
              off is finished
What was acknowledged before it began is in the backup: store.json and the log, read back and
checked. To restore one, copy it and start a node on the copy.`

/** Exit codes: it is backed up, it is not. */
const EXIT = { done: 0, failed: 1 } as const
const MIB = 1024 * 1024

async function main(): Promise<number> {
  const given = storeArguments(USAGE, { mayConfigure: false, hasTarget: true })
  if (typeof given === 'number') return given
  const from = given.data ?? (process.env['KONTOR_DATA_DIR'] || './data')
  const to = given.to!
  try {
    const { files, bytes, copied } = await backUp({ from, to, pause })
    console.log(
      `${from} is backed up to ${to}: ${files} files of the log, ${mebibytes(bytes)}; new are ` +
        `${copied.files} of them, ${mebibytes(copied.bytes)}, in which ${copied.groups} groups ` +
        `and ${copied.entries} entries were read back, and nothing is wrong`,
    )
    return EXIT.done
  } catch (error) {
    console.error(`${from} is not backed up: ${(error as Error).message}`)
    return EXIT.failed
  }
}

function mebibytes(bytes: number): string {
  return `${(bytes / MIB).toFixed(1)} MiB`
}

// What it writes is for its user alone.
process.umask(0o077)
process.exitCode = await main()
