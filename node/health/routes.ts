// What an operator asks a member: is it alive, is it ready, what are its numbers. It stands between
// the parts that know and a load balancer or Prometheus; none of it asks for a token.
// Source: CONTRACT 0 "Operations".

import type { Operation, OperationResponse } from '../http/operation.ts'
import type { Metrics } from '../metrics.ts'

/** One thing that must hold before this member serves; `reason` says why it doesn't. */
export interface Check {
  readonly name: string
  readonly ok: boolean
  readonly reason?: string
}

export function healthOperations(parts: {
  /** Asked at each GET /health/ready; must be cheap. */
  readonly checks: () => readonly Check[]
  readonly metrics: Metrics
}): Operation[] {
  return [
    {
      method: 'GET',
      path: '/health/live',
      summary: 'Whether the process runs',
      access: 'none',
      handle: () => ({ status: 200, body: { status: 'ok' } }),
    },
    {
      method: 'GET',
      path: '/health/ready',
      summary: 'Whether requests are answered; 503 with the reasons while they are not',
      access: 'none',
      handle: () => readiness(parts.checks()),
    },
    {
      method: 'GET',
      path: '/metrics',
      summary: 'Numbers in the text format of Prometheus',
      access: 'none',
      handle: () => ({
        status: 200,
        headers: { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
        raw: parts.metrics.text(),
      }),
    },
  ]
}

function readiness(checks: readonly Check[]): OperationResponse {
  const ok = checks.every((check) => check.ok)
  return { status: ok ? 200 : 503, body: { status: ok ? 'ok' : 'unavailable', checks } }
}
