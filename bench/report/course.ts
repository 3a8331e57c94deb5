// The course of a long load in words and figures: a table of a few rows for the terminal, and the
// sentences that a change of the store is judged by.

import type { Course, Restart, SingleCaller, Window } from '../course.ts'
import { spread, type BenchResult, type CaseResult } from '../result.ts'
import { DISK_KINDS, type DiskKind } from '../target/disk-usage.ts'

/** Windows are put together so that a table has at most so many rows. */
const ROWS_MAX = 20
/** A window has held a rate when it made this much of it. */
const HELD = 0.98
const MINUTE_S = 60
/** A restart may show in its first seconds. */
const RESTART_S = 10

type Column = readonly [
  title: string,
  cell: (row: readonly Window[]) => number | null,
  digits: number,
]

const COLUMNS: readonly Column[] = [
  ['s', (row) => row.at(-1)!.atSeconds, 0],
  ['orders', (row) => row.at(-1)!.orders, 0],
  ['rate/s', meanRate, 0],
  ['least', (row) => least(row.map((window) => window.rate)), 0],
  ['p50 ms', (row) => millis(median(row, (window) => window.p50)), 1],
  ['p99 ms', (row) => millis(most(row, (window) => window.p99)), 1],
  ['own p50', (row) => millis(median(row, (window) => window.ownP50)), 1],
  ['cpu us', meanCpu, 0],
  ['per commit', (row) => median(row, (window) => window.entriesPerCommit), 1],
  ['anon', (row) => row.at(-1)!.rssAnonMiB, 0],
  ['lag', (row) => most(row, (window) => window.lagEntries), 0],
  ['lag s', (row) => most(row, (window) => window.lagSeconds), 2],
  ['B/order', (row) => bytesPerOrder(row.at(-1)!), 0],
  ...DISK_KINDS.map((kind): Column => [kind, (row) => bytesPerOrder(row.at(-1)!, kind), 0]),
  ['failed', (row) => row.reduce((n, window) => n + window.failed, 0), 0],
]

/** Every long load of the result: its rows and what is said of it. */
export function courses(result: BenchResult): readonly string[] {
  return result.cases.flatMap((one) =>
    one.runs.flatMap(({ course }) =>
      course === undefined
        ? []
        : ['', `${one.name}:`, ...courseTable(course), ...findings(one, course)],
    ),
  )
}

function courseTable({ windows }: Course): string[] {
  const together = Math.ceil(windows.length / ROWS_MAX)
  const rows = [COLUMNS.map(([title]) => title)]
  for (let i = 0; i < windows.length; i += together) {
    const row = windows.slice(i, i + together)
    rows.push(COLUMNS.map(([, cell, digits]) => cell(row)?.toFixed(digits) ?? '-'))
  }
  const widths = COLUMNS.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)))
  return rows.map((row) => row.map((cell, i) => cell.padStart(widths[i]!)).join('  '))
}

/** What can be said of a course as a whole, a sentence each. */
export function findings(
  { askedRate }: Pick<CaseResult, 'askedRate'>,
  { windows, tenths, single, restart }: Course,
): readonly string[] {
  if (windows.length === 0) return []
  return [
    ...(askedRate === null ? [] : [heldText(windows, askedRate)]),
    latencyText(windows),
    flatText(windows),
    ...(tenths === undefined ? [] : [tenthsText(tenths)]),
    ...(single === undefined ? [] : [singleText(single)]),
    ...(restart === null ? [] : restartText(restart, windows)),
  ]
}

function heldText(windows: readonly Window[], asked: number): string {
  const held = windows.filter(({ rate }) => rate >= asked * HELD).length
  const lost = windows.find(({ rate }) => rate < asked * HELD)
  const first = lost === undefined ? '' : `; the first that has not ends at ${at(lost)}`
  return `${held} of ${windows.length} windows held ${HELD * 100} % of ${asked}/s${first}`
}

function latencyText(windows: readonly Window[]): string {
  const p99 = spread(windows.map((window) => window.p99))
  const worst = windows.find((window) => window.p99 === p99?.max)
  if (p99 === null || worst === undefined) return 'nothing was answered'
  return (
    `p99 ${shown(millis(p99.median), 1)} ms in the median window, ` +
    `${shown(millis(p99.max), 1)} ms in the worst, which ends at ${at(worst)}`
  )
}

/** The end beside the second minute: what should be flat. */
function flatText(windows: readonly Window[]): string {
  const end = windows.at(-1)!.atSeconds
  const second = windows.filter(({ atSeconds }) => within(atSeconds, MINUTE_S, 2 * MINUTE_S))
  const last = windows.filter(({ atSeconds }) => within(atSeconds, end - MINUTE_S, end))
  const lag = most(windows, (window) => window.lagSeconds)
  const flat =
    end < 3 * MINUTE_S || second.length === 0
      ? ''
      : `last minute beside the second: CPU an order x ${ratio(meanCpu(last), meanCpu(second))}, ` +
        `RssAnon x ${ratio(most(last, anon), most(second, anon))}; `
  const bytes = shown(bytesPerOrder(windows.at(-1)!), 0)
  return `${flat}index at most ${shown(lag, 2)} s behind; ${bytes} bytes of disk an order`
}

function tenthsText(tenths: readonly number[]): string {
  const rates = tenths.map((rate) => rate.toFixed(0)).join(', ')
  const last =
    tenths.length < 3 ? '' : `; the last is ${ratio(tenths.at(-1)!, tenths[1]!)} of the second`
  return `orders/s by tenths: ${rates}${last}`
}

function singleText(single: readonly SingleCaller[]): string {
  const each = single.map(
    ({ orders, p50, p99 }) => `${shown(millis(p50), 2)} / ${shown(millis(p99), 2)} at ${orders}`,
  )
  return `a single caller, p50 / p99 ms: ${each.join(', ')} orders`
}

function restartText(restart: Restart, windows: readonly Window[]): string[] {
  const { ending, atSeconds, endedMs, readyMs, failed, graph } = restart
  const refused = Object.entries(failed).map(([what, times]) => `${times} x ${what}`)
  const backAt = atSeconds + (endedMs + readyMs) / 1000 + RESTART_S
  const after = windows.filter((window) => window.atSeconds - window.seconds >= backAt)
  return [
    `${ending} at ${atSeconds.toFixed(0)} s: gone in ${(endedMs / 1000).toFixed(2)} s, ready ` +
      `${(readyMs / 1000).toFixed(2)} s later; meanwhile failed: ${refused.join(', ') || 'nothing'}`,
    ...(after.length === 0
      ? []
      : [
          `from ${RESTART_S} s after that on: ${shown(least(after.map(({ rate }) => rate)), 0)}/s ` +
            `at least, p99 ${shown(millis(most(after, (window) => window.p99)), 1)} ms at most`,
        ]),
    ...(graph === null
      ? []
      : [
          `${graph.orders} of ${graph.expected} orders in the graph ` +
            `${(graph.ms / 1000).toFixed(2)} s after ready`,
        ]),
  ]
}

export function bytesPerOrder({ diskPerOrder }: Window, kind?: DiskKind): number | null {
  if (diskPerOrder === null) return null
  const kinds: readonly DiskKind[] = kind === undefined ? DISK_KINDS : [kind]
  return kinds.reduce((n, one) => n + diskPerOrder[one], 0)
}

const anon = (window: Window): number | null => window.rssAnonMiB
const orders = ({ rate, seconds }: Window): number => rate * seconds

function meanRate(row: readonly Window[]): number {
  const seconds = row.reduce((n, window) => n + window.seconds, 0)
  return row.reduce((n, window) => n + orders(window), 0) / seconds
}

/** Of the windows whose CPU is known, each counted with its orders. */
function meanCpu(row: readonly Window[]): number | null {
  const known = row.filter(({ cpu }) => cpu !== null)
  const count = known.reduce((n, window) => n + orders(window), 0)
  if (count === 0) return null
  return known.reduce((n, window) => n + window.cpu! * orders(window), 0) / count
}

function median(row: readonly Window[], figure: (window: Window) => number | null): number | null {
  return spread(row.map(figure))?.median ?? null
}

function most(row: readonly Window[], figure: (window: Window) => number | null): number | null {
  return spread(row.map(figure))?.max ?? null
}

function least(values: readonly number[]): number | null {
  return spread(values)?.min ?? null
}

function millis(us: number | null): number | null {
  return us === null ? null : us / 1000
}

function ratio(value: number | null, to: number | null): string {
  return value === null || to === null || to === 0 ? '-' : (value / to).toFixed(2)
}

function shown(value: number | null, digits: number): string {
  return value === null ? '-' : value.toFixed(digits)
}

function at({ atSeconds }: Window): string {
  return `${atSeconds.toFixed(0)} s`
}

function within(value: number, from: number, to: number): boolean {
  return value > from + 1 && value <= to + 1
}
