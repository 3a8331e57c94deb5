// What an operator asks a member: is it alive, is it ready, what are its numbers. None of it asks
// for a token, but with one metrics show more. Source: CONTRACT 0 "Operations".

import { lacking } from '../../protocol/errors.ts'
import type { Operation, OperationResponse } from '../http/operation.ts'
import type { Metrics } from '../metrics.ts'
import { PUBLIC_METRICS } from './public-metrics.ts'

/** One thing that must hold before this member serves; `reason` says why it doesn't. */
export interface Check {
  readonly name: string
  readonly ok: boolean
  readonly reason?: string
}

export interface HealthParts {
  /** Asked at each GET /health/ready; must be cheap. */
  readonly checks: () => readonly Check[]
  readonly metrics: Metrics
}

/** Health, and the metrics on the port of everything else. */
export function healthOperations(parts: HealthParts): Operation[] {
  return [...stateOperations(parts.checks), metricsOperation(parts.metrics)]
}

/** Health alone. */
export function stateOperations(checks: HealthParts['checks']): Operation[] {
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
      handle: () => readiness(checks()),
    },
  ]
}

/** The numbers, where callers come: how much was done is for those who may see the cluster. */
function metricsOperation(metrics: Metrics): Operation {
  return {
    method: 'GET',
    path: '/metrics',
    summary: 'Numbers in the text format of Prometheus; all of them with the ACE cluster:read',
    access: 'either',
    permissions: ['cluster:read'],
    handle(request) {
      if (!request.isKnown) return page(metrics.text(PUBLIC_METRICS))
      if (request.identity.acl.covers('cluster', 'read')) return page(metrics.text())
      throw lacking('cluster:read', ', or no token')
    },
  }
}

/** The numbers on a port of their own: who may reach it may read them. */
export function allMetricsOperation(metrics: Metrics): Operation {
  return {
    method: 'GET',
    path: '/metrics',
    summary: 'Numbers in the text format of Prometheus',
    access: 'none',
    handle: () => page(metrics.text()),
  }
}

function page(text: string): OperationResponse {
  const headers = { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' }
  return { status: 200, headers, raw: text }
}

function readiness(checks: readonly Check[]): OperationResponse {
  const ok = checks.every((check) => check.ok)
  return { status: ok ? 200 : 503, body: { status: ok ? 'ok' : 'unavailable', checks } }
}
