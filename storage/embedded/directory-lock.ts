// The lock of a data directory: one process at a time has it, and it ends with that process however
// it dies. Whoever writes in the directory takes it: a node, `npm run move`, `npm run verify-log --
// --repair`, `npm run backup` in the directory that it fills. The lock is SQLite's on a file of its
// own, which is the kernel's (fcntl): nothing is left to be cleared after a kill. Beside it stands
// who holds it, for messages alone. Source: PROTOCOL 3.16.

import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { LIMITS } from '../../config/limits.ts'
import { writeSynced } from './synced-file.ts'

const LOCK_FILE = 'lock'
const HOLDER_FILE = 'lock.json'
/** What a lock leaves in the directory. */
export const LOCK_FILES: readonly string[] = [LOCK_FILE, HOLDER_FILE]
/** SQLite's result codes for a lock that another connection has. */
const BUSY = 5
const LOCKED = 6

export interface LockHolder {
  /** What has the directory: "a node at http://127.0.0.1:8080", "npm run move". */
  readonly what: string
}

export interface DirectoryLock {
  /** Ends it; nothing may be written in the directory afterwards. */
  release(): void
}

/**
 * Takes the lock of `dir`, which is made when it is missing. Waits
 * LIMITS.embedded.directoryLockWaitMs for a process that is about to end; then rejects with Error,
 * which names the one that has it.
 */
export async function lockDirectory(dir: string, holder: LockHolder): Promise<DirectoryLock> {
  // Only here: Node warns of it, and who asks for --help needs no lock.
  const { DatabaseSync } = await import('node:sqlite')
  mkdirSync(dir, { recursive: true })
  const file = new DatabaseSync(join(dir, LOCK_FILE), {
    timeout: LIMITS.embedded.directoryLockWaitMs,
  })
  try {
    file.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    file.close()
    const { errcode } = error as { errcode?: number }
    if (errcode === BUSY || errcode === LOCKED) throw new Error(inUse(dir), { cause: error })
    throw error
  }
  const path = join(dir, HOLDER_FILE)
  try {
    tell(path, holder)
  } catch (error) {
    file.close()
    throw error
  }
  let isHeld = true
  return {
    release() {
      if (!isHeld) return
      isHeld = false
      // Before the lock goes: afterwards it may be another's.
      rmSync(path, { force: true })
      file.close()
    },
  }
}

/** A full disk keeps nobody from starting: the lock itself takes no room. */
function tell(path: string, { what }: LockHolder): void {
  try {
    writeSynced(path, `${JSON.stringify({ pid: process.pid, what })}\n`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}

function inUse(dir: string): string {
  const holder = holderOf(dir)
  const who = holder === null ? 'another process' : `process ${holder.pid} (${holder.what})`
  return `${dir} is in use by ${who}: stop it first, or name another directory (KONTOR_DATA_DIR)`
}

/** Returns who wrote its name last, or null when there is none or it can't be read. */
function holderOf(dir: string): { readonly pid: number; readonly what: string } | null {
  try {
    const { pid, what } = JSON.parse(readFileSync(join(dir, HOLDER_FILE), 'utf8')) as {
      pid: unknown
      what: unknown
    }
    return typeof pid === 'number' && typeof what === 'string' ? { pid, what } : null
  } catch {
    return null
  }
}
