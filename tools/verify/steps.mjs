// The checks and tests of the project as a table, and how one step of it is run and judged.

import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { readTap } from './tap.mjs'

const MINUTE_MS = 60_000
/** From the end of a tool to the end of its output. */
const OUTPUT_MS_MAX = 5_000
const OUTPUT_CHARS_SHOWN_MAX = 8_000
const FOLDERS = [
  'protocol',
  'config',
  'commerce',
  'storage',
  'cluster',
  'node',
  'tools',
  'cli',
  'bench',
  'test',
  'examples',
]

/**
 * @typedef {{ name: string, command: readonly string[], minutes: number, expect?: RegExp,
 *   tap?: true, env?: Record<string, string>, engines?: true, alone?: true, quick?: true }} Step
 * @typedef {{ passed: number, failed: number, skipped: number }} Counts
 */

/**
 * @typedef {object} Outcome
 * @property {Counts} counts
 * @property {string} shown what a person needs to see of the step when it failed
 * @property {readonly string[]} told what tests tell even where they pass
 */

/**
 * @typedef {object} Ended
 * @property {string} output all that the tool has printed, in order
 * @property {string} errors what of it went to standard error
 * @property {string | null} problem how the tool failed
 */

/** Runs test files: by its place, for a step may run in the folder of another project. */
const FILES = ['node', fileURLToPath(new URL('./files.ts', import.meta.url))]

/**
 * Suites of real faults, one file at a time: a process that dies is timed by the clock.
 *
 * @param {...string} names
 */
function faults(...names) {
  const files = names.map((name) => `test/cluster/${name}.faults.ts`)
  return [...FILES, '--jobs', '1', '--timeout', '900', ...files]
}

/**
 * The steps in their order, the fast ones first. `command` names an installed tool and what it is
 * given; `expect` must be found in what it prints, for a tool that checks nothing reports success
 * too; `minutes` is its bound; a step with `tap` is counted by its assertions, any other as one
 * check; one with `engines` can't run without real servers; one with `alone` has servers that it
 * may stop, and no others run beside them; one with `quick` is for `npm run check` alone: the step
 * `tests` runs its tests too.
 *
 * @type {readonly Step[]}
 */
export const STEPS = [
  { name: 'lint', command: ['oxlint', '--type-aware'], expect: /on [1-9]\d* files/, minutes: 3 },
  { name: 'format', command: ['oxfmt', '--check'], expect: /on [1-9]\d* files/, minutes: 1 },
  { name: 'types', command: ['tsc', '-p', '.'], minutes: 5 },
  {
    name: 'imports',
    command: ['depcruise', '--config', '.dependency-cruiser.cjs', ...FOLDERS],
    expect: /no dependency violations found \([1-9]\d* modules/,
    minutes: 3,
  },
  { name: 'dead', command: ['knip', '--no-progress'], minutes: 3 },
  {
    name: 'units',
    command: ['node', 'tools/verify/units.ts'],
    tap: true,
    quick: true,
    minutes: 5,
    // In seconds, for all of them: tap takes the process for one test, to which it gives 30.
    env: { TAP_TIMEOUT: '280' },
  },
  { name: 'tests', command: FILES, tap: true, minutes: 50 },
  // The specification once more, on the drivers of a cluster.
  {
    name: 'spec',
    command: [...FILES, 'test/spec'],
    tap: true,
    minutes: 25,
    env: { SPEC_DRIVER: 'cluster' },
    engines: true,
  },
  // Faults of real processes and engines: by themselves `npm run test:cluster`. Those with the
  // tightest clocks come last: until the servers have warmed up they take what the members need.
  {
    name: 'faults',
    command: faults('engines', 'index', 'keys', 'live', 'network'),
    tap: true,
    minutes: 40,
    engines: true,
    alone: true,
  },
  {
    name: 'deaths',
    command: faults('deaths', 'moves', 'soak', 'long-life'),
    tap: true,
    minutes: 40,
    engines: true,
    alone: true,
  },
]

/**
 * Runs one step in the folder `cwd`.
 *
 * @param {Step} step
 * @param {{ cwd: string, env: NodeJS.ProcessEnv, paths?: readonly string[] }} options `paths`: the
 *   tests to run instead of all
 * @returns {Promise<Outcome>}
 */
export async function runStep(step, { cwd, env, paths = [] }) {
  const command = [...step.command, ...paths]
  const options = { cwd, env: { ...env, ...step.env }, timeout: step.minutes * MINUTE_MS }
  const ended = await run(command, options)
  return step.tap ? judgeTests(ended, env) : judgeCheck(step, ended)
}

/**
 * @param {Step} step
 * @param {Ended} ended
 * @returns {Outcome}
 */
function judgeCheck(step, { output, problem }) {
  const empty = step.expect && !step.expect.test(output) ? `${step.name}: nothing was checked` : ''
  const failed = problem !== null || empty !== ''
  return {
    counts: { passed: failed ? 0 : 1, failed: failed ? 1 : 0, skipped: 0 },
    shown: [output, problem ?? empty].join('\n'),
    told: [],
  }
}

/**
 * @param {Ended} ended
 * @param {NodeJS.ProcessEnv} env
 * @returns {Outcome}
 */
function judgeTests({ output, errors, problem }, env) {
  const { passed, failed, skipped, failures, skips, told } = readTap(output)
  const counts = { passed, failed, skipped }
  const reasons = [...failures]
  if (failures.length > 0) reasons.push(errors.slice(-OUTPUT_CHARS_SHOWN_MAX))
  if (passed + failed === 0) reasons.push('no test ran')
  if (problem !== null && failures.length === 0) {
    reasons.push(output.slice(-OUTPUT_CHARS_SHOWN_MAX), problem)
  }
  // A machine that can't run a test must not look like one where it passes.
  if (env.CI === 'true' && skipped > 0) {
    reasons.push('skipped, which counts as failed where CI=true:', ...skips)
    counts.failed += skipped
  }
  if (counts.failed === 0 && reasons.length > 0) counts.failed = 1
  return { counts, shown: reasons.join('\n'), told }
}

/**
 * Runs a tool to its end.
 *
 * @param {readonly string[]} command
 * @param {{ cwd: string, env: NodeJS.ProcessEnv, timeout: number }} options
 * @returns {Promise<Ended>}
 */
function run(command, { cwd, env, timeout }) {
  const [program = '', ...args] = command
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout,
    })
    /** @type {Buffer[]} */
    const all = []
    /** @type {Buffer[]} */
    const errors = []
    child.stdout.on('data', (chunk) => all.push(chunk))
    child.stderr.on('data', (chunk) => {
      all.push(chunk)
      errors.push(chunk)
    })
    // What a tool that was stopped has started may hold its output open for ever.
    child.on('exit', () => setTimeout(() => closeOutput(child), OUTPUT_MS_MAX).unref())
    child.on('error', (error) => {
      resolve({ output: '', errors: '', problem: `${program}: ${error.message}` })
    })
    child.on('close', (code, signal) => {
      const how = signal === null ? `exit code ${code}` : `ended by ${signal}`
      const problem = code === 0 ? null : `${program}: ${how}`
      resolve({ output: plainText(all), errors: plainText(errors), problem })
    })
  })
}

/**
 * Without colours: they would stand between the words that `expect` and readTap look for.
 *
 * @param {readonly Buffer[]} chunks
 */
function plainText(chunks) {
  return stripVTControlCharacters(Buffer.concat(chunks).toString('utf8'))
}

/** @param {Record<'stdout' | 'stderr', import('node:stream').Readable>} child */
function closeOutput({ stdout, stderr }) {
  stdout.destroy()
  stderr.destroy()
}
