// A backup of an embedded store: `store.json` and the log, which is all that can't be made anew. A
// node may be at work in the directory; it is only read, and no lock of it is taken. A node can be
// started on the copy. A backup that is made again copies what is new. What is derived from the log
// (data.mdb, graph.*) isn't copied. Source: PROTOCOL 3.16.

import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { NodeDisk } from '../segment-log/node-disk.ts'
import { lockDirectory, LOCK_FILES } from './directory-lock.ts'
import { DATA_FILE } from '../lmdb/environment.ts'
import { readIdentity, STORE_FILE, writeIdentity } from './journal/identity.ts'
import type { EmbeddedIdentity } from './journal/identity.ts'
import { LOG_FOLDER } from './journal/journal.ts'
import { copyLog, type LogCopyReport } from './log/copy.ts'
import { copyMoved, MOVED_FILE } from './moved-store.ts'

/** Where files of the log are until they are whole. */
const INCOMING_FOLDER = 'log.new'
/** What a first backup that was broken off may leave before there is a `store.json`. */
const BEGUN = [...LOCK_FILES, MOVED_FILE, `${STORE_FILE}.new`]

export interface BackupOptions {
  /** Data directory of a node that runs or not. */
  readonly from: string
  /** Made when it is missing; else empty, or a backup of the same store. */
  readonly to: string
  readonly pause: (ms: number) => Promise<void>
}

/**
 * Everything that was acknowledged before the call is in the backup once this resolves. Rejects
 * with JournalDamage for what is damaged in the store, and with Error where the target is something
 * else or the disk refuses; the backup that was there before is still one then.
 */
export async function backUp({ from, to, pause }: BackupOptions): Promise<LogCopyReport> {
  const identity = identityOf(from)
  refuseTarget(from, to, identity)
  // Two at once would take each other's files away; and no node starts on half a backup.
  const lock = await lockDirectory(to, { what: 'npm run backup' })
  try {
    copyMoved(from, to)
    return await copyLog({
      source: new NodeDisk(join(from, LOG_FOLDER)),
      identity: () => identityOf(from),
      folder: join(to, LOG_FOLDER),
      incoming: join(to, INCOMING_FOLDER),
      keep: (now) => {
        if (JSON.stringify(readIdentity(to)) !== JSON.stringify(now)) writeIdentity(to, now)
      },
      pause,
    })
  } finally {
    lock.release()
  }
}

function identityOf(dir: string): EmbeddedIdentity {
  const identity = readIdentity(dir)
  // Looking for the log would make its folder.
  if (identity !== null && existsSync(join(dir, LOG_FOLDER))) return identity
  throw new Error(`${dir}: there is no store`)
}

function refuseTarget(from: string, to: string, { log }: EmbeddedIdentity): void {
  if (!existsSync(to)) return
  if (realpathSync(from) === realpathSync(to)) {
    throw new Error(`${to}: that is the store itself: name another directory`)
  }
  const there = readIdentity(to)
  if (there === null) {
    if (readdirSync(to).every((name) => BEGUN.includes(name))) return
    throw new Error(`${to} is not empty, and no backup: name another directory`)
  }
  if (there.log !== log) {
    throw new Error(
      `${to} is a backup of another store (${there.log}, not ${log}): name another directory`,
    )
  }
  if (existsSync(join(to, DATA_FILE))) {
    throw new Error(`${to}: a node was started on this backup: name another directory`)
  }
}
