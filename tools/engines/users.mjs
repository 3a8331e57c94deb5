// Engines that several processes share, and that end with the last of them. The test files of a run
// (or several runs of one checkout) come and go and may be killed; the servers run detached. Each
// user leaves a file with its process number; a keeper looks which of them live, and stops the
// engines when there has been none for a while.

import { spawn } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT } from '../set-up/set-up.mjs'
import { withLock } from '../set-up/lock.mjs'
import { ENGINES } from './engines.mjs'
import { CannotRun } from './fetch.mjs'
import { birthOf, readText, running, start, stop } from './server-process.mjs'

/** Engines outlive their last user by so much: the next test file finds them running. */
const IDLE_MS_MAX = Number(process.env.ENGINES_IDLE_MS ?? 60_000)
const LOOK_MS = 1_000
/** An engine that could not be started isn't tried again so soon. */
const FAILED_MS = 10 * 60_000
const KEEPER = fileURLToPath(new URL('./keeper.mjs', import.meta.url))

/** @typedef {keyof typeof ENGINES} EngineName */

/** The folder of the engines that the tests of this checkout share. */
export function sharedFolder() {
  const checkout = createHash('sha256').update(ROOT).digest('hex').slice(0, 8)
  return join(tmpdir(), `kontor-engines-${process.getuid?.() ?? 0}-${checkout}`)
}

/**
 * The folder of the engines that the suites of faults share: they stop, kill and empty them, one
 * file at a time.
 */
export function faultsFolder() {
  return `${sharedFolder()}-faults`
}

/**
 * The running engine of that name, started if need be; it stays while this process lives.
 *
 * @param {string} dir
 * @param {EngineName} name
 * @returns {Promise<import('./server-process.mjs').Running>}
 * @throws {Error} with a message for people: why it can't run here
 */
export async function use(dir, name) {
  await enter(dir)
  const engine = ENGINES[name]
  const there = running(engine, join(dir, name))
  if (there !== null && (await engine.isReady(there.port))) return there
  return withLock(join(`${dir}.locks`, name), async () => {
    const failure = readFailure(dir, name)
    if (failure !== null) throw new CannotRun(failure)
    try {
      return await start(engine, { dir: join(dir, name) })
    } catch (error) {
      if (error instanceof CannotRun) writeFailure(dir, name, error.message)
      throw error
    }
  })
}

/**
 * A folder for engines that this process alone uses; the keeper ends what is left of them.
 *
 * @param {string} dir
 * @returns {Promise<string>}
 */
export async function ownFolder(dir) {
  await enter(dir)
  const own = join(dir, 'own', `${process.pid}-${randomUUID().slice(0, 8)}`)
  mkdirSync(own, { recursive: true })
  return own
}

/**
 * Notes that an engine can't run here, so that nobody tries for as long again.
 *
 * @param {string} dir
 * @param {string} name
 * @param {string} reason
 */
export function writeFailure(dir, name, reason) {
  mkdirSync(dir, { recursive: true })
  writeFileSync(failureFile(dir, name), reason)
}

/**
 * @param {string} dir
 * @param {string} name
 */
function readFailure(dir, name) {
  const path = failureFile(dir, name)
  const text = readText(path)
  if (text === null) return null
  return Date.now() - statSync(path).mtimeMs < FAILED_MS ? text : null
}

/**
 * @param {string} dir
 * @param {string} name
 */
function failureFile(dir, name) {
  return join(dir, `${name}.failed`)
}

/**
 * Counts this process among the users: what runs or will run in `dir` stays while it lives.
 *
 * @param {string} dir
 */
export function enter(dir) {
  return alone(dir, async () => addUser(dir))
}

/**
 * Counts it no longer; the engines that nobody else uses are stopped, and their data removed.
 *
 * @param {string} dir
 */
export function leave(dir) {
  return alone(dir, async () => {
    rmSync(join(dir, 'users', String(process.pid)), { force: true })
    if (!hasUsers(dir)) await endAll(dir)
  })
}

/**
 * And sees to it that a keeper looks after them: users may be killed.
 *
 * @param {string} dir
 */
function addUser(dir) {
  const users = join(dir, 'users')
  mkdirSync(users, { recursive: true })
  const mine = join(users, String(process.pid))
  // Whole or not at all: the keeper may look at any moment.
  if (readText(mine) !== birthOf(process.pid)) {
    writeFileSync(`${mine}.draft`, birthOf(process.pid))
    renameSync(`${mine}.draft`, mine)
  }
  const keeper = readText(join(dir, 'keeper'))
  if (keeper !== null && isUser(keeper)) return
  const child = spawn(process.execPath, [KEEPER, dir], { detached: true, stdio: 'ignore' })
  child.unref()
  if (child.pid !== undefined) {
    writeFileSync(join(dir, 'keeper'), `${child.pid} ${birthOf(child.pid)}`)
  }
}

/** @param {string} text */
function isUser(text) {
  const [pid, ...birth] = text.split(' ')
  return birthOf(Number(pid)) === birth.join(' ')
}

/** @param {string} dir */
function hasUsers(dir) {
  const pids = entries(join(dir, 'users')).filter((name) => /^\d+$/.test(name))
  return pids.some((pid) => lives(dir, pid))
}

/**
 * True while the user with that process number lives.
 *
 * @param {string} dir
 * @param {string} pid
 */
function lives(dir, pid) {
  return isUser(`${pid} ${readText(join(dir, 'users', pid)) ?? ''}`)
}

/** @param {string} dir */
function entries(dir) {
  return existsSync(dir) ? readdirSync(dir) : []
}

/**
 * Ends what killed users had for themselves.
 *
 * @param {string} dir
 */
async function endOrphans(dir) {
  const own = join(dir, 'own')
  const orphans = entries(own).filter((name) => !lives(dir, name.replace(/-.*$/, '')))
  await Promise.all(orphans.map((name) => endEngines(join(own, name))))
}

/**
 * The keeper: returns once the engines of `dir` have been stopped for want of users.
 *
 * @param {string} dir
 */
export async function keep(dir) {
  let usedAt = Date.now()
  while (existsSync(dir)) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    await endOrphans(dir)
    if (hasUsers(dir)) usedAt = Date.now()
    else if (Date.now() - usedAt > IDLE_MS_MAX) {
      const over = await alone(dir, async () => {
        if (hasUsers(dir)) return false
        await endAll(dir)
        return true
      })
      if (over) return
    }
  }
}

/** @param {string} dir */
async function endAll(dir) {
  await Promise.all(entries(join(dir, 'own')).map((name) => endEngines(join(dir, 'own', name))))
  await endEngines(dir)
}

/** @param {string} dir */
async function endEngines(dir) {
  await Promise.all(Object.values(ENGINES).map((engine) => stop(engine, join(dir, engine.name))))
  rmSync(dir, { recursive: true, force: true })
}

/**
 * @template T
 * @param {string} dir
 * @param {() => Promise<T>} work
 */
function alone(dir, work) {
  return withLock(`${dir}.locks`, work)
}
