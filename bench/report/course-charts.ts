// The course of a long load drawn over time.

import type { Course, Window } from '../course.ts'
import { DISK_KINDS } from '../target/disk-usage.ts'
import { lineChart, type Series } from './chart.ts'
import { bytesPerOrder } from './course.ts'

type Figure = (window: Window) => number | null

interface Drawn {
  readonly title: string
  readonly yTitle: string
  readonly lines: readonly (readonly [name: string, figure: Figure])[]
  readonly logY?: boolean
}

const millis =
  (figure: 'p50' | 'p99' | 'ownP50' | 'ownP99'): Figure =>
  (window) =>
    window[figure] === null ? null : window[figure] / 1000

const CHARTS: readonly Drawn[] = [
  {
    title: 'Orders a second',
    yTitle: 'a second',
    lines: [['rate', (window) => window.rate]],
  },
  {
    title: 'Latency',
    yTitle: 'ms',
    logY: true,
    lines: [
      ['p50', millis('p50')],
      ['p99', millis('p99')],
      ['p50 from leaving', millis('ownP50')],
      ['p99 from leaving', millis('ownP99')],
    ],
  },
  { title: 'CPU an order', yTitle: 'us', lines: [['cpu', (window) => window.cpu]] },
  {
    title: 'Entries a commit',
    yTitle: 'entries',
    lines: [['entries', (window) => window.entriesPerCommit]],
  },
  {
    title: 'Memory of its own',
    yTitle: 'MiB',
    lines: [['RssAnon', (window) => window.rssAnonMiB]],
  },
  {
    title: 'Disk an order',
    yTitle: 'bytes',
    lines: [
      ['all', (window) => bytesPerOrder(window)],
      ...DISK_KINDS.map((kind) => [kind, (window: Window) => bytesPerOrder(window, kind)] as const),
    ],
  },
  {
    title: 'Index behind',
    yTitle: 'seconds',
    lines: [['most in the window', (window) => window.lagSeconds]],
  },
  {
    title: 'Index behind',
    yTitle: 'entries',
    lines: [['most in the window', (window) => window.lagEntries]],
  },
]

export function courseCharts({ windows, tenths }: Course): readonly string[] {
  const overTime = CHARTS.map(({ lines, ...about }) =>
    lineChart({ ...about, xTitle: 'seconds', series: lines.map((line) => series(windows, line)) }),
  )
  if (tenths === undefined) return overTime
  const points = tenths.map((rate, i) => [i + 1, rate] as const)
  const titles = { title: 'Rate by tenths', xTitle: 'tenth', yTitle: 'a second' }
  return [...overTime, lineChart({ ...titles, series: [{ name: 'rate', points }] })]
}

function series(windows: readonly Window[], [name, figure]: readonly [string, Figure]): Series {
  const points = windows.flatMap((window) => {
    const value = figure(window)
    return value === null ? [] : [[window.atSeconds, value] as const]
  })
  return { name, points }
}
