// Two results beside each other: which medians moved, by how much, and whether that is more than
// the spread of the runs. For a reader who changed something.

import { caseKey, spread, type BenchResult, type CaseResult, type RunFigures } from '../result.ts'

/** What is compared, and which way is better. */
const FIGURES: readonly (readonly [
  name: string,
  better: 'more' | 'less',
  figure: (run: RunFigures) => number | null | undefined,
])[] = [
  ['rate/s', 'more', (run) => run.rate],
  ['rate x http floor', 'more', (run) => run.floors.http?.rate],
  ['rate x lmdb floor', 'more', (run) => run.floors.lmdb?.rate],
  ['cpu us', 'less', (run) => run.cpu],
  ['cpu with index us', 'less', (run) => run.cpuAll],
  ['p50 us', 'less', (run) => run.p50],
  ['p99 us', 'less', (run) => run.p99],
  ['p99.9 us', 'less', (run) => run.p999],
  ['anon MiB', 'less', (run) => run.rssAnonMiB],
  ['catch-up ms', 'less', (run) => run.catchUpMs],
]

export type Verdict = 'better' | 'worse' | 'within the spread' | 'one run only'

export interface Change {
  readonly key: string
  readonly figure: string
  readonly before: number
  readonly after: number
  /** Part of `before`: 0.1 is 10 % more. */
  readonly change: number
  readonly verdict: Verdict
}

export function compareResults(a: BenchResult, b: BenchResult): readonly Change[] {
  const before = new Map(a.cases.map((one) => [caseKey(one), one]))
  return b.cases.flatMap((one) => {
    const other = before.get(caseKey(one))
    return other === undefined ? [] : compareCase(other, one)
  })
}

function compareCase(a: CaseResult, b: CaseResult): Change[] {
  const changes: Change[] = []
  for (const [figure, better, of] of FIGURES) {
    const x = spread(a.runs.map(of))
    const y = spread(b.runs.map(of))
    if (x === null || y === null || x.median === 0) continue
    const change = y.median / x.median - 1
    const apart = y.min > x.max || y.max < x.min
    const improved = better === 'more' ? change > 0 : change < 0
    const verdict: Verdict =
      a.runs.length === 1 || b.runs.length === 1
        ? 'one run only'
        : apart
          ? improved
            ? 'better'
            : 'worse'
          : 'within the spread'
    changes.push({ key: caseKey(b), figure, before: x.median, after: y.median, change, verdict })
  }
  return changes
}

export function comparisonText(a: BenchResult, b: BenchResult): string {
  const lines = [
    `before: ${a.date} ${a.machine.hostname} ${a.revision ?? ''}`,
    `after:  ${b.date} ${b.machine.hostname} ${b.revision ?? ''}`,
  ]
  if (a.machine.hostname !== b.machine.hostname || a.machine.cpu !== b.machine.cpu) {
    lines.push('Different machines: only the ratios to the floors can be compared.')
  }
  let key = ''
  for (const change of compareResults(a, b)) {
    if (change.key !== key) lines.push('', (key = change.key))
    const percent = `${change.change >= 0 ? '+' : ''}${(change.change * 100).toFixed(1)} %`
    lines.push(
      `  ${change.figure.padEnd(18)} ${number(change.before).padStart(10)} -> ` +
        `${number(change.after).padStart(10)}  ${percent.padStart(9)}  ${change.verdict}`,
    )
  }
  lines.push(...onlyIn(a, b, 'before'), ...onlyIn(b, a, 'after'))
  return `${lines.join('\n')}\n`
}

function onlyIn(one: BenchResult, other: BenchResult, when: string): string[] {
  const keys = new Set(other.cases.map(caseKey))
  return one.cases
    .map(caseKey)
    .filter((key) => !keys.has(key))
    .map((key) => `\n${key}: only ${when}`)
}

function number(n: number): string {
  return n >= 100 ? n.toFixed(0) : n.toFixed(2)
}
