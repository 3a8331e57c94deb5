// The cluster scenarios of `npm run bench` as a whole: engines, quotas, the scenario, its table,
// and whether all was as it must be.

import { writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { ENGINE_NAMES, ClusterEngines } from './engines.ts'
import { handoffs, handoffsText, takeovers } from './moves.ts'
import { CLUSTER_USAGE, parseClusterOptions } from './options.ts'
import type { ClusterBenchOptions, ClusterScenario } from './options.ts'
import { openQuotas } from './quota.ts'
import { IDLE_MIN, scaleOut } from './scale-out.ts'
import type { ScaleOutRun } from './scale-out.ts'
import { clusterSoak, clusterSoakText } from './soak.ts'

/** Exit code: 0, 1 when a request failed or a run doesn't count, 2 for wrong arguments. */
export async function clusterBench(
  scenario: ClusterScenario,
  args: readonly string[],
): Promise<number> {
  const options = parseClusterOptions(scenario, args)
  if ('problems' in options) {
    process.stderr.write(`${options.problems.join('\n')}\n\n${CLUSTER_USAGE}`)
    return 2
  }
  const engines = await ClusterEngines.start()
  try {
    const tell = (line: string): void => void process.stderr.write(`${line}\n`)
    const { figures, ok, text } = await play(options, engines, tell)
    process.stdout.write(text)
    if (options.out !== null) {
      const { model } = cpus()[0] ?? { model: 'unknown' }
      const machine = { cpu: model, cores: cpus().length }
      writeFileSync(
        options.out,
        `${JSON.stringify({ scenario, machine, options, figures }, null, 1)}\n`,
      )
    }
    return ok ? 0 : 1
  } finally {
    await engines.stop()
  }
}

interface Outcome {
  readonly figures: unknown
  readonly ok: boolean
  readonly text: string
}

async function play(
  options: ClusterBenchOptions,
  engines: ClusterEngines,
  tell: (line: string) => void,
): Promise<Outcome> {
  const { scenario, shards, runs: rounds, rate, minutes, warmUpSeconds } = options
  if (scenario === 'handoff') {
    const figures = await handoffs({ engines, shards, rounds, rate, warmUpSeconds, tell })
    const text = handoffsText(figures)
    return { figures, ok: figures.every(({ failed }) => failed === 0), text }
  }
  if (scenario === 'takeover') {
    const figures = await takeovers({ engines, shards, rounds, rate, tell })
    return { figures, ok: true, text: '' }
  }
  if (scenario === 'cluster-soak') {
    const figures = await clusterSoak({ engines, shards, rate, minutes, warmUpSeconds })
    const { acknowledged, inGraph, failures } = figures
    const ok = inGraph === acknowledged && Object.keys(failures).length === 0
    return { figures, ok, text: clusterSoakText(figures) }
  }
  const quotas = openQuotas(`kontor-bench-${process.pid}`)
  try {
    const { quota, runs } = await scaleOut({ ...options, engines, quotas, tell })
    const isGood = quota !== null && runs.every(({ counts, failed }) => counts && failed === 0)
    return { figures: { quota, runs }, ok: isGood, text: scaleOutTable(quota, runs) }
  } finally {
    quotas.close()
  }
}

type Column = readonly [title: string, cell: (run: ScaleOutRun, first: ScaleOutRun) => string]

const COLUMNS: readonly Column[] = [
  ['members', (run) => String(run.members)],
  ['orders/s', (run) => run.rate.toFixed(0)],
  ['x 1st', (run, first) => (run.rate / first.rate).toFixed(2)],
  ['cpu us', (run) => run.cpuUs.toFixed(0)],
  ['x 1st', (run, first) => (run.cpuUs / first.cpuUs).toFixed(2)],
  ['in time us', (run) => run.cpuInTimeUs.toFixed(0)],
  ['envelopes', (run) => run.envelopes?.toFixed(2) ?? '-'],
  ['per commit', (run) => run.entriesPerCommit?.toFixed(1) ?? '-'],
  ['p50 ms', (run) => run.p50Ms.toFixed(1)],
  ['p99 ms', (run) => run.p99Ms.toFixed(1)],
  ...ENGINE_NAMES.map((name): Column => [`${name} cpu`, (run) => run.engines[name].toFixed(2)]),
  ['gen cpu', (run) => run.generator.toFixed(2)],
  ['idle %', (run) => (run.idle * 100).toFixed(0)],
  ['catch-up s', (run) => run.catchUpSeconds.toFixed(1)],
  ['failed', (run) => String(run.failed)],
  ['counts', (run) => (run.counts ? 'yes' : 'NO')],
]

function scaleOutTable(quota: number | null, runs: readonly ScaleOutRun[]): string {
  const [first] = runs
  if (first === undefined) {
    return `at none of the shares the machine stays ${IDLE_MIN * 100} % idle: no figures\n`
  }
  const rows = [COLUMNS.map(([title]) => title)]
  for (const one of runs) rows.push(COLUMNS.map(([, cell]) => cell(one, first)))
  const widths = COLUMNS.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)))
  const lines = rows.map((row) => row.map((cell, i) => cell.padStart(widths[i]!)).join('  '))
  return `each member has ${quota} CPUs; engines and load generator are outside\n${lines.join('\n')}\n`
}
