// The result as one self-contained page: figures as a table, and for each scenario its rate and
// latency over concurrency and over time. Nothing is loaded from anywhere.

import { spread, type BenchResult, type CaseResult, type RunFigures } from '../result.ts'
import { escape, lineChart, type Series } from './chart.ts'
import { courseCharts } from './course-charts.ts'
import { findings } from './course.ts'
import { problems, tableCells } from './table.ts'

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2024; --paper: #fff; --faint: #8a9099; --grid: #e4e7ea;
  --c0: #0b62d6; --c1: #c2410c; --c2: #15803d; --c3: #9333ea; --c4: #b91c5c; --c5: #0e7490;
  --c6: #a16207; --c7: #4b5563 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --paper: #14171a; --faint: #8a9099;
  --grid: #2a2f35; --c0: #6ea8fe; --c1: #fb923c; --c2: #4ade80; --c3: #c084fc; --c4: #f472b6;
  --c5: #22d3ee; --c6: #facc15; --c7: #9ca3af } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 0 auto; padding: 1.5rem; max-width: 1180px }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin: 2rem 0 .3rem }
p { margin: .2rem 0; color: var(--faint) } .problem { color: var(--c4) }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: .82rem }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid var(--grid);
  white-space: nowrap; font-variant-numeric: tabular-nums }
th:first-child, td:first-child { text-align: left } th { color: var(--faint); font-weight: 600 }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 1rem }
figure { margin: 0 } svg { width: 100%; height: auto } svg text { font-size: 11px; fill: var(--faint) }
svg .title { font-size: 13px; font-weight: 600; fill: var(--ink) } .end { text-anchor: end }
.middle { text-anchor: middle } .grid { stroke: var(--grid) }
polyline { fill: none; stroke: currentColor; stroke-width: 1.8 } circle { fill: currentColor }
figcaption { font-size: .8rem } figcaption span { margin-right: .8rem; white-space: nowrap }
figcaption i { display: inline-block; width: .8em; height: .8em; border-radius: 2px;
  background: currentColor; margin-right: .3em }
${Array.from({ length: 8 }, (_, i) => `.c${i} { color: var(--c${i}) }`).join(' ')}
`

export function resultPage(result: BenchResult): string {
  const { machine, nodeVersion, durability, date, revision, target } = result
  const names = [...new Set(scenarios(result).map((one) => one.name))]
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>Kontor bench ${escape(date)}</title><style>${STYLE}</style></head><body>`,
    '<h1>Kontor bench</h1>',
    `<p>${escape(date)}${revision === null ? '' : `, revision ${escape(revision)}`}, ` +
      `target ${escape(target)}</p>`,
    `<p>${escape(machine.hostname)}: ${machine.cores} x ${escape(machine.cpu)}, ` +
      `${machine.memoryMiB} MiB, ${escape(machine.system)}, Node ${escape(nodeVersion)}</p>`,
    `<p>Durability: ${escape(durability)}</p>`,
    ...problems(result)
      .filter((line) => line !== '')
      .map((line) => `<p class="problem">${escape(line)}</p>`),
    table(result),
    ...names.map((name) => section(result, name)),
    '</body></html>\n',
  ].join('\n')
}

function table(result: BenchResult): string {
  const [titles, ...rows] = tableCells(result)
  const row = (cells: readonly string[], tag: 'th' | 'td'): string =>
    `<tr>${cells.map((cell) => `<${tag}>${escape(cell)}</${tag}>`).join('')}</tr>`
  return (
    '<h2>Figures</h2><p>Medians of the runs; what each column means is in bench/README.md.</p>' +
    `<div class="scroll"><table><thead>${row(titles!, 'th')}</thead>` +
    `<tbody>${rows.map((cells) => row(cells, 'td')).join('')}</tbody></table></div>`
  )
}

function section(result: BenchResult, name: string): string {
  const cases = scenarios(result).filter((one) => one.name === name)
  const floors = result.cases.filter((one) => one.kind === 'floor')
  const watched = cases.flatMap((one) =>
    one.runs.flatMap(({ course }) => (course === undefined ? [] : [{ one, course }])),
  )
  if (watched.length > 0) {
    return watched
      .flatMap(({ one, course }) => [
        `<h2>${escape(name)}</h2>`,
        ...findings(one, course).map((text) => `<p>${escape(text)}</p>`),
        `<div class="charts">`,
        ...courseCharts(course),
        '</div>',
      ])
      .join('\n')
  }
  const most = cases.reduce((a, b) => (b.connections > a.connections ? b : a))
  const beside = cases[0]!.loop === 'closed' && floors.length > 0
  return [
    `<h2>${escape(name)}</h2><div class="charts">`,
    lineChart({
      title: 'Rate over concurrency',
      xTitle: 'connections',
      yTitle: 'a second',
      logX: true,
      series: [
        overConcurrency(name, cases, (run) => run.rate),
        ...(beside ? floorSeries(floors, cases) : []),
      ],
    }),
    lineChart({
      title: 'Latency over concurrency',
      xTitle: 'connections',
      yTitle: 'ms',
      logX: true,
      logY: true,
      series: [
        overConcurrency('p50', cases, (run) => run.p50 / 1000),
        overConcurrency('p99', cases, (run) => run.p99 / 1000),
        overConcurrency('p99.9', cases, (run) => run.p999 / 1000),
      ],
    }),
    lineChart({
      title: `Rate over time, ${most.connections} connections`,
      xTitle: 'seconds',
      yTitle: 'a second',
      series: overTime(most, (slice) => slice.rate),
    }),
    lineChart({
      title: `p99 over time, ${most.connections} connections`,
      xTitle: 'seconds',
      yTitle: 'ms',
      series: overTime(most, (slice) => slice.p99Us / 1000),
    }),
    '</div>',
  ].join('\n')
}

function scenarios(result: BenchResult): CaseResult[] {
  return result.cases.filter((one) => one.kind === 'scenario')
}

function overConcurrency(
  name: string,
  cases: readonly CaseResult[],
  figure: (run: RunFigures) => number,
): Series {
  return {
    name,
    points: [...cases]
      .sort((a, b) => a.connections - b.connections)
      .map((one) => [one.connections, spread(one.runs.map(figure))?.median ?? 0]),
  }
}

/** Floors at the concurrencies of the scenario. */
function floorSeries(floors: readonly CaseResult[], cases: readonly CaseResult[]): Series[] {
  const at = new Set(cases.map((one) => one.connections))
  const names = [...new Set(floors.map((one) => one.name))]
  return names.map((name) =>
    overConcurrency(
      name,
      floors.filter((one) => one.name === name && at.has(one.connections)),
      (run) => run.rate,
    ),
  )
}

function overTime(
  one: CaseResult,
  figure: (slice: RunFigures['slices'][number]) => number,
): Series[] {
  return one.runs.map((run) => ({
    name: `run ${run.round}`,
    points: run.slices.map((slice) => [slice.atMs / 1000, figure(slice)]),
  }))
}
