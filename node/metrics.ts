// The numbers a member shows about itself: counters, gauges and histograms, cheap enough for the
// hot path (an increment is one addition), and their text for Prometheus. Format: Prometheus text
// exposition 0.0.4.

import { assert } from '../protocol/errors.ts'

export type Labels = Readonly<Record<string, string>>

/** One number handed over at the time of a scrape by a part that counts for itself. */
export interface Sample {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  readonly labels?: Labels
  readonly value: number
}

export class Counter {
  value = 0
  add(by = 1): void {
    this.value += by
  }
}

export class Gauge {
  value = 0
  set(value: number): void {
    this.value = value
  }
}

/** Counts of observations by fixed upper bounds. */
export class Histogram {
  /** Ascending; the bucket above the last one is kept as well. */
  readonly bounds: readonly number[]
  readonly counts: Float64Array
  sum = 0

  constructor(bounds: readonly number[]) {
    assert(
      bounds.every((bound, i) => i === 0 || bound > bounds[i - 1]!),
      'histogram bounds ascend',
    )
    this.bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  observe(value: number): void {
    const bounds = this.bounds
    let i = 0
    while (i < bounds.length && value > bounds[i]!) i++
    this.counts[i]!++
    this.sum += value
  }
}

/** Upper bounds for durations of requests, in seconds. */
export const SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const

type Kind = 'counter' | 'gauge' | 'histogram'

interface Family {
  readonly kind: Kind
  readonly help: string
  readonly members: Map<string, Counter | Gauge | Histogram>
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/

/** The registry. The same name and labels give the same object; ask once and keep it. */
export class Metrics {
  private readonly families = new Map<string, Family>()
  private readonly sources: (() => Iterable<Sample>)[] = []

  counter(name: string, help: string, labels?: Labels): Counter {
    return this.member(name, { kind: 'counter', help }, labels, () => new Counter()) as Counter
  }

  gauge(name: string, help: string, labels?: Labels): Gauge {
    return this.member(name, { kind: 'gauge', help }, labels, () => new Gauge()) as Gauge
  }

  /** `describe.bounds` are the buckets' upper bounds, in the unit that the name ends with. */
  histogram(
    name: string,
    describe: { readonly help: string; readonly bounds: readonly number[] },
    labels?: Labels,
  ): Histogram {
    const make = (): Histogram => new Histogram(describe.bounds)
    return this.member(name, { kind: 'histogram', help: describe.help }, labels, make) as Histogram
  }

  /** Asks `source` at every scrape. */
  collect(source: () => Iterable<Sample>): void {
    this.sources.push(source)
  }

  /**
   * The page of GET /metrics, or of those with these names alone. A source that throws costs its
   * own samples only.
   */
  text(only?: ReadonlySet<string>): string {
    const sections = new Map<string, string[]>()
    for (const [name, family] of this.families) {
      if (only?.has(name) === false) continue
      const lines = section(sections, name, family)
      for (const [labels, member] of family.members)
        lines.push(...memberLines(name, labels, member))
    }
    for (const source of this.sources) {
      for (const sample of samplesOf(source)) {
        if (only?.has(sample.name) === false) continue
        const lines = section(sections, sample.name, { kind: sample.type, help: sample.help })
        lines.push(line(sample.name, labelText(sample.labels), sample.value))
      }
    }
    return [...sections.values()].flat().join('')
  }

  private member(
    name: string,
    describe: { readonly kind: Kind; readonly help: string },
    labels: Labels | undefined,
    make: () => Counter | Gauge | Histogram,
  ): Counter | Gauge | Histogram {
    assert(NAME.test(name), `${name} is not a metric's name`)
    let family = this.families.get(name)
    if (family === undefined) {
      family = { ...describe, members: new Map() }
      this.families.set(name, family)
    }
    assert(family.kind === describe.kind, `${name} is a ${family.kind} already`)
    const key = labelText(labels)
    let member = family.members.get(key)
    if (member === undefined) {
      member = make()
      family.members.set(key, member)
    }
    return member
  }
}

function samplesOf(source: () => Iterable<Sample>): Iterable<Sample> {
  try {
    return [...source()]
  } catch {
    return [
      {
        name: 'kontor_metrics_sources_failed',
        help: 'Parts of this member that could not report their numbers.',
        type: 'gauge',
        value: 1,
      },
    ]
  }
}

function section(
  sections: Map<string, string[]>,
  name: string,
  family: { readonly kind: Kind; readonly help: string },
): string[] {
  let lines = sections.get(name)
  if (lines === undefined) {
    const help = family.help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
    lines = [`# HELP ${name} ${help}\n# TYPE ${name} ${family.kind}\n`]
    sections.set(name, lines)
  }
  return lines
}

function memberLines(name: string, labels: string, member: Counter | Gauge | Histogram): string[] {
  if (!(member instanceof Histogram)) return [line(name, labels, member.value)]
  const lines: string[] = []
  let total = 0
  for (let i = 0; i < member.counts.length; i++) {
    total += member.counts[i]!
    const le = `le="${i < member.bounds.length ? member.bounds[i] : '+Inf'}"`
    lines.push(line(`${name}_bucket`, labels === '' ? le : `${labels},${le}`, total))
  }
  lines.push(line(`${name}_sum`, labels, member.sum), line(`${name}_count`, labels, total))
  return lines
}

function line(name: string, labels: string, value: number): string {
  const shown = Number.isFinite(value) ? `${value}` : Number.isNaN(value) ? 'NaN' : infinity(value)
  return labels === '' ? `${name} ${shown}\n` : `${name}{${labels}} ${shown}\n`
}

function infinity(value: number): string {
  return value > 0 ? '+Inf' : '-Inf'
}

function labelText(labels: Labels | undefined): string {
  if (labels === undefined) return ''
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escapeLabel(value)}"`)
    .join(',')
}

function escapeLabel(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
