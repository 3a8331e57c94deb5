// What the user sees: a progress line while the run goes on, the summary at its end.

import { formatPennies } from './online-retail/amount.ts'
import type { Progress, RunResult } from './run.ts'

const WIDTH = 11
const DIFFERENCES_SHOWN = 20

export function progressLine({ share, rowsRead, tally, elapsedMs }: Progress): string {
  return (
    `${String(Math.floor(share * 100)).padStart(3)} % read, ${count(rowsRead)} rows, ` +
    `${count(tally.orders)} orders in, ${count(tally.rowsRejected)} rows rejected, ` +
    `${count(tally.rowsFailed)} failed, ${count(perMinute(tally.rowsSettled, elapsedMs))} rows/min`
  )
}

export function summaryText(result: RunResult, dryRun: boolean): string {
  const { tally, rowsRead, elapsedMs } = result
  const line = (name: string, n: number, more: string): string =>
    `${name.padEnd(9)}${count(n).padStart(WIDTH)}${more === '' ? '' : `  ${more}`}`
  const origin = dryRun
    ? 'nothing was posted'
    : `${count(tally.ordersCreated)} created, ${count(tally.ordersRepeated)} there before`
  const lines = [
    line('rows', rowsRead, ''),
    line(
      dryRun ? 'readable' : 'accepted',
      tally.rowsAccepted,
      `in ${count(tally.orders)} orders (${origin})`,
    ),
    line('rejected', tally.rowsRejected, list(tally.rejectedBy)),
    line('failed', tally.rowsFailed, failures(result)),
    `total    ${formatPennies(tally.penniesAccepted).padStart(WIDTH)}  GBP in accepted orders`,
    `time     ${(elapsedMs / 1000).toFixed(2).padStart(WIDTH)}  s, ` +
      `${count(perMinute(rowsRead, elapsedMs))} rows a minute`,
  ]
  if (tally.ordersMixed > 0) {
    lines.push(
      `note: ${count(tally.ordersMixed)} invoices have rows of different dates, customers or ` +
        'countries; the first row counts',
    )
  }
  if (result.rejectsFile !== null) lines.push(`rejected and failed rows: ${result.rejectsFile}`)
  lines.push(...graphLines(result))
  if (result.stopped !== null) lines.push(`STOPPED: ${result.stopped}`)
  return `${lines.join('\n')}\n`
}

function graphLines({ graph, tally }: RunResult): string[] {
  if (graph === null) return []
  const lines = [
    `graph: ${count(graph.found)} of ${count(tally.accepted.length)} orders are in with the ` +
      `file's totals, ${(graph.elapsedMs / 1000).toFixed(2)} s after the last answer`,
  ]
  for (const { order, problem } of graph.differing.slice(0, DIFFERENCES_SHOWN)) {
    lines.push(`graph: order ${order.orderNumber} ${problem}`)
  }
  return lines
}

function failures({ tally }: RunResult): string {
  return tally.ordersFailed === 0
    ? ''
    : `in ${count(tally.ordersFailed)} orders (${list(tally.failedBy)})`
}

function list(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([name, n]) => `${name} ${count(n)}`).join(', ')
}

/** The summary for programs. */
export function summaryJson(result: RunResult): string {
  const { tally, rowsRead, elapsedMs, graph } = result
  return `${JSON.stringify({
    rowsRead,
    rowsAccepted: tally.rowsAccepted,
    rowsRejected: tally.rowsRejected,
    rowsFailed: tally.rowsFailed,
    rejectedBy: Object.fromEntries(tally.rejectedBy),
    failedBy: Object.fromEntries(tally.failedBy),
    ordersCreated: tally.ordersCreated,
    ordersRepeated: tally.ordersRepeated,
    ordersFailed: tally.ordersFailed,
    ordersMixed: tally.ordersMixed,
    total: formatPennies(tally.penniesAccepted),
    elapsedMs: Math.round(elapsedMs),
    rowsPerMinute: perMinute(rowsRead, elapsedMs),
    graph: graph && {
      found: graph.found,
      differing: graph.differing.map(({ order, problem }) => `${order.orderNumber} ${problem}`),
      elapsedMs: Math.round(graph.elapsedMs),
    },
    rejectsFile: result.rejectsFile,
    stopped: result.stopped,
  })}\n`
}

function perMinute(rows: number, elapsedMs: number): number {
  return Math.round((rows * 60_000) / Math.max(elapsedMs, 1))
}

function count(n: number): string {
  return n.toLocaleString('en-US')
}
