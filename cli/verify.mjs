// Every check and every test of the project: `npm test`. It stands between a fresh clone and the one
// line at the end that says whether all is well; CI runs exactly this.
//
//     node cli/verify.mjs                      all steps
//     node cli/verify.mjs types lint           these steps
//     node cli/verify.mjs commerce/order       the tests of this folder or file

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { ROOT, setUp } from './set-up.mjs'
import { readTap } from './verify-tap.mjs'

const MINUTE_MS = 60_000
const FOLDERS = [
  'protocol',
  'config',
  'commerce',
  'storage',
  'cluster',
  'node',
  'cli',
  'bench',
  'test',
]

/**
 * The steps in their order, the fast ones first. `command` names an installed tool; `expect` must
 * be found in what it prints, for a tool that checks nothing reports success too; `minutes` is its
 * bound; a step with `tap` is counted by its assertions, any other as one check.
 */
const STEPS = [
  { name: 'lint', command: 'oxlint --type-aware', expect: /on [1-9]\d* files/, minutes: 3 },
  { name: 'format', command: 'oxfmt --check', expect: /on [1-9]\d* files/, minutes: 1 },
  { name: 'types', command: 'tsc -p .', expect: null, minutes: 5 },
  {
    name: 'imports',
    command: `depcruise --config .dependency-cruiser.cjs ${FOLDERS.join(' ')}`,
    expect: /no dependency violations found \([1-9]\d* modules/,
    minutes: 3,
  },
  { name: 'dead', command: 'knip --no-progress', expect: null, minutes: 3 },
  { name: 'tests', command: 'tap --reporter=tap', tap: true, minutes: 25 },
]

async function main() {
  const args = process.argv.slice(2)
  const named = STEPS.filter((step) => args.includes(step.name))
  const paths = args.filter((arg) => !named.some((step) => step.name === arg))
  checkPaths(paths)
  const steps = named.length > 0 ? named : STEPS.filter((step) => paths.length === 0 || step.tap)
  const { env } = await setUp({ root: ROOT, dev: true })

  const sum = { passed: 0, failed: 0, skipped: 0 }
  for (const step of steps) {
    const counts = await runStep(step, step.tap ? paths : [], env)
    for (const key of Object.keys(sum)) sum[key] += counts[key]
  }
  return report(sum)
}

/** A path that isn't there is a mistyped step far more often than not. */
function checkPaths(paths) {
  for (const path of paths) {
    if (path.startsWith('-') || existsSync(path)) continue
    const names = STEPS.map((step) => step.name).join(', ')
    throw new Error(`${path} is neither a step (${names}) nor a file or folder of tests.`)
  }
}

async function runStep(step, paths, env) {
  const started = performance.now()
  const ended = await run(`${step.command} ${paths.join(' ')}`, step.minutes * MINUTE_MS, env)
  const { counts, shown } = step.tap ? judgeTests(ended) : judgeCheck(step, ended)
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  const outcome = counts.failed === 0 ? 'ok' : 'FAILED'
  if (counts.failed > 0) process.stdout.write(`${shown.trimEnd()}\n`)
  process.stdout.write(`${step.name.padEnd(8)} ${outcome.padEnd(6)} ${seconds.padStart(6)} s\n`)
  return counts
}

function judgeCheck(step, { output, problem }) {
  const empty = step.expect && !step.expect.test(output) ? `${step.name}: nothing was checked` : ''
  const failed = problem !== null || empty !== ''
  return {
    counts: { passed: failed ? 0 : 1, failed: failed ? 1 : 0, skipped: 0 },
    shown: [output, problem ?? empty].join('\n'),
  }
}

function judgeTests({ output, problem }) {
  const { passed, failed, skipped, failures } = readTap(output)
  const counts = { passed, failed, skipped }
  const reasons = [...failures]
  if (passed + failed === 0) reasons.push('no test ran')
  if (problem !== null && failed === 0) reasons.push(problem)
  // A machine that can't run a test must not look like one where it passes.
  if (process.env.CI === 'true' && skipped > 0) {
    reasons.push(`${skipped} skipped, which counts as failed where CI=true`)
    counts.failed += skipped
  }
  if (counts.failed === 0 && reasons.length > 0) counts.failed = 1
  return { counts, shown: reasons.join('\n') }
}

/** Runs a tool to its end and keeps what it prints, in order; `problem` says how it failed. */
function run(command, msMax, env) {
  const [program, ...args] = command.trim().split(/\s+/)
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd: ROOT,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: msMax,
    })
    const chunks = []
    child.stdout.on('data', (chunk) => chunks.push(chunk))
    child.stderr.on('data', (chunk) => chunks.push(chunk))
    child.on('error', (error) => resolve({ output: '', problem: `${program}: ${error.message}` }))
    child.on('close', (code, signal) => {
      const how = signal === null ? `exit code ${code}` : `ended by ${signal}`
      const problem = code === 0 ? null : `${program}: ${how}`
      resolve({ output: Buffer.concat(chunks).toString('utf8'), problem })
    })
  })
}

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
