// How an engine gets onto this machine: from the package registries, into a cache folder, once.
// From Maven and apt, for the recipes (cassandra/, elasticsearch/, redis/). A download that breaks
// off is tried again; two processes never fetch the same thing side by side.
//
// Environment: ENGINES_CACHE (default ~/.cache/kontor-engines) keeps the unpacked engines,
// ENGINES_M2 (default ~/.m2/repository) is Maven's own folder.

import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { withLock } from '../set-up/lock.mjs'

const ATTEMPTS_MAX = 4
const RETRY_MS = 3_000
const FETCH_MS_MAX = 15 * 60_000
const POLICY_FILE = '/usr/sbin/policy-rc.d'

/** Why an engine can't run on this machine, for people. Anything else is a mistake of ours. */
export class CannotRun extends Error {
  /** @override */
  name = 'CannotRun'
}

export function cacheFolder() {
  return process.env.ENGINES_CACHE || join(homedir(), '.cache', 'kontor-engines')
}

export function mavenFolder() {
  return process.env.ENGINES_M2 || join(homedir(), '.m2', 'repository')
}

/**
 * Runs `fetch` unless `isThere`, one process at a time.
 *
 * @param {string} name
 * @param {() => boolean} isThere
 * @param {() => Promise<void>} fetch
 */
export async function once(name, isThere, fetch) {
  if (isThere()) return
  // Maven's own folder isn't made for two at once: one lock for all that is fetched.
  await withLock(join(cacheFolder(), '.fetching'), async () => {
    if (isThere()) return
    process.stderr.write(`Fetching ${name} (once) ...\n`)
    const started = Date.now()
    await fetch()
    const seconds = ((Date.now() - started) / 1_000).toFixed(1)
    process.stderr.write(`Fetched ${name} in ${seconds} s.\n`)
  })
}

/**
 * Runs a goal of Maven's dependency plugin.
 *
 * @param {string} pom
 * @param {readonly string[]} words
 */
export async function maven(pom, words) {
  await needPrograms(['mvn'], ['maven'])
  const quick = ['-B', '-q', '-ntp', '-f', pom, `-Dmaven.repo.local=${mavenFolder()}`]
  for (let attempt = 1; ; attempt++) {
    // -U: what could not be found a moment ago is asked for again.
    const again = attempt > 1 ? ['-U'] : []
    const problem = await problemOf('mvn', [...quick, ...again, ...words])
    if (problem === null) return
    if (attempt === ATTEMPTS_MAX) throw new CannotRun(`mvn: ${problem}. Is Maven Central in reach?`)
    process.stderr.write(`mvn: ${problem}; trying again\n`)
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS * attempt))
  }
}

/**
 * Makes sure that programs are on the PATH: as root of a Debian, with apt.
 *
 * @param {readonly string[]} programs
 * @param {readonly string[]} packages that bring them
 */
export async function needPrograms(programs, packages) {
  const missing = programs.filter((program) => !isInstalled(program))
  if (missing.length === 0) return
  const wanted = `${missing.join(', ')} missing: install ${packages.join(' ')}`
  if (process.getuid?.() !== 0 || !isInstalled('apt-get')) throw new CannotRun(wanted)
  await withLock(join(cacheFolder(), '.apt'), async () => {
    if (programs.every(isInstalled)) return
    process.stderr.write(`Installing ${packages.join(' ')} ...\n`)
    const problem = await withoutServices(() => aptInstall(packages))
    if (problem !== null) throw new CannotRun(`${wanted} (apt-get: ${problem})`)
  })
}

/**
 * apt's index of packages may be missing, or too old to find anything by.
 *
 * @param {readonly string[]} packages
 * @returns {Promise<string | null>} how it failed
 */
async function aptInstall(packages) {
  const options = [
    '-qq',
    '-o',
    'Dpkg::Use-Pty=0',
    '-o',
    'Acquire::Retries=5',
    '-o',
    'DPkg::Lock::Timeout=300',
  ]
  const words = [...options, 'install', '-y', '--no-install-recommends', ...packages]
  if ((await problemOf('apt-get', words)) === null) return null
  for (let attempt = 1; ; attempt++) {
    await problemOf('apt-get', [...options, 'update'])
    const problem = await problemOf('apt-get', words)
    if (problem === null || attempt === ATTEMPTS_MAX) return problem
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS * attempt))
  }
}

/**
 * A package would start its service; a policy that answers 101 forbids that.
 *
 * @template T
 * @param {() => Promise<T>} install
 */
async function withoutServices(install) {
  const mine = !existsSync(POLICY_FILE)
  if (mine) writeFileSync(POLICY_FILE, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    return await install()
  } finally {
    if (mine) rmSync(POLICY_FILE, { force: true })
  }
}

/** @param {string} program */
export function isInstalled(program) {
  return spawnSync('sh', ['-c', 'command -v "$0"', program]).status === 0
}

/**
 * Runs a program to its end; what it prints goes to standard error.
 *
 * @param {string} program
 * @param {readonly string[]} args
 */
export async function run(program, args) {
  const problem = await problemOf(program, args)
  if (problem !== null) throw new CannotRun(`${program} ${args[0] ?? ''}: ${problem}`)
}

/**
 * @param {string} program
 * @param {readonly string[]} args
 * @returns {Promise<string | null>} how it failed
 */
function problemOf(program, args) {
  mkdirSync(cacheFolder(), { recursive: true })
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: cacheFolder(),
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      stdio: ['ignore', process.stderr, 'inherit'],
      timeout: FETCH_MS_MAX,
    })
    child.on('error', (error) => resolve(error.message))
    child.on('exit', (code, signal) => {
      if (code === 0) resolve(null)
      else resolve(signal === null ? `exit code ${code}` : `ended by ${signal}`)
    })
  })
}
