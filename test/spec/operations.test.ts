// How a node is run, over HTTP on a real process: health, metrics, its own description, answers as
// HTTP wants them, settings that are wrong. Source: CONTRACT 0 "Operations", "Settings".

import t from 'tap'
import { spawnSync } from 'node:child_process'
import { gunzipSync } from 'node:zlib'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describedOperations } from '../../tools/generate/contract.ts'
import { BODIES } from '../../commerce/order/messages/check.ts'
import { COMMANDS } from '../../commerce/order/command-table.ts'
import { RawClient } from '../../node/http/testing/raw-client.ts'
import { onCluster } from '../harness/driver.ts'
import { MAIN, startNode } from '../harness/node-process.ts'
import { apply, smallOrder } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'
// The OpenAPI Initiative's own schema of documents of version 3.1 (https://spec.openapis.org/oas).
import OFFICIAL from './openapi-3.1.schema.json' with { type: 'json' }

const node = await startNode(t)

t.test('health', async (t) => {
  const live = await node.send('/health/live')
  t.strictSame([live.status, live.json()], [200, { status: 'ok' }])
  const ready = await node.send('/health/ready')
  t.equal(ready.status, 200)
  t.match(ready.json(), {
    status: 'ok',
    checks: (onCluster
      ? ['member', 'shards', 'configuration', 'wire', 'graph', 'log', 'progress', 'sample']
      : ['shards', 'graph', 'progress', 'sample']
    ).map((name) => ({ name, ok: true })),
  })
})

t.test('the front page: for a browser, and for a program', async (t) => {
  const index = (await node.send('/')).json<{ links: Record<string, string> }>()
  t.match(index, { name: 'Kontor', version: /^\d/, ready: true, orders: Number })
  for (const name of ['openapi', 'ready', 'live', 'metrics']) {
    t.equal((await node.send(index.links[name]!)).status, 200, name)
  }
  const page = await node.send('/', { headers: { Accept: 'text/html' } })
  t.equal(page.headers['content-type'], 'text/html; charset=utf-8')
  t.match(page.text, `:${node.port}/`, 'the request to paste goes to this node')
  const proxied = await node.send('/', { headers: { Via: '1.1 proxy' } })
  t.notOk('orders' in proxied.json(), 'a stranger is not told how many orders there are')
})

t.test('the state of the cluster; embedded, its one member', async (t) => {
  const names = onCluster ? ['asked', 'peer'] : ['local']
  await smallOrder(node)
  const answer = await node.ask('/resources/cluster')
  t.equal(answer.status, 200)
  const { members, shards, moves } = answer.json<{
    members: Record<string, unknown>[]
    shards: { shard: number; owner: string; epoch: number; head: number; state: string }[]
    moves: unknown[]
  }>()
  const version = /^\d+\.\d+\.\d+$/
  t.match(
    members.toSorted((a, b) => (String(a['memberId']) < String(b['memberId']) ? -1 : 1)),
    names.map((memberId) => ({ memberId, state: 'up', version })),
  )
  t.match(members[0]!['incarnation'], /^[0-9a-f-]{36}$/)
  t.strictSame(
    shards.map(({ shard }) => shard),
    [-1, ...Array(onCluster ? 8 : 32).keys()],
  )
  for (const { owner, state } of shards) {
    t.ok(names.includes(owner), owner)
    t.equal(state, 'serving')
  }
  // What the members say is a moment old.
  await until('the order is in a shard', async () => {
    const { shards: now } = (await node.ask('/resources/cluster')).json<{ shards: typeof shards }>()
    return now.some(({ shard, head }) => shard >= 0 && head > 0)
  })
  await node.ask('/resources/registry/state-of-the-cluster', { method: 'POST', body: 'seen' })
  await until('what was committed is in the graph, configuration too', async () => {
    const { shards: now } = (await node.ask('/resources/cluster')).json<{
      shards: { head: number; lag: number; shard: number }[]
    }>()
    return now.every(({ shard, head, lag }) => lag === 0 && (shard >= 0 || head > 1))
  })
  if (!onCluster) t.strictSame(moves, [])
  t.strictSame((await node.ask('/resources/cluster/poisoned')).json(), [])
  t.strictSame((await node.ask('/resources/cluster/parked')).json(), [])
  t.equal((await node.ask('/resources/cluster/parked', { method: 'POST' })).status, 202)
  const none = '/resources/cluster/poisoned/00000000-0000-7000-8000-000000000000/x'
  t.equal((await node.ask(none, { method: 'POST' })).status, 404)
  t.equal((await node.send('/resources/cluster')).status, 401)
  const token = await node.token('registry:read')
  for (const path of ['', '/poisoned', '/parked']) {
    t.equal((await node.ask(`/resources/cluster${path}`, { token })).status, 403, path)
  }
  t.equal((await node.ask(none, { token, method: 'POST' })).status, 403)
})

t.test('the graph index is made anew while orders are written and read', async (t) => {
  const path = '/resources/cluster/index'
  const state = async (): Promise<Record<string, unknown>> => (await node.ask(path)).json()
  await until('nothing is being made', async () => (await state())['state'] === 'idle')
  t.strictSame(await state(), { state: 'idle', done: 0, total: 0, startedAt: null })
  t.equal((await node.send(path, { method: 'POST' })).status, 401)
  const token = await node.token('cluster:read')
  t.equal((await node.ask(path, { method: 'POST', token })).status, 403)
  t.equal((await node.ask(path, { method: 'POST' })).status, 202)
  t.equal((await node.ask(path, { method: 'POST' })).status, 202, 'it is on its way')
  t.not((await state())['state'], 'idle')
  let orders = 0
  await until('it is read from the new one', async () => {
    const { orderId } = await smallOrder(node)
    const answer = await node.order(orderId, [apply({ type: 'addTag', key: 'seen' })])
    const body = [{ edge: 'orders', filter: `orderId == '${orderId}'`, count: true }]
    t.strictSame(await node.graph(body, answer), { orders: 1 })
    orders++
    return (await state())['state'] === 'idle'
  })
  t.ok(orders > 0, `${orders} orders meanwhile`)
})

t.test('metrics are Prometheus text, and move', async (t) => {
  const before = await node.metric('kontor_commit_entries_total')
  // Of a cluster's orders this member commits those of its own shards.
  const orders = onCluster ? 24 : 3
  for (let i = 0; i < orders; i++) await smallOrder(node)
  const committed = (await node.metric('kontor_commit_entries_total')) - before
  t.ok(onCluster ? committed > 0 && committed <= orders : committed === orders, `${committed}`)
  const { text, headers } = await node.ask('/metrics')
  t.match(headers['content-type'], /^text\/plain; version=0\.0\.4/)
  const told = new Map<string, string>()
  const samples = new Set<string>()
  for (const line of text.trimEnd().split('\n')) {
    const type = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line)
    if (type) told.set(type[1]!, type[2]!)
    if (line.startsWith('#')) continue
    const sample =
      /^([a-z_][a-z0-9_]*)(\{(?:[a-z_]+="[^"]*",?)*\})? (-?[0-9.e+-]+|NaN|[+-]Inf)$/i.exec(line)
    if (sample === null) {
      t.fail(line)
      continue
    }
    const name = sample[1]!.replace(/_(bucket|sum|count)$/, '')
    if (!told.has(sample[1]!) && told.get(name) !== 'histogram') t.fail(`no TYPE: ${line}`)
    const series = `${sample[1]}${sample[2] ?? ''}`
    if (samples.has(series)) t.fail(`twice: ${series}`)
    samples.add(series)
  }
  for (const name of [
    'kontor_commits_total',
    'kontor_commit_entries_total',
    'kontor_index_lag_entries',
    'kontor_index_lag_seconds',
    'kontor_journal_head_offset',
    'kontor_index_applied_offset',
    'kontor_http_requests_total',
    'kontor_http_request_duration_seconds',
    'process_cpu_seconds_total',
  ]) {
    t.ok(told.has(name), name)
  }
})

interface OpenApi {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, OpenApiSchema>> }
}

interface OpenApiSchema {
  readonly discriminator?: { readonly mapping: Readonly<Record<string, string>> }
  readonly properties?: object
  readonly examples?: readonly object[]
}

interface OpenApiOperation {
  readonly operationId: string
  readonly summary: string
  readonly security: readonly { readonly bearer: readonly string[] }[]
  readonly parameters?: readonly { readonly name: string; readonly in: string; schema: object }[]
  readonly requestBody?: { readonly content: Record<string, { schema: object }> }
  readonly responses: Record<string, object>
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete']

t.test('openapi.json names every operation, and each is there', async (t) => {
  const { paths } = (await node.send('/openapi.json')).json<OpenApi>()
  const known = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method} ${path}`),
  )
  const table = describedOperations().map(({ method, path }) => {
    return `${method.toLowerCase()} ${path.replaceAll('{**', '{')}`
  })
  t.strictSame(known.sort(), table.sort())
  for (const one of known) {
    const [method, path] = one.split(' ') as [string, string]
    const at = path.replaceAll(/\{\w+\}/g, 'x')
    const { status } = await node.send(at, { method: method.toUpperCase() })
    t.not(status, 405, one)
    t.ok(status !== 404 || path.includes('{'), `${one}: ${status}`)
  }
})

t.test('openapi.json is sound', async (t) => {
  const answer = await node.send('/openapi.json')
  const document = answer.json<OpenApi>()
  t.match(document, { openapi: /^3\.1\./, info: { title: 'Kontor', version: /^\d+\.\d+\.\d+/ } })
  for (const [, pointer] of answer.text.matchAll(/"\$ref":"#([^"]+)"/g)) {
    t.ok(lookUp(document, pointer!) !== undefined, pointer!)
  }
  const official = new Ajv2020({ strict: false, validateFormats: false }).compile(OFFICIAL)
  t.ok(official(document), JSON.stringify(official.errors))
  t.ok(Buffer.byteLength(answer.text) < 192 * 1024, 'it is read in one go')
  const ids = new Set<string>()
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  for (const [path, item] of Object.entries(document.paths)) {
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    for (const [method, operation] of Object.entries(item)) {
      t.ok(METHODS.includes(method), method)
      t.notOk(ids.has(operation.operationId), operation.operationId)
      ids.add(operation.operationId)
      t.ok(operation.summary.length > 10, operation.summary)
      const parameters = operation.parameters ?? []
      const named = parameters.filter((one) => one.in === 'path').map(({ name }) => name)
      t.strictSame(named, inPath, `${method} ${path}`)
      t.ok('200' in operation.responses)
      const contents = Object.values(operation.requestBody?.content ?? {})
      for (const { schema } of [...parameters, ...contents]) {
        t.doesNotThrow(() => ajv.compile({ ...schema, components: document.components }))
      }
    }
  }
})

function lookUp(document: unknown, pointer: string): unknown {
  let value = document
  for (const part of pointer.split('/').slice(1)) {
    value = (value as Record<string, unknown> | undefined)?.[part.replaceAll('~1', '/')]
  }
  return value
}

t.test(
  'openapi.json shows every message and command, told by its type, with an example',
  async (t) => {
    const { paths, components } = (await node.send('/openapi.json')).json<OpenApi>()
    const { schemas } = components
    const one = paths['/resources/actors/{type}/{id}']!['post']!.requestBody!.content
    const bulk = paths['/resources/actors/{type}']!['post']!.requestBody!.content
    const messages = { type: 'array', items: { $ref: '#/components/schemas/OrderMessage' } }
    t.match(one['application/json'], { schema: messages })
    t.match(bulk['application/x-ndjson'], { schema: { properties: { messages } } })
    for (const [union, types] of [
      ['OrderMessage', Object.keys(BODIES)],
      ['OrderCommand', [...COMMANDS.keys()]],
    ] as const) {
      const { mapping } = schemas[union]!.discriminator!
      t.strictSame(Object.keys(mapping), types)
      for (const [type, ref] of Object.entries(mapping)) {
        const { properties, examples } = schemas[ref.split('/').at(-1)!]!
        t.match(
          { properties, examples },
          { properties: { type: { const: type } }, examples: [{ type }] },
        )
      }
    }
  },
)

t.test('answers are packed when it is asked for', async (t) => {
  const plain = await node.send('/openapi.json')
  const client = new RawClient(node.port)
  t.teardown(() => client.destroy())
  client.send('GET /openapi.json HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n')
  const packed = await client.response()
  t.equal(packed.headers['content-encoding'], 'gzip')
  t.equal(gunzipSync(packed.body).toString(), plain.text)
  t.equal(plain.headers['content-encoding'], undefined)
})

t.test('HEAD, OPTIONS, and headers that keep answers private', async (t) => {
  const head = await node.send('/health/live', { method: 'HEAD' })
  t.strictSame([head.status, head.text, head.headers['content-length']], [200, '', '15'])
  const options = await node.send('/resources/graph', { method: 'OPTIONS' })
  t.strictSame([options.status, options.headers['allow']], [204, 'GET, POST, HEAD, OPTIONS'])
  const meta = await node.ask('/resources/graph/meta')
  t.equal(meta.headers['cache-control'], 'no-store')
  t.equal(meta.headers['x-content-type-options'], 'nosniff')
})

t.test('wrong settings: all mistakes at once, exit code 78', async (t) => {
  const { status, stderr } = spawnSync(process.execPath, [MAIN, '--nonsense'], {
    env: { KONTOR_HTTP_PORT: 'eighty', KONTOR_SHARDS: '7', KONTOR_LOG_LEVEL: 'loud' },
    encoding: 'utf8',
    timeout: 20_000,
  })
  t.equal(status, 78)
  for (const part of ['KONTOR_HTTP_PORT', 'KONTOR_SHARDS', 'KONTOR_LOG_LEVEL', '--nonsense']) {
    t.match(stderr, part)
  }
})
