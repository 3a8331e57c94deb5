// Health and metrics over HTTP, as a load balancer and Prometheus see them.

import t from 'tap'
import { request, startServer } from '../http/testing/test-server.ts'
import { Metrics } from '../metrics.ts'
import { collectProcessMetrics } from './process-metrics.ts'
import { healthOperations } from './routes.ts'
import type { Check } from './routes.ts'

t.test('live, ready, metrics', async (t) => {
  const metrics = new Metrics()
  collectProcessMetrics(metrics)
  metrics.counter('things_total', 'Things.').add(3)
  let checks: Check[] = [{ name: 'index', ok: false, reason: 'it is being rebuilt' }]
  const http = await startServer(healthOperations({ checks: () => checks, metrics }))
  t.teardown(http.stop)
  const c = http.client()
  t.equal((await c.send(request('GET /health/live')).response()).status, 200)
  const not = await c.send(request('GET /health/ready')).response()
  t.equal(not.status, 503)
  t.equal(not.headers['retry-after'], '1')
  t.same(JSON.parse(not.body.toString()), { status: 'unavailable', checks })
  checks = [{ name: 'index', ok: true }]
  t.equal((await c.send(request('GET /health/ready')).response()).status, 200)
  const page = await c.send(request('GET /metrics')).response()
  t.equal(page.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  const text = page.body.toString()
  t.notMatch(text, 'things_total', 'nothing that is not for everybody')
  t.match(text, /\nprocess_cpu_seconds_total [0-9.]+\n/)
  t.match(text, /\nprocess_resident_memory_bytes [0-9]{7,}\n/)
  for (const line of text.trimEnd().split('\n')) {
    t.match(line, /^(# (HELP|TYPE) \S+ .+|[a-z0-9_]+(\{.*\})? [-+0-9.eNaInf]+)$/)
  }
})
