// A line chart as inline SVG: no script, no outside resource, colours by the page's style sheet.

export interface Series {
  readonly name: string
  readonly points: readonly (readonly [x: number, y: number])[]
}

export interface ChartOptions {
  readonly title: string
  readonly xTitle: string
  readonly yTitle: string
  readonly series: readonly Series[]
  /** Logarithmic axes: for concurrencies, and for latencies that differ by magnitudes. */
  readonly logX?: boolean
  readonly logY?: boolean
}

const WIDTH = 520
const HEIGHT = 260
const LEFT = 64
const RIGHT = 12
const TOP = 30
const BOTTOM = 40
/** Colours in the style sheet: c0 to c7. */
const COLOURS = 8

interface Scale {
  readonly place: (value: number) => number
  readonly ticks: readonly number[]
}

export function lineChart(options: ChartOptions): string {
  const series = options.series.filter((one) => one.points.length > 0)
  const points = series.flatMap((one) => one.points)
  if (points.length === 0) return ''
  const xs = points.map(([x]) => x)
  const ys = points.map(([, y]) => y)
  const x = options.logX
    ? logScale(xs, LEFT, WIDTH - RIGHT, [...new Set(xs)])
    : linearScale(xs, LEFT, WIDTH - RIGHT)
  const y = options.logY
    ? logScale(ys, HEIGHT - BOTTOM, TOP)
    : linearScale(ys, HEIGHT - BOTTOM, TOP)
  return [
    `<figure><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escape(options.title)}">`,
    `<text class="title" x="${LEFT}" y="16">${escape(options.title)}</text>`,
    ...y.ticks.map((tick) => yTick(tick, y.place(tick))),
    ...x.ticks.map((tick) => xTick(tick, x.place(tick))),
    `<text x="${WIDTH - RIGHT}" y="${HEIGHT - 6}" class="end">${escape(options.xTitle)}</text>`,
    `<text x="4" y="${TOP - 8}">${escape(options.yTitle)}</text>`,
    ...series.map((one, i) => line(one, i, x, y)),
    '</svg>',
    `<figcaption>${series.map((one, i) => legend(one.name, i)).join(' ')}</figcaption></figure>`,
  ].join('\n')
}

function line(one: Series, i: number, x: Scale, y: Scale): string {
  const places = one.points.map(([px, py]) => [x.place(px), y.place(py)] as const)
  const path = places.map(([px, py]) => `${px.toFixed(1)},${py.toFixed(1)}`).join(' ')
  const dots = places
    .map(([px, py], n) => {
      const [vx, vy] = one.points[n]!
      const tip = `${escape(one.name)}: ${label(vx)}, ${label(vy)}`
      return `<circle cx="${px.toFixed(1)}" cy="${py.toFixed(1)}" r="2.5"><title>${tip}</title></circle>`
    })
    .join('')
  return `<g class="c${i % COLOURS}"><polyline points="${path}"/>${dots}</g>`
}

function legend(name: string, i: number): string {
  return `<span class="c${i % COLOURS}"><i></i>${escape(name)}</span>`
}

function yTick(value: number, at: number): string {
  const y = at.toFixed(1)
  return (
    `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y}" y2="${y}"/>` +
    `<text class="end" x="${LEFT - 6}" y="${(at + 4).toFixed(1)}">${label(value)}</text>`
  )
}

function xTick(value: number, at: number): string {
  return `<text class="middle" x="${at.toFixed(1)}" y="${HEIGHT - BOTTOM + 16}">${label(value)}</text>`
}

/** From zero to a round number above the most. */
function linearScale(values: readonly number[], from: number, to: number): Scale {
  // Nothing at all still needs a scale.
  const most = Math.max(...values, 0) || 1
  const magnitude = 10 ** Math.floor(Math.log10(most))
  const step = [0.2, 0.5, 1, 2, 5].find((s) => most / (s * magnitude) <= 6)! * magnitude
  const top = Math.ceil(most / step) * step
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, i) => i * step)
  return { place: (value) => from + ((to - from) * value) / top, ticks }
}

function logScale(
  values: readonly number[],
  from: number,
  to: number,
  wanted?: readonly number[],
): Scale {
  const known = values.filter((value) => value > 0)
  const low = Math.log10(Math.min(...known, Number.MAX_VALUE))
  const high = Math.log10(Math.max(...known, Number.MIN_VALUE))
  const [bottom, top] = wanted === undefined ? [Math.floor(low), Math.ceil(high)] : [low, high]
  const span = Math.max(top - bottom, 1e-9)
  const ticks = wanted ?? Array.from({ length: Math.round(span) + 1 }, (_, i) => 10 ** (bottom + i))
  return {
    place: (value) =>
      span < 1e-6
        ? (from + to) / 2
        : from + ((to - from) * (Math.log10(Math.max(value, 10 ** bottom)) - bottom)) / span,
    ticks,
  }
}

function label(value: number): string {
  if (value >= 10_000) return `${+(value / 1000).toFixed(1)}k`
  return String(+value.toPrecision(3))
}

export function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
