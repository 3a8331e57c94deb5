// What a run says of itself: how many operations were ok, failed and unknown, errors by second, and
// latencies. Source: PROTOCOL 4.1 (K10).

import type { OperationHistory, Operation } from './operation-history.ts'
import { quantile } from './probes.ts'

export function reportOf(history: OperationHistory): string[] {
  const { operations } = history
  const attempts = operations.flatMap((operation) => operation.attempts)
  const took = attempts.filter(({ outcome }) => outcome === 'ok').map(({ tookMs }) => tookMs)
  const seconds = Math.max(1, ...operations.map(({ invokedAt }) => invokedAt / 1_000))
  return [
    `operations: ${countsOf(operations)}; ${Math.round(operations.length / seconds)} a second`,
    ...kindsOf(operations).map(([op, of]) => `  ${op.padEnd(10)} ${countsOf(of)}`),
    `attempts: ${attempts.length}, p50 ${quantile(took, 0.5)} ms, p99 ${quantile(took, 0.99)} ms, ` +
      `longest ${quantile(took, 1)} ms`,
    ...errorsOf(history),
  ]
}

function countsOf(operations: readonly Operation[]): string {
  const count = (outcome: string): number =>
    operations.filter((operation) => operation.outcome === outcome).length
  const rejected = operations.filter((operation) => operation.rejected).length
  return `${count('ok')} ok (${rejected} of them rejected), ${count('fail')} failed, ${count('info')} unknown`
}

function kindsOf(operations: readonly Operation[]): [string, Operation[]][] {
  return [...Map.groupBy(operations, ({ op }) => op)].toSorted((a, b) => b[1].length - a[1].length)
}

/** Attempts that were not answered, by second and how. */
function errorsOf({ operations }: OperationHistory): string[] {
  const bad = operations
    .flatMap(({ attempts }) => attempts)
    .filter(({ outcome }) => outcome !== 'ok')
  const seconds = Map.groupBy(bad, ({ sentAt }) => Math.floor(sentAt / 1_000))
  return [...seconds]
    .toSorted(([a], [b]) => a - b)
    .map(([second, attempts]) => {
      const hows = Map.groupBy(attempts, ({ member, how }) => `${how} of ${member}`)
      const text = [...hows].map(([how, { length }]) => `${length} x ${how}`)
      return `  second ${second}: ${text.join(', ')}`
    })
}
