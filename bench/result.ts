// The result of a bench as its JSON file keeps it, and what is made of several runs: medians and
// spreads.

import type { Course } from './course.ts'
import type { Slice } from './load/recorder.ts'
import type { FloorName } from './target/floor.ts'

export const RESULT_FORMAT = 1

export interface BenchResult {
  readonly format: typeof RESULT_FORMAT
  readonly date: string
  readonly machine: Machine
  readonly nodeVersion: string
  /** Commit of the project, when it can be told. */
  readonly revision: string | null
  /** What an acknowledged write means in these figures. */
  readonly durability: string
  /** Address of the installation, or `own`: nodes started by the bench. */
  readonly target: string
  readonly settings: Readonly<Record<string, unknown>>
  readonly cases: readonly CaseResult[]
}

export interface Machine {
  readonly hostname: string
  readonly cpu: string
  readonly cores: number
  readonly memoryMiB: number
  readonly system: string
  /** Load average of one minute when the bench began: other work on the machine. */
  readonly loadBefore: number
}

/** One scenario, or floor, at one concurrency. */
export interface CaseResult {
  readonly name: string
  readonly kind: 'floor' | 'scenario'
  readonly connections: number
  readonly loop: 'closed' | 'open' | 'bulk'
  /** Requests (bulk: lines) a second asked for by an open loop. */
  readonly askedRate: number | null
  readonly runs: readonly RunFigures[]
  /** Median and extremes of the runs' figures. */
  readonly spreads: Readonly<Partial<Record<SpreadFigure, Spread | null>>>
}

const SPREAD_FIGURES = [
  'rate',
  'p50',
  'p99',
  'p999',
  'cpu',
  'cpuAll',
  'generatorCpu',
  'rssMiB',
  'rssAnonMiB',
  'lagEntries',
  'catchUpMs',
  'entriesPerCommit',
] as const

type SpreadFigure = (typeof SPREAD_FIGURES)[number]

/** One run. A figure that could not be read is null; microseconds unless its name says else. */
export interface RunFigures {
  readonly round: number
  readonly rate: number
  readonly count: number
  readonly failed: number
  readonly p50: number
  readonly p99: number
  readonly p999: number
  readonly max: number
  /** Server CPU an answer, in the measured time. */
  readonly cpu: number | null
  /** The same, and all that the server did until the index had everything. */
  readonly cpuAll: number | null
  /** CPU of the load generator an answer. */
  readonly generatorCpu: number
  readonly rssMiB: number | null
  readonly rssAnonMiB: number | null
  /** Entries that the index had not, at the end of the load. */
  readonly lagEntries: number | null
  /** From the end of the load until the index had everything. */
  readonly catchUpMs: number | null
  readonly entriesPerCommit: number | null
  /** Rate and CPU as a multiple of each floor's, in the same round. */
  readonly floors: Partial<
    Record<FloorName, { readonly rate: number; readonly cpu: number | null }>
  >
  readonly slices: readonly Slice[]
  /** Of a long load, which has no slices. */
  readonly course?: Course
  /** What was not as it must be; empty in a good run. */
  readonly problems: readonly string[]
}

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

/** Median, least and most of the values that are there; null without any. */
export function spread(values: readonly (number | null | undefined)[]): Spread | null {
  const known = values.filter((value) => value !== null && value !== undefined)
  if (known.length === 0) return null
  const sorted = [...known].sort((a, b) => a - b)
  const middle = sorted.length / 2
  const median =
    sorted.length % 2 === 1
      ? sorted[Math.floor(middle)]!
      : (sorted[middle - 1]! + sorted[middle]!) / 2
  return { median, min: sorted[0]!, max: sorted.at(-1)! }
}

export function spreadsOf(runs: readonly RunFigures[]): CaseResult['spreads'] {
  return Object.fromEntries(
    SPREAD_FIGURES.map((figure) => [figure, spread(runs.map((run) => run[figure]))]),
  )
}

export function caseKey(one: Pick<CaseResult, 'name' | 'connections' | 'askedRate'>): string {
  return `${one.name} @${one.connections}${one.askedRate === null ? '' : ` ${one.askedRate}/s`}`
}
