// A lock file that lets one process at a time install into a folder: several starts of one clone
// share node_modules. A holder that died, with what it had started, is replaced.

import { randomUUID } from 'node:crypto'
import {
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { codeOf } from './error-code.mjs'

const BEAT_MS = 2_000
const POLL_MS = 100
/** A holder on another host, a container that shares the folder, is dead after such a silence. */
const SILENT_MS_MAX = 60_000
/** So is one on this host: its process number belongs to somebody else by now. */
const SILENT_HERE_MS_MAX = 10 * 60_000
/** Replacing a dead holder takes microseconds; a replacement left behind this long ago is void. */
const TAKEOVER_MS_MAX = 10_000
const WAIT_MS_MAX = 20 * 60_000

/** @typedef {{ token?: string, host?: string, pids: number[] }} Holder */

/**
 * Runs `work` while this process alone holds the lock of `folder`.
 *
 * @template T
 * @param {string} folder made when missing
 * @param {(track: (pid: number) => void) => Promise<T>} work calls `track` with every process that
 *   it starts: the lock is not free before those have ended too
 * @returns {Promise<T>}
 * @throws {Error} when the lock doesn't come free within 20 minutes
 */
export async function withLock(folder, work) {
  mkdirSync(folder, { recursive: true })
  const path = join(folder, 'lock')
  /** @type {Holder} */
  const mine = { token: randomUUID(), host: hostname(), pids: [process.pid] }
  await acquire(path, mine)
  /** @param {(path: string, mine: Holder) => void} act */
  const whenMine = (act) => {
    if (read(path)?.token === mine.token) act(path, mine)
  }
  const beat = setInterval(() => whenMine(touch), BEAT_MS)
  try {
    return await work((pid) => {
      mine.pids.push(pid)
      whenMine(replace)
    })
  } finally {
    clearInterval(beat)
    whenMine(remove)
  }
}

/**
 * @param {string} path
 * @param {Holder} mine
 */
async function acquire(path, mine) {
  const deadline = Date.now() + WAIT_MS_MAX
  for (let told = false; ; told = true) {
    if (create(path, mine)) return
    const holder = read(path)
    if (holder !== null && isDead(path, holder) && takeOver(path, holder, mine)) return
    if (Date.now() > deadline) {
      throw new Error(`Another start holds ${path} for over 20 minutes; remove it if none runs.`)
    }
    if (!told) process.stderr.write('Waiting for another start to be done ...\n')
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/**
 * False when the lock exists.
 *
 * @param {string} path
 * @param {Holder} content
 */
function create(path, content) {
  try {
    writeFileSync(path, JSON.stringify(content), { flag: 'wx' })
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
}

/**
 * @param {string} path
 * @param {Holder} content
 */
function replace(path, content) {
  const draft = `${path}.${content.token}`
  writeFileSync(draft, JSON.stringify(content))
  renameSync(draft, path)
}

/**
 * Under a lock of its own and after a second look, so that two can't replace the same holder.
 *
 * @param {string} path
 * @param {Holder} dead
 * @param {Holder} mine
 */
function takeOver(path, dead, mine) {
  const guard = `${path}.takeover`
  if (!create(guard, mine)) {
    if (ageMs(guard) > TAKEOVER_MS_MAX) remove(guard)
    return false
  }
  try {
    if (read(path)?.token !== dead.token) return false
    replace(path, mine)
    return true
  } finally {
    remove(guard)
  }
}

/**
 * @param {string} path
 * @param {Holder} holder
 */
function isDead(path, holder) {
  if (holder.host !== hostname()) return ageMs(path) > SILENT_MS_MAX
  return !holder.pids.some(isAlive) || ageMs(path) > SILENT_HERE_MS_MAX
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return codeOf(error) === 'EPERM'
  }
}

/**
 * @param {string} path
 * @returns {Holder | null} null: nobody holds it
 */
function read(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    // Being written, or cut short by a full disk: dead only once it has been silent for long.
    if (error instanceof SyntaxError) return { pids: [] }
    throw error
  }
}

/** @param {string} path */
function ageMs(path) {
  try {
    return Date.now() - statSync(path).mtimeMs
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 0
    throw error
  }
}

/** @param {string} path */
function touch(path) {
  try {
    const now = new Date()
    utimesSync(path, now, now)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}

/** @param {string} path */
function remove(path) {
  try {
    unlinkSync(path)
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error
  }
}
