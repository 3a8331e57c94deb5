// The simulation's command: runs seeds, each twice, and says which of them a checker fails, with
// the command line that runs it again. With a mutant it ends at the first that catches it. Source:
// PROTOCOL 4.1.
//
//     npm run simulate -- [--seeds N] [--within SECONDS] [--first S] [--mutant NAME] [--once]
//                         [--directed NAME] [--trace-hash] [--list-mutants] [--show]
//
// With --within it begins no other seed once that time is over, and N is the least that it runs.
// Ends with 0 when all hold, 1 when a checker fails, 2 when it was asked for what there isn't.

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import type { Schedule } from './directed/stage.ts'
import { loadMutant } from './mutant-loader.ts'
import { MUTANTS } from './mutants.ts'

interface Options {
  /** So many; with `withinMs` at least so many. */
  readonly seeds: number
  /** No seed is begun later than this after the first, once `seeds` have been run. */
  readonly withinMs: number | null
  /** Without it a mutant's own, or the first of all. */
  readonly first: number | null
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
      seeds: { type: 'string' },
      within: { type: 'string' },
      first: { type: 'string' },
      mutant: { type: 'string' },
      directed: { type: 'string' },
      'trace-hash': { type: 'boolean', default: false },
      'list-mutants': { type: 'boolean', default: false },
      show: { type: 'boolean', default: false },
      once: { type: 'boolean', default: false },
    },
  })
  const { within } = values
  return {
    seeds: wholeNumber('--seeds', values.seeds ?? (within === undefined ? '100' : '1')),
    withinMs: within === undefined ? null : wholeNumber('--within', within) * 1_000,
    first: values.first === undefined ? null : wholeNumber('--first', values.first),
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
  let first = options.first ?? 1
  if (options.mutant !== null) {
    const mutant = MUTANTS.find(({ name }) => name === options.mutant)
    if (!mutant) throw new Error(`there is no mutant ${options.mutant}: see --list-mutants`)
    loadMutant(mutant)
    first = options.first ?? mutant.first ?? 1
    const { directed, test } = mutant
    if (test !== undefined) return runTest(test)
    if (directed !== undefined && (await play(directed, options)) > 0) return 1
  }
  return options.directed === null ? runSeeds(options, first) : play(options.directed, options)
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

async function runSeeds(options: Options, first: number): Promise<number> {
  // Loaded behind the mutant, which is patched in while it is loaded.
  const { runSeed } = await import('./run.ts')
  const { mutant, traceHash, show, once } = options
  const began = performance.now()
  let ran = 0
  let failed = 0
  let operations = 0
  let looks = 0
  let heard = 0
  for (; isToRun(ran, performance.now() - began, options); ran++) {
    const seed = first + ran
    const result = await runSeed(seed, { show: show ? say : null })
    const found = [...result.found]
    operations += result.operations.ok
    looks += result.looks
    heard += result.heard
    if (!once && (await runSeed(seed, { isJudged: false })).hash !== result.hash) {
      found.push('its two runs have different traces: something in them is left to chance')
    }
    if (traceHash) say(`seed ${seed} trace ${result.hash}`)
    if (found.length === 0) continue
    failed++
    report(`--seeds 1 --first ${seed}`, found, mutant)
    if (mutant === null) continue
    ran++
    break
  }
  const seeds = `${ran} ${ran === 1 ? 'seed' : 'seeds'}`
  say(`${seeds} from ${first}: ${failed === 0 ? 'all hold' : `${failed} failed`}`)
  // How long a number of seeds took is chance, and the same command says the same.
  const time = options.withinMs === null ? '' : ` in ${seconds(performance.now() - began)} s`
  const told = `${count(looks)} looks at the graph, ${count(heard)} changes heard`
  say(`${count(operations)} operations over ${seeds}${time}, ${told}`)
  return failed === 0 ? 0 : 1
}

/** Whether another seed is begun after so many, so long after the first. */
function isToRun(ran: number, tookMs: number, { seeds, withinMs }: Options): boolean {
  return ran < seeds || (withinMs !== null && tookMs < withinMs)
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(0)
}

function count(number: number): string {
  return number.toLocaleString('en')
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
