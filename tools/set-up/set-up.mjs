// The set-up that every npm script passes through: from a fresh clone, on whatever Node the machine
// has (18 or newer), to Node 22 with the packages of the lock file. Plain JavaScript without
// packages, for nothing is installed yet when it runs. CONTRACT 0, Settings.

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { codeOf } from './error-code.mjs'
import { hasForeignBinary, keepOwnBinary } from './lean.mjs'
import { withLock } from './lock.mjs'

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..')

/** The first Node 22 that runs TypeScript sources without a flag. */
const NODE_MAJOR = 22
const NODE_MINOR_MIN = 18
const INSTALL_MS_MAX = 15 * 60_000

/** Written after an install: which lock file it followed, where, and with what. */
const STAMP = '.lock-hash'
const TAP_STAMP = '.tap-built'

/**
 * Makes sure that node_modules has what the lock file says and returns the Node 22 to go on with.
 *
 * @param {{ root?: string, dev?: boolean }} options `dev`: tests and checks follow, so development
 *   packages are needed too, and tap is built for its plugins. What runs needs none of them.
 * @returns {Promise<{ node: string, env: NodeJS.ProcessEnv }>} path of Node 22; environment whose
 *   PATH finds it and the installed tools first.
 * @throws {Error} with a message for people: what is missing and how to get it.
 */
export async function setUp({ root = ROOT, dev = false } = {}) {
  const lock = readLock(root)
  if (!isInstalled(lock, dev)) {
    await withLock(join(root, '.set-up'), async (track) => {
      if (!isInstalled(lock, dev)) await install(lock, dev, track)
    })
  }
  const node = findNode(root)
  const env = { ...process.env, PATH: searchPath(root, node) }
  if (dev && !isTapBuilt(lock)) {
    await withLock(join(root, '.set-up'), async (track) => {
      if (!isTapBuilt(lock)) await buildTap(lock, { node, env, track })
    })
  }
  return { node, env }
}

/**
 * What the lock file says of a package.
 *
 * @typedef {object} Package
 * @property {string} [version]
 * @property {boolean} [dev]
 * @property {boolean} [optional]
 * @property {boolean} [devOptional]
 * @property {boolean} [peer]
 * @property {string[]} [os]
 * @property {string[]} [cpu]
 * @property {string[]} [libc]
 */

/** @typedef {Record<string, Package>} Packages by their paths */
/** @typedef {{ root: string, packages: Packages, hash: string }} Lock */
/** @typedef {(pid: number) => void} Track is told of each process that is started */

/**
 * @param {string} root
 * @returns {Lock} the lock file of that folder
 */
function readLock(root) {
  const bytes = readFileSync(join(root, 'package-lock.json'))
  const hash = createHash('sha256').update(bytes).digest('hex')
  return { root, packages: JSON.parse(bytes.toString('utf8')).packages, hash }
}

/**
 * What the stamp says after an install; folders are shared between systems.
 *
 * @param {Lock} lock
 * @param {boolean} dev
 */
function stampOf({ hash }, dev) {
  return `${hash} ${process.platform}-${process.arch}${dev ? '' : ' without development'}`
}

/**
 * True when node_modules matches the lock file, whoever installed it.
 *
 * @param {Lock} lock
 * @param {boolean} dev
 */
function isInstalled(lock, dev) {
  const path = join(lock.root, 'node_modules', STAMP)
  const stamp = readText(path)
  const stamps = dev ? [stampOf(lock, true)] : [stampOf(lock, true), stampOf(lock, false)]
  if (stamps.some((known) => stamp === `${known}\n`)) return true
  const missing = missingPackages(lock)
  if (missing.some((wanted) => dev || !wanted.dev)) return false
  writeStamp(path, stampOf(lock, missing.length === 0))
  return true
}

/**
 * Packages of the lock file that this platform needs and that aren't there in that version.
 *
 * @param {Lock} lock
 */
function missingPackages({ root, packages }) {
  const there = installedPackages(root)
  const missing = []
  if (hasForeignBinary(root)) missing.push({ path: 'node_modules/uWebSockets.js', dev: false })
  for (const [path, wanted] of Object.entries(packages)) {
    if (path === '' || there[path]?.version === wanted.version) continue
    const optional = wanted.optional || wanted.devOptional || wanted.peer
    const needed = optional ? isForThisPlatform(wanted) : true
    if (needed || there[path]) missing.push({ path, dev: wanted.dev === true })
  }
  return missing
}

/**
 * What npm says that it has installed.
 *
 * @param {string} root
 * @returns {Packages}
 */
function installedPackages(root) {
  const text = readText(join(root, 'node_modules', '.package-lock.json'))
  return text === null ? {} : (JSON.parse(text).packages ?? {})
}

/**
 * True for a prebuilt package of exactly this platform: npm skips it silently when it fails.
 *
 * @param {Package} wanted
 */
function isForThisPlatform({ os, cpu, libc }) {
  if (os === undefined || cpu === undefined) return false
  if (!os.includes(process.platform) || !cpu.includes(process.arch)) return false
  return libc === undefined || libc.includes(hasGlibc() ? 'glibc' : 'musl')
}

function hasGlibc() {
  /** @type {{ header?: { glibcVersionRuntime?: string } }} */
  const { header } = process.report.getReport()
  return header?.glibcVersionRuntime !== undefined
}

/**
 * Installs what runs, and what tests need where it is asked for or has been installed before.
 *
 * @param {Lock} lock
 * @param {boolean} dev
 * @param {Track} track
 */
async function install(lock, dev, track) {
  const { root } = lock
  process.stderr.write('Installing packages (once, about half a minute) ...\n')
  const started = Date.now()
  const all = dev || Object.values(installedPackages(root)).some((one) => one.dev === true)
  const omit = all ? [] : ['--omit=dev']
  const missing = () => missingPackages(lock).filter((wanted) => all || !wanted.dev)
  // Beside a node that runs from this folder nothing is taken away.
  const isOnlyMore = missing().every((wanted) => wanted.dev)
  const words = isOnlyMore ? ['install', '--no-save'] : ['ci']
  await npm([...words, ...omit], process.execPath, { root, track })
  // npm leaves out, in silence, prebuilt packages that aren't meant for the Node that runs it.
  const node = packagedNode(root)
  if (missing().length > 0 && node !== null) {
    await npm(['install', '--no-save', ...omit], node, { root, track })
  }
  const [first, ...others] = missing()
  if (first !== undefined) {
    const more = others.length > 0 ? ` and ${others.length} more` : ''
    throw new Error(`npm ci left out ${first.path}${more}. Is the registry in reach?`)
  }
  keepOwnBinary(root)
  linkNode(root)
  writeStamp(join(root, 'node_modules', STAMP), stampOf(lock, all))
  process.stderr.write(`Installed in ${((Date.now() - started) / 1000).toFixed(1)} s.\n`)
}

/**
 * Runs npm on the Node `node`: by the path that an outer npm gives, else by name.
 *
 * @param {readonly string[]} words
 * @param {string} node
 * @param {{ root: string, track: Track }} options
 */
function npm(words, node, { root, track }) {
  // --ignore-scripts: everything native comes prebuilt, as a platform package of the lock file.
  const args = [...words, '--ignore-scripts', '--loglevel=error', '--no-audit', '--no-fund']
  const env = npmEnvironment(node)
  const path = process.env.npm_execpath
  const known = path !== undefined && /npm-cli\.c?js$/.test(path) && existsSync(path)
  if (known) return run(node, [path, ...args], { cwd: root, env, track })
  return run('npm', args, { cwd: root, env, track })
}

/**
 * Without what an outer npm sets for its own run (`--omit=dev` of somebody else's install).
 *
 * @param {string} node
 */
function npmEnvironment(node) {
  const path = [dirname(node), process.env.PATH ?? ''].join(delimiter)
  /** @type {NodeJS.ProcessEnv} */
  const env = { ...process.env, PATH: path }
  delete env.NODE_ENV
  for (const name of ['omit', 'only', 'production', 'dry_run']) delete env[`npm_config_${name}`]
  return env
}

function platformPackages() {
  const { platform, arch } = process
  return [`node-${platform}-${arch}`, `node-bin-${platform}-${arch}`]
}

/**
 * The Node that runs this when it is a Node 22 that strips types, else the packaged one.
 *
 * @param {string} root
 */
function findNode(root) {
  const [major, minor = 0] = process.versions.node.split('.').map(Number)
  if (major === NODE_MAJOR && minor >= NODE_MINOR_MIN) return process.execPath
  const found = packagedNode(root)
  if (found !== null) return found
  throw new Error(
    `Kontor runs on Node ${NODE_MAJOR}.${NODE_MINOR_MIN} or a later ${NODE_MAJOR}; this is ` +
      `${process.versions.node}, and node_modules has no Node for ${process.platform} on ` +
      `${process.arch}. Install Node ${NODE_MAJOR}, or the optional packages (npm ci without ` +
      '--omit=optional).',
  )
}

/** @param {string} root */
function packagedNode(root) {
  for (const name of platformPackages()) {
    const path = join(root, 'node_modules', name, 'bin', 'node')
    if (existsSync(path)) return path
  }
  return null
}

/**
 * `node_modules/.bin/node`, for people and for tools that start `node`; older npm forgets it.
 *
 * @param {string} root
 */
function linkNode(root) {
  const link = join(root, 'node_modules', '.bin', 'node')
  if (existsSync(link)) return
  for (const name of platformPackages()) {
    if (!existsSync(join(root, 'node_modules', name))) continue
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(join('..', name, 'bin', 'node'), link)
    return
  }
}

/**
 * @param {string} root
 * @param {string} node
 */
function searchPath(root, node) {
  return [dirname(node), join(root, 'node_modules', '.bin'), process.env.PATH ?? ''].join(delimiter)
}

/** @param {Lock} lock */
function isTapBuilt({ root, hash }) {
  return readText(join(root, 'node_modules', TAP_STAMP)) === `${hash}\n`
}

/**
 * tap is generated for its plugins; the one that it comes with can't run TypeScript 7 sources.
 *
 * @param {Lock} lock
 * @param {{ node: string, env: NodeJS.ProcessEnv, track: Track }} options
 */
async function buildTap({ root, hash }, { node, env, track }) {
  const tap = join(root, 'node_modules', 'tap', 'dist', 'esm', 'run.mjs')
  await run(node, [tap, 'build'], { cwd: root, env, track })
  writeStamp(join(root, 'node_modules', TAP_STAMP), hash)
}

/**
 * Runs a program to its end. What it prints goes to standard error: ours is the program's own.
 *
 * @param {string} program
 * @param {readonly string[]} args
 * @param {{ cwd: string, env: NodeJS.ProcessEnv, track: Track }} options
 * @returns {Promise<void>}
 */
function run(program, args, { cwd, env, track }) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd,
      env,
      stdio: ['ignore', process.stderr, 'inherit'],
      timeout: INSTALL_MS_MAX,
    })
    if (child.pid !== undefined) track(child.pid)
    child.on('error', (error) => reject(new Error(`Can't start ${program}: ${error.message}`)))
    child.on('exit', (code, signal) => {
      const ended = signal === null ? `exit code ${code}` : `ended by ${signal}`
      if (code === 0) resolve()
      else reject(new Error(`${[program, ...args].join(' ')}: ${ended}. See the lines above.`))
    })
  })
}

/** @param {string} path */
function readText(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error))) return null
    throw error
  }
}

/**
 * A stamp only saves time: where node_modules can't be written, the long look is taken again.
 *
 * @param {string} path
 * @param {string} hash
 */
function writeStamp(path, hash) {
  try {
    writeFileSync(path, `${hash}\n`)
  } catch (error) {
    if (!['EROFS', 'EACCES', 'EPERM'].includes(codeOf(error))) throw error
  }
}
