// The life of one engine's server on this machine: start it in a folder, find it again, stop it.
// The recipes (cassandra/, elasticsearch/, redis/) know how their server is launched. Tests, `npm
// run cluster` and `npm run engines` need one running. Servers run detached, on the loopback
// address, and are found again by a file in their folder.

import { spawn, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { basename, join } from 'node:path'
import { codeOf } from '../set-up/error-code.mjs'
import { CannotRun } from './fetch.mjs'

const START_MS_MAX = 180_000
const STARTS_MAX = 3
const STOP_MS_MAX = 60_000
const LOOK_MS = 50
/** Of a log, in the message that says why its server has ended. */
const LOG_CHARS_SHOWN = 1_000
const PORT_MIN = 20_000
const PORT_TRIES_MAX = 50
export const HOST = '127.0.0.1'

/**
 * @typedef {object} StartOptions
 * @property {string} dir the server's folder: its data, its settings, its logs
 * @property {number} [port] a free one when not given
 * @property {string} [heap] of a Java engine, like `512m`
 * @property {boolean} [optimize] a Java engine compiles what is hot at length: for long runs
 * @property {boolean} [fresh] forget the data that the folder holds
 */

/**
 * @typedef {object} Running
 * @property {number} pid
 * @property {string} birth tells this process from a later one of the same number
 * @property {string} host
 * @property {number} port
 * @property {string} dir
 * @property {string} version
 * @property {string} [archive] class archive that the server writes as it ends
 */

/**
 * @typedef {object} Engine
 * @property {string} name
 * @property {() => Promise<void>} prepare fetches what it runs on, once
 * @property {(options: StartOptions & { port: number }) => Promise<Launched>} launch
 * @property {(port: number) => Promise<boolean>} isReady
 * @property {(info: Pick<Running, 'archive'>) => void} [ended] runs after a stop
 * @property {string} program what its process is called
 * @property {(dir: string) => number} [strayOf] process of a server that was launched
 *   and never noted, where it can't be told by its working folder; 0: none
 */

/**
 * @typedef {object} Launched
 * @property {number} pid
 * @property {string} version
 * @property {string} [archive]
 * @property {() => string | null} problem how it ended before it was ready
 */

/**
 * Starts the engine's server in `dir`, or returns the one that runs there.
 *
 * @param {Engine} engine
 * @param {StartOptions} options
 * @returns {Promise<Running>} once it answers
 * @throws {Error} with a message for people
 */
export async function start(engine, options) {
  const { dir, fresh = false } = options
  await engine.prepare()
  const there = running(engine, dir)
  if (there !== null) {
    const problem = () => (isAlive(there) ? null : 'ended')
    await ready(engine, there, problem, Date.now() + START_MS_MAX)
    return there
  }
  await stop(engine, dir)
  if (fresh) rmSync(dir, { recursive: true, force: true })
  mkdirSync(dir, { recursive: true })
  const deadline = Date.now() + START_MS_MAX
  for (let left = STARTS_MAX - 1; ; left--) {
    try {
      return await launch(engine, options, deadline)
    } catch (error) {
      await stop(engine, dir)
      // Somebody else may have taken one of its ports between the look and the server's start.
      if (!(error instanceof CannotRun) || left === 0 || Date.now() > deadline) throw error
    }
  }
}

/**
 * One try; rejects when the server ends, or isn't ready by `deadline`.
 *
 * @param {Engine} engine
 * @param {StartOptions} options
 * @param {number} deadline
 */
async function launch(engine, options, deadline) {
  const { dir } = options
  const port = options.port || (await freePort())
  const { problem, ...launched } = await engine.launch({ ...options, port })
  const info = { ...launched, birth: birthOf(launched.pid), host: HOST, port, dir }
  writeFileSync(infoFile(engine, dir), JSON.stringify(info))
  await ready(engine, info, problem, deadline)
  return info
}

/**
 * Stops the server of `dir`, if one runs there: asks it to end, and kills it after a minute.
 *
 * @param {Engine} engine
 * @param {string} dir
 * @returns {Promise<boolean>} false when none ran
 */
export async function stop(engine, dir) {
  const info = running(engine, dir) ?? stray(engine, dir)
  if (info !== null) {
    process.kill(info.pid, 'SIGTERM')
    // One that stands still would not hear it.
    process.kill(info.pid, 'SIGCONT')
    const deadline = Date.now() + STOP_MS_MAX
    while (isAlive(info) && Date.now() < deadline) await pause(LOOK_MS)
    if (isAlive(info)) process.kill(info.pid, 'SIGKILL')
    while (isAlive(info)) await pause(LOOK_MS)
    engine.ended?.(info)
  }
  rmSync(infoFile(engine, dir), { force: true })
  return info !== null
}

/**
 * The server that runs in `dir`; null: none.
 *
 * @param {Engine} engine
 * @param {string} dir
 * @returns {Running | null}
 */
export function running(engine, dir) {
  const text = readText(infoFile(engine, dir))
  if (text === null) return null
  /** @type {Running} */
  const info = JSON.parse(text)
  return isAlive(info) ? info : null
}

/**
 * A server whose starter was killed before it could note it.
 *
 * @param {Engine} engine
 * @param {string} dir
 * @returns {Pick<Running, 'pid' | 'birth' | 'archive'> | null}
 */
function stray(engine, dir) {
  const pid = engine.strayOf?.(dir) || processIn(dir, engine.program)
  return pid === 0 ? null : { pid, birth: birthOf(pid) }
}

/**
 * The process of that name that works in that folder; 0: none. Linux only, where /proc tells.
 *
 * @param {string} dir
 * @param {string} program
 */
function processIn(dir, program) {
  if (process.platform !== 'linux' || !existsSync(dir)) return 0
  const folder = realpathSync(dir)
  const isIt = (/** @type {string} */ pid) => {
    try {
      const [name = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split(/[\0 ]/)
      return basename(name) === program && readlinkSync(`/proc/${pid}/cwd`) === folder
    } catch {
      return false // It has ended, or is somebody else's.
    }
  }
  return Number(readdirSync('/proc').find((entry) => /^\d+$/.test(entry) && isIt(entry)) ?? 0)
}

/**
 * Launches a server that outlives this process; what it prints goes to `logFile`.
 *
 * @param {readonly [string, ...string[]]} command
 * @param {{ cwd: string, logFile: string, env?: NodeJS.ProcessEnv }} options
 * @returns {{ pid: number, problem: () => string | null }}
 */
export function launchDetached([program, ...args], { cwd, logFile, env = process.env }) {
  const out = openSync(logFile, 'a')
  /** @type {string | null} */
  let problem = null
  const child = spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', out, out] })
  closeSync(out)
  child.once('error', (error) => (problem = error.message))
  child.once('exit', (code, signal) => {
    problem = `it ended (${signal ?? `exit code ${code}`}); ${endOf(logFile)}`
  })
  child.unref()
  return { pid: child.pid ?? 0, problem: () => problem }
}

/**
 * @param {Engine} engine
 * @param {Running} info
 * @param {() => string | null} problem
 * @param {number} deadline
 */
async function ready(engine, { pid, port, dir }, problem, deadline) {
  while (!(await engine.isReady(port))) {
    const reason = pid === 0 ? (problem() ?? 'it did not start') : problem()
    if (reason !== null) throw new CannotRun(`${engine.name}: ${reason}`)
    if (Date.now() > deadline) {
      throw new CannotRun(`${engine.name}: not ready after ${START_MS_MAX} ms; see ${dir}`)
    }
    await pause(LOOK_MS)
  }
}

/**
 * Sends `bytes` and judges the first bytes that come back.
 *
 * @param {number} port
 * @param {string | Buffer} bytes
 * @param {(answer: Buffer) => boolean} judge
 * @returns {Promise<boolean>} false, too, when nothing answers within two seconds
 */
export function answers(port, bytes, judge) {
  return new Promise((resolve) => {
    const socket = connect({ host: HOST, port })
    const done = (/** @type {boolean} */ verdict) => {
      socket.destroy()
      resolve(verdict)
    }
    socket.setTimeout(2_000, () => done(false))
    socket.once('error', () => done(false))
    socket.once('connect', () => socket.write(bytes))
    socket.once('data', (answer) => done(judge(answer)))
  })
}

/**
 * How a log ends, for a message.
 *
 * @param {string} logFile
 */
export function endOf(logFile) {
  const text = (readText(logFile) ?? '').trimEnd()
  return `see ${logFile}, which ends: ${text.slice(-LOG_CHARS_SHOWN)}`
}

/**
 * @param {number} [wanted] taken when it is free
 * @returns {Promise<number>} a port that nobody listens on at the moment, below those that the
 *   system gives to whoever connects: one of them could be taken before its server listens
 */
export async function freePort(wanted = 0) {
  if (wanted !== 0 && (await canListen(wanted))) return wanted
  for (let tries = 0; tries < PORT_TRIES_MAX; tries++) {
    const port = randomInt(PORT_MIN, firstGivenPort())
    if (await canListen(port)) return port
  }
  throw new Error(`no port from ${PORT_MIN} to ${firstGivenPort() - 1} is free`)
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function canListen(port) {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, HOST, () => server.close(() => resolve(true)))
  })
}

/** The lowest port that the system gives to whoever connects. */
function firstGivenPort() {
  const range = readText('/proc/sys/net/ipv4/ip_local_port_range')
  const first = Number(range?.split(/\s+/)[0] ?? 32_768)
  return first > PORT_MIN ? first : 65_536
}

/**
 * True while the process lives that was started then: numbers are given out again.
 *
 * @param {{ pid: number, birth: string }} process
 */
export function isAlive({ pid, birth }) {
  return birth !== '' && birthOf(pid) === birth
}

/**
 * What tells this process from any other that has had or will have its number; empty: it has ended.
 * A child that nobody has waited for (a zombie) has ended, too.
 *
 * @param {number} pid
 */
export function birthOf(pid) {
  if (process.platform !== 'linux') {
    const { stdout } = spawnSync('ps', ['-o', 'state=,lstart=', '-p', String(pid)])
    const [, state = 'Z', birth = ''] = /^\s*(\S+)\s+(.*\S)/.exec(String(stdout)) ?? []
    return state.startsWith('Z') ? '' : birth
  }
  const stat = readText(`/proc/${pid}/stat`)
  if (stat === null) return ''
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (fields[0] === 'Z' || fields[0] === 'X') return ''
  return `${readText('/proc/sys/kernel/random/boot_id')?.trim()} ${fields[19]}`
}

/**
 * @param {Engine} engine
 * @param {string} dir
 */
function infoFile(engine, dir) {
  return join(dir, `${engine.name}.json`)
}

/**
 * @param {string} path
 * @returns {string | null} null when there is no such file
 */
export function readText(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(codeOf(error))) return null
    throw error
  }
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
