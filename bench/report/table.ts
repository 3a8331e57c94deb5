// The result as a table for the terminal: one row a case, medians, the spread of the rate, and
// each figure beside its floors.

import { spread, type BenchResult, type CaseResult, type RunFigures } from '../result.ts'
import { courses } from './course.ts'

type Column = readonly [title: string, cell: (one: CaseResult) => string]

const median = (one: CaseResult, figure: (run: RunFigures) => number | null | undefined) =>
  spread(one.runs.map(figure))?.median ?? null

function shown(value: number | null, digits: number): string {
  return value === null ? '-' : value.toFixed(digits)
}

const ms =
  (figure: 'p50' | 'p99' | 'p999') =>
  (one: CaseResult): string =>
    shown((median(one, (run) => run[figure]) ?? 0) / 1000, 2)

const COLUMNS: readonly Column[] = [
  ['scenario', (one) => one.name],
  ['conn', (one) => String(one.connections)],
  [
    'rate/s',
    (one) =>
      shown(
        median(one, (run) => run.rate),
        0,
      ),
  ],
  ['min-max', rateSpread],
  [
    'x http',
    (one) =>
      shown(
        median(one, (run) => run.floors.http?.rate),
        2,
      ),
  ],
  [
    'x lmdb',
    (one) =>
      shown(
        median(one, (run) => run.floors.lmdb?.rate),
        2,
      ),
  ],
  [
    'cpu us',
    (one) =>
      shown(
        median(one, (run) => run.cpu),
        1,
      ),
  ],
  [
    'all us',
    (one) =>
      shown(
        median(one, (run) => run.cpuAll),
        1,
      ),
  ],
  [
    'cpu x lmdb',
    (one) =>
      shown(
        median(one, (run) => run.floors.lmdb?.cpu),
        2,
      ),
  ],
  [
    'gen us',
    (one) =>
      shown(
        median(one, (run) => run.generatorCpu),
        1,
      ),
  ],
  ['p50 ms', ms('p50')],
  ['p99 ms', ms('p99')],
  ['p99.9', ms('p999')],
  [
    'rss',
    (one) =>
      shown(
        median(one, (run) => run.rssMiB),
        0,
      ),
  ],
  [
    'anon',
    (one) =>
      shown(
        median(one, (run) => run.rssAnonMiB),
        0,
      ),
  ],
  [
    'lag',
    (one) =>
      shown(
        median(one, (run) => run.lagEntries),
        0,
      ),
  ],
  ['catch-up s', (one) => shown(seconds(median(one, (run) => run.catchUpMs)), 2)],
  [
    'per commit',
    (one) =>
      shown(
        median(one, (run) => run.entriesPerCommit),
        1,
      ),
  ],
  ['failed', (one) => String(one.runs.reduce((n, run) => n + run.failed, 0))],
]

/** Titles, then one row a case. */
export function tableCells(result: BenchResult): readonly (readonly string[])[] {
  return [
    COLUMNS.map(([title]) => title),
    ...result.cases.map((one) => COLUMNS.map(([, cell]) => cell(one))),
  ]
}

export function resultTable(result: BenchResult): string {
  const rows = tableCells(result)
  const widths = COLUMNS.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)))
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join('  ')
  return [...heading(result), ...rows.map(line), ...courses(result), ...problems(result), ''].join(
    '\n',
  )
}

function heading({ machine, nodeVersion, durability, date, revision, target }: BenchResult) {
  return [
    `${machine.hostname}: ${machine.cores} x ${machine.cpu}, ${machine.memoryMiB} MiB, ` +
      `${machine.system}, Node ${nodeVersion}, load before ${machine.loadBefore.toFixed(2)}`,
    `${date}${revision === null ? '' : `, revision ${revision}`}, target ${target}`,
    `durability: ${durability}`,
    '',
  ]
}

export function problems(result: BenchResult): string[] {
  const found = result.cases.flatMap((one) =>
    one.runs.flatMap((run) =>
      run.problems.map(
        (problem) => `PROBLEM: ${one.name} @${one.connections}, round ${run.round}: ${problem}`,
      ),
    ),
  )
  return found.length === 0 ? [] : ['', ...found]
}

function rateSpread(one: CaseResult): string {
  const rate = spread(one.runs.map((run) => run.rate))
  return rate === null ? '-' : `${rate.min.toFixed(0)}-${rate.max.toFixed(0)}`
}

function seconds(value: number | null): number | null {
  return value === null ? null : value / 1000
}
