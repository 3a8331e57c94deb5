// Every check and every test of the project: `npm test`. One line at the end says whether all is
// well; CI runs exactly this.
//
//     node tools/verify.mjs                      all steps
//     node tools/verify.mjs types lint           these steps
//     node tools/verify.mjs commerce/order       the tests of this folder or file

import { existsSync } from 'node:fs'
import { ENGINES } from './engines/engines.mjs'
import { CannotRun } from './engines/fetch.mjs'
import { enter, faultsFolder, leave, sharedFolder, writeFailure } from './engines/users.mjs'
import { pack } from './start/packed.mjs'
import { ROOT, setUp } from './set-up/set-up.mjs'
import { runStep, STEPS } from './verify/steps.mjs'
import { table } from './verify/table.mjs'

/**
 * @typedef {import('./verify/steps.mjs').Step} Step
 * @typedef {import('./verify/steps.mjs').Counts} Counts
 */

async function main() {
  const args = process.argv.slice(2)
  const named = STEPS.filter((step) => args.includes(step.name))
  const paths = args.filter((arg) => !named.some((step) => step.name === arg))
  checkPaths(paths)
  // Of named paths, only the step that runs any tests.
  const isMeant = (/** @type {Step} */ step) =>
    paths.length === 0 ? !step.quick : step.name === 'tests'
  const steps = named.length > 0 ? named : STEPS.filter(isMeant)
  const { env } = await setUp({ root: ROOT, dev: true })
  // What users start is what is tested.
  const unpacked = steps.some(startsNodes) ? await pack() : null
  if (unpacked !== null) process.stdout.write(`nodes start from their sources: ${unpacked}\n`)
  const fetched = steps.some(startsNodes) && paths.length === 0 ? fetchEngines() : null

  const sum = { passed: 0, failed: 0, skipped: 0 }
  /** @type {import('./verify/table.mjs').Row[]} */
  const rows = []
  for (const step of steps) {
    const missing = step.tap ? ((await fetched) ?? []) : []
    if (step.engines && missing.length > 0 && env.CI !== 'true') {
      process.stdout.write(`${step.name.padEnd(8)} skipped: ${missing.join('; ')}\n`)
      sum.skipped++
      rows.push({ name: step.name, seconds: '-', counts: { passed: 0, failed: 0, skipped: 1 } })
      continue
    }
    if (step.alone && fetched !== null) await handOver()
    const { counts, seconds } = await timed(step, { cwd: ROOT, env, paths: step.tap ? paths : [] })
    rows.push({ name: step.name, seconds, counts })
    sum.passed += counts.passed
    sum.failed += counts.failed
    sum.skipped += counts.skipped
  }
  if (fetched !== null) for (const dir of [sharedFolder(), faultsFolder()]) await leave(dir)
  process.stdout.write(table(rows))
  return report(sum)
}

/**
 * Whether the tests of a step may start nodes and engines.
 *
 * @param {Step} step
 */
function startsNodes(step) {
  return step.tap === true && step.quick !== true
}

/**
 * Fetches, beside the first steps, what the tests of the cluster run on. What can't be had is told
 * by the tests that are skipped for it (and fail where CI=true). Resolves to the reasons.
 */
async function fetchEngines() {
  const dir = sharedFolder()
  /** @type {string[]} */
  const missing = []
  await enter(dir)
  const fetching = Object.values(ENGINES).map(async (engine) => {
    try {
      await engine.prepare()
    } catch (error) {
      if (!(error instanceof CannotRun)) throw error
      writeFailure(dir, engine.name, error.message)
      missing.push(`no ${engine.name} here: ${error.message}`)
    }
  })
  await Promise.all(fetching)
  return missing
}

/** Ends the engines that others share, unless another run of this checkout is at work on them. */
async function handOver() {
  await leave(sharedFolder())
  await enter(faultsFolder())
}

/**
 * A path that isn't there is a mistyped step far more often than not.
 *
 * @param {readonly string[]} paths
 */
function checkPaths(paths) {
  for (const path of paths) {
    if (path.startsWith('-') || existsSync(path)) continue
    const names = STEPS.map((step) => step.name).join(', ')
    throw new Error(`${path} is neither a step (${names}) nor a file or folder of tests.`)
  }
}

/**
 * @param {Step} step
 * @param {{ cwd: string, env: NodeJS.ProcessEnv, paths: readonly string[] }} options
 */
async function timed(step, options) {
  const started = performance.now()
  const { counts, shown, told } = await runStep(step, options)
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  const outcome = counts.failed === 0 ? 'ok' : 'FAILED'
  if (counts.failed > 0) process.stdout.write(`${shown.trimEnd()}\n`)
  process.stdout.write(`${step.name.padEnd(8)} ${outcome.padEnd(6)} ${seconds.padStart(6)} s\n`)
  for (const line of told) process.stdout.write(`${' '.repeat(9)}${line}\n`)
  return { counts, seconds }
}

/**
 * @param {Counts} counts
 * @returns {number} exit code
 */
function report({ passed, failed, skipped }) {
  const end = skipped > 0 ? `, ${skipped} skipped` : ''
  process.stdout.write(`${passed} passed, ${failed} failed${end}\n`)
  return failed === 0 ? 0 : 1
}

main().then(
  (code) => {
    process.exitCode = code
  },
  (error) => {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = report({ passed: 0, failed: 1, skipped: 0 })
  },
)
