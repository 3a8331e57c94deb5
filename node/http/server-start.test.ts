// How a server begins: addresses that it can't have, and what it answers while it is starting.

import t from 'tap'
import { createHttpServer } from './server.ts'
import { authenticate, errorOf, operation, request, startServer } from './testing/test-server.ts'
import { operations } from './testing/sample-operations.ts'

t.test('addresses that can not be had', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  await t.rejects(startServer(operations, { settings: { port: http.port } }), /can't listen/)
  await t.rejects(startServer(operations, { settings: { tlsKeyFile: '/k' } }), /both files/)
  const files = { tlsKeyFile: '/none/k.pem', tlsCertFile: '/none/c.pem' }
  await t.rejects(startServer(operations, { settings: files }), /ENOENT/)
  const clock = { nowMs: () => 0, monotonicMs: () => 0 }
  const unused = createHttpServer({
    settings: {
      host: '127.0.0.1',
      port: 0,
      tlsKeyFile: null,
      tlsCertFile: null,
      connectionsMax: 1_000,
      proxyFrom: [],
    },
    operations: [],
    authenticate,
    log: { error() {}, warn() {}, info() {} },
    metrics: http.metrics,
    clock,
  })
  t.equal(unused.port, 0)
  await unused.close(0)
})

t.test('a server that is starting answers what it knows, and 503 to all else', async (t) => {
  const live = operation('GET', '/live', () => ({ status: 200, body: {} }))
  const later = operation('GET', '/later', () => ({ status: 200, body: {} }))
  const http = await startServer([live], { isStarting: true })
  t.teardown(http.stop)
  const c = http.client()
  const status = async (path: string): Promise<number> =>
    (await c.send(request(`GET ${path}`)).response()).status
  t.equal(await status('/live'), 200)
  for (const path of ['/later', '/nowhere', '/openapi.json']) {
    const answer = await c.send(request(`GET ${path}`)).response()
    t.equal(answer.status, 503, path)
    t.match(errorOf(answer), { code: 'UNAVAILABLE', message: /is starting; nothing was done/ })
    t.match(answer.headers['retry-after'], /^\d+$/)
  }
  http.server.serve([live, later])
  for (const path of ['/live', '/later', '/openapi.json']) t.equal(await status(path), 200, path)
  t.equal(await status('/nowhere'), 404)
})

t.test('a port that is taken is refused, not shared', async (t) => {
  const first = await startServer([])
  t.teardown(first.stop)
  await t.rejects(startServer([], { settings: { port: first.port } }), /taken/)
})
