// The simulation's command: runs seeds, each twice, and says which of them a checker fails, with
// the command line that runs it again. With a mutant it ends at the first that catches it. Source:
// PROTOCOL 4.1.
//
//     npm run simulate -- [--seeds N] [--first S] [--mutant NAME] [--trace-hash] [--list-mutants]
//                         [--directed NAME] [--once] [--show]
//
// Ends with 0 when all hold, 1 when a checker fails, 2 when it was asked for what there isn't.

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import type { Schedule } from './directed/stage.ts'
import { loadMutant } from './mutant-loader.ts'
import { MUTANTS } from './mutants.ts'

interface Options {
  readonly seeds: number
  readonly first: number
  readonly mutant: string | null
  /** A directed schedule instead of seeds. */
  readonly directed: string | null
  readonly traceHash: boolean
  readonly listMutants: boolean
  /** Every line of the trace. */
  readonly show: boolean
  /** Each seed once: quicker, and nothing says whether its traces are the same. */
  readonly once: boolean
}

const FOUND_SHOWN_MAX = 12

const say = (text: string): void => void process.stdout.write(`${text}\n`)

function optionsOf(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: 'string', default: '100' },
      first: { type: 'string' },
      mutant: { type: 'string' },
      directed: { type: 'string' },
      'trace-hash': { type: 'boolean', default: false },
      'list-mutants': { type: 'boolean', default: false },
      show: { type: 'boolean', default: false },
      once: { type: 'boolean', default: false },
    },
  })
  return {
    seeds: wholeNumber('--seeds', values.seeds),
    first: wholeNumber('--first', values.first ?? '1'),
    mutant: values.mutant ?? null,
    directed: values.directed ?? null,
    traceHash: values['trace-hash'],
    listMutants: values['list-mutants'],
    show: values.show,
    once: values.once,
  }
}

function wholeNumber(name: string, text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 0) throw new Error(`${name} is a whole number`)
  return number
}

/** With what the process ends; null: somebody else says it. */
async function main(): Promise<number | null> {
  const options = optionsOf(process.argv.slice(2))
  if (options.listMutants) {
    for (const { name } of MUTANTS) say(name)
    return 0
  }
  if (options.mutant !== null) {
    const mutant = MUTANTS.find(({ name }) => name === options.mutant)
    if (!mutant) throw new Error(`there is no mutant ${options.mutant}: see --list-mutants`)
    loadMutant(mutant)
    const { directed, test } = mutant
    if (test !== undefined) return runTest(test)
    if (directed !== undefined && (await play(directed, options)) > 0) return 1
  }
  return options.directed === null ? runSeeds(options) : play(options.directed, options)
}

/** A unit test in this process. It says by itself how it went, and the process ends with that. */
async function runTest(path: string): Promise<null> {
  await import(pathToFileURL(join(import.meta.dirname, '..', '..', path)).href)
  return null
}

/** A schedule of its own; 1 when a checker fails. */
async function play(name: string, { show, mutant }: Options): Promise<number> {
  const { playDirected } = await import('./directed/stage.ts')
  const schedule = (await import(`./directed/${name}.ts`)) as Schedule
  const found = await playDirected(schedule, show ? say : null)
  if (found.length === 0) {
    say(`${name}: holds`)
    return 0
  }
  report(`--directed ${name}`, found, mutant)
  return 1
}

async function runSeeds(options: Options): Promise<number> {
  // Loaded behind the mutant, which is patched in while it is loaded.
  const { runSeed } = await import('./run.ts')
  const { first, seeds, mutant, traceHash, show, once } = options
  let failed = 0
  let operations = 0
  let looks = 0
  for (let seed = first; seed < first + seeds; seed++) {
    const result = await runSeed(seed, { show: show ? say : null })
    const found = [...result.found]
    operations += result.operations.ok
    looks += result.looks
    if (!once && (await runSeed(seed, { isJudged: false })).hash !== result.hash) {
      found.push('its two runs have different traces: something in them is left to chance')
    }
    if (traceHash) say(`seed ${seed} trace ${result.hash}`)
    if (found.length === 0) continue
    failed++
    report(`--seeds 1 --first ${seed}`, found, mutant)
    if (mutant !== null) break
  }
  const ran = failed > 0 && mutant !== null ? '' : `${seeds} seeds from ${first}: `
  say(`${ran}${failed === 0 ? 'all hold' : `${failed} failed`}`)
  say(`${operations} operations were answered, ${looks} looks at the graph`)
  return failed === 0 ? 0 : 1
}

function report(what: string, found: readonly string[], mutant: string | null): void {
  say(`${what}: ${found.length} found`)
  for (const one of found.slice(0, FOUND_SHOWN_MAX)) say(`  ${one}`)
  say(`  npm run simulate -- ${what}${mutant === null ? '' : ` --mutant ${mutant}`}`)
}

main().then(
  (code) => {
    if (code !== null) process.exitCode = code
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? causesOf(error) : String(error)}\n`)
    process.exitCode = 2
  },
)

function causesOf(error: Error): string {
  return error.cause instanceof Error ? `${error.message}: ${causesOf(error.cause)}` : error.message
}
