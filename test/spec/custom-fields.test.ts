// Custom fields and edges of the graph, and values of enums, over HTTP on a real node. Source:
// specification "Sending" (custom graph fields), "Release-note resources (2026.1)"; CONTRACT 1.1,
// 1.4.

import { readdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { done, refused } from '../harness/answers.ts'
import { onCluster } from '../harness/driver.ts'
import { type Answer, startNode } from '../harness/node-process.ts'
import { apply, smallOrder } from '../harness/orders.ts'
import { Patience } from '../harness/patience.ts'

const node = await startNode(t)
const REGISTRY = '/resources/registry'
const GRAPH = '/resources/graph'

const ORDERS = await Promise.all(
  [{ season: 'summer', size: 3 }, { season: 7, size: 'big' }, {}].map((fields, i) =>
    smallOrder(
      node,
      { orderNumber: `CF${i}` },
      () => ({ type: 'setDynamicFields', fields: { ...fields, partner: 'CF0' } }),
      () => ({ type: 'setCustomerNumber', value: i < 2 ? 'same' : null }),
    ),
  ),
)

type Rows = readonly Record<string, unknown>[]

const write = (key: string, body: unknown): Promise<Answer> =>
  node.ask(`${REGISTRY}/${key}`, { body })

/** With the token of a write: 200, or 503 for a while; never 400. */
async function graph<T>(t: Test, body: unknown, after: Answer, token?: string): Promise<T> {
  const patience = new Patience(60_000)
  const headers = { 'X-Consistency': String(after.headers['x-consistency']) }
  for (;;) {
    const answer = await node.ask(GRAPH, { body, headers, ...(token && { token }) })
    if (answer.status === 200) return answer.json<T>()
    refused(t, answer, 'INDEX_BEHIND', /./)
    if (patience.isOver()) throw new Error(`it never came: ${answer.text}`)
  }
}

async function defines(t: Test, key: string, value: unknown): Promise<Answer> {
  const answer = await write(key, value)
  t.equal(answer.status, 200, answer.text)
  return answer
}

const all = (fields: readonly string[], more = {}): unknown => [
  { edge: 'orders', orderBy: 'orderNumber', node: { fields: ['orderNumber', ...fields] }, ...more },
]

t.test(
  'a field is there for orders that were before it, and its wrong values are empty',
  async (t) => {
    await defines(t, 'graph/order/fields/season', { type: 'text', source: `dynamic->'season'` })
    const wrote = await defines(t, 'graph/order/fields/size', {
      type: 'number',
      source: `dynamic->'size'`,
    })
    const { orders } = await graph<{ orders: Rows }>(t, all(['season', 'size']), wrote)
    t.strictSame(orders, [
      { orderNumber: 'CF0', season: 'summer', size: 3 },
      { orderNumber: 'CF1', season: null, size: null },
      { orderNumber: 'CF2', season: null, size: null },
    ])
    const found = await graph<{ orders: Rows }>(t, all([], { filter: `season == 'summer'` }), wrote)
    t.strictSame(found.orders, [{ orderNumber: 'CF0' }])
    const meta = (await node.ask(`${GRAPH}/meta`)).json<{
      nodes: { name: string; fields: Rows }[]
    }>()
    const { fields } = meta.nodes.find(({ name }) => name === 'order')!
    t.match(
      fields.find(({ name }) => name === 'season'),
      { type: 'text', custom: true },
    )
    t.match(
      fields.find(({ name }) => name === 'orderNumber'),
      { custom: false },
    )
  },
)

t.test('a query message and a preview show it as the graph does', async (t) => {
  const { orderId } = ORDERS[2]!
  const body = [
    apply({ type: 'setDynamicFields', fields: { season: 'winter' } }),
    { type: 'query', body: { fields: ['season', 'size'] } },
  ]
  const answer = done(t, await node.ask(`/resources/actors/order/${orderId}?preview`, { body }))
  t.strictSame(answer.data, { season: 'winter', size: null })
})

t.test('an edge goes by equal values of fields, custom ones too', async (t) => {
  await defines(t, 'graph/order/fields/partner', { type: 'text', source: `dynamic->'partner'` })
  await defines(t, 'graph/order/edges/leads', {
    field: 'partner',
    relatedSet: 'orders',
    relatedField: 'orderNumber',
    cardinality: 'single',
  })
  const wrote = await defines(t, 'graph/order/edges/sameCustomer', {
    field: 'customerNumber',
    relatedSet: 'orders',
    relatedField: 'customerNumber',
    cardinality: 'many',
  })
  const navigate = [
    { edge: 'leads', node: { fields: ['orderNumber'] } },
    { edge: 'sameCustomer', orderBy: 'orderNumber', node: { fields: ['orderNumber'] } },
  ]
  const body = all([], { node: { fields: ['orderNumber'], navigate } })
  const { orders } = await graph<{ orders: Rows }>(t, body, wrote)
  const same = [{ orderNumber: 'CF0' }, { orderNumber: 'CF1' }]
  const leads = { orderNumber: 'CF0' }
  t.strictSame(orders, [
    { orderNumber: 'CF0', leads, sameCustomer: same },
    { orderNumber: 'CF1', leads, sameCustomer: same },
    { orderNumber: 'CF2', leads, sameCustomer: [] },
  ])
})

t.test('a field has its own permission', async (t) => {
  const wrote = await defines(t, 'graph/order/fields/note', {
    type: 'text',
    source: `dynamic->'note'`,
  })
  await graph(t, all(['note']), wrote)
  const asked = async (scope: string): Promise<Answer> =>
    node.ask(GRAPH, { body: all(['note']), token: await node.token(scope) })
  const names = 'graph/order:query graph/order:field:orderNumber'
  refused(t, await asked(names), 'FORBIDDEN_FIELD', /graph\/order:field:note/)
  refused(t, await asked(`${names} graph/order:field:dynamic`), 'FORBIDDEN_FIELD', /note/)
  t.equal((await asked(`${names} graph/order:field:note`)).status, 200)
})

t.test('what can not be is refused where it is written', async (t) => {
  const text = { type: 'text', source: `dynamic->'x'` }
  const refusal = async (key: string, value: unknown, words: RegExp): Promise<void> => {
    refused(t, await write(key, value), 'INVALID_REGISTRY_VALUE', words)
    t.equal((await node.ask(`${REGISTRY}/${key}`)).status, 404, 'it has no effect')
  }
  await refusal('graph/ordr/fields/x', text, /no node "ordr"; did you mean order/)
  await refusal('graph/order/fields/orderNumber', text, /has orderNumber already/)
  await refusal('graph/order/fields/x', { ...text, source: `dynamc->'x'` }, /did you mean dynamic/)
  await refusal('graph/order/fields/x', { ...text, type: 'money' }, /type/)
  const edge = { field: 'orderNumber', relatedSet: 'ordrs', cardinality: 'many' }
  await refusal('graph/order/edges/x', edge, /no base set "ordrs"/)
})

t.test('a definition that changes under load: 200 or 503, old values or new', async (t) => {
  const key = 'graph/order/fields/hot'
  const first = await defines(t, key, { type: 'text', source: `dynamic->'season'` })
  const body = all(['hot'], { filter: `orderNumber == 'CF0'` })
  await graph(t, body, first)
  const second = await defines(t, key, { type: 'text', source: 'orderNumber' })
  const over = new AbortController()
  const asking = Array.from({ length: 4 }, async () => {
    const patience = new Patience(60_000)
    const seen: unknown[] = []
    while (!over.signal.aborted && !patience.isOver()) {
      const answer = await node.ask(GRAPH, { body })
      if (answer.status === 503) continue
      t.equal(answer.status, 200, answer.text)
      seen.push(answer.json<{ orders: Rows }>().orders[0]!['hot'])
    }
    return seen
  })
  const { orders } = await graph<{ orders: Rows }>(t, body, second)
  t.strictSame(orders, [{ orderNumber: 'CF0', hot: 'CF0' }])
  over.abort()
  for (const seen of await Promise.all(asking)) {
    const turn = seen.indexOf('CF0')
    const before = turn < 0 ? seen : seen.slice(0, turn)
    t.ok(before.every((value) => value === 'summer'))
    t.ok(turn < 0 || seen.slice(turn).every((value) => value === 'CF0'), 'it never goes back')
  }
})

t.test('a field that is taken away is no more', async (t) => {
  const key = 'graph/order/fields/gone'
  const wrote = await defines(t, key, { type: 'text', source: `dynamic->'x'` })
  await graph(t, all(['gone']), wrote)
  const removed = await node.ask(`${REGISTRY}/${key}`, { method: 'DELETE' })
  await graph(t, all([]), removed)
  const headers = { 'X-Consistency': String(removed.headers['x-consistency']) }
  const answer = await node.ask(GRAPH, { body: all(['gone']), headers })
  refused(t, answer, 'INVALID_QUERY', /order has no field gone/)
})

t.test('values of enums: their own over those that they share', async (t) => {
  const value = (path: string, method: string, body?: unknown): Promise<Answer> =>
    node.ask(`/enums/${path}`, { method, ...(body === undefined ? {} : { body }) })
  for (const key of ['spring', 'summer']) {
    t.equal((await value(`definitions/seasons/values/${key}`, 'PUT', { label: key })).status, 200)
  }
  const shared = await value('definitions/seasons/values', 'GET')
  t.strictSame(shared.json(), {
    values: [
      { key: 'spring', label: 'spring' },
      { key: 'summer', label: 'summer' },
    ],
  })
  await defines(t, 'graph/order/fields/time', {
    type: 'enum',
    source: `dynamic->'season'`,
    enumDefinition: 'seasons',
  })
  const label = { default: 'Summer', sv: 'Sommar' }
  const path = 'graph/order/time/values'
  t.equal((await value(`${path}/summer`, 'POST', { label, hue: 50 })).status, 200)
  const wrote = await value(`${path}/snow`, 'PUT', {})
  t.strictSame((await value(path, 'GET')).json(), {
    values: [
      { key: 'spring', label: 'spring' },
      { hue: 50, key: 'summer', label },
      { key: 'snow', label: 'snow' },
    ],
  })
  const kept = await node.ask(`${REGISTRY}/enums/${path}/summer`)
  t.strictSame(kept.json(), { key: `enums/${path}/summer`, value: { label, hue: 50 } })
  const { orders } = await graph<{ orders: Rows }>(t, all(['time']), wrote)
  t.strictSame(
    orders.map(({ time }) => time),
    ['summer', null, null],
  )
  const meta = (await node.ask(`${GRAPH}/meta`)).json<{ nodes: { name: string; fields: Rows }[] }>()
  const { fields } = meta.nodes.find(({ name }) => name === 'order')!
  t.match(
    fields.find(({ name }) => name === 'time'),
    { type: 'enum', enum: ['spring', 'summer', 'snow'] },
  )
  const etag = String((await value(`${path}/snow`, 'PUT', {})).headers['etag'])
  const stale = { method: 'DELETE', headers: { 'If-Match': '"999"' } }
  refused(t, await node.ask(`/enums/${path}/snow`, stale), 'CONFLICT', /changed/)
  const fresh = { method: 'DELETE', headers: { 'If-Match': etag } }
  t.equal((await node.ask(`/enums/${path}/snow`, fresh)).status, 200)
  refused(t, await value(`${path}/snow`, 'GET'), 'NOT_FOUND', /no value "snow"/)
  refused(t, await value('graph/order/orderNumber/values', 'GET'), 'NOT_FOUND', /that is an enum/)
  refused(t, await value(`${path}/x`, 'PUT', { hue: 361 }), 'INVALID_REGISTRY_VALUE', /hue/)
})

t.test('values that the platform knows', async (t) => {
  await defines(t, 'channels/online', { currencyCode: 'EUR', taxIncluded: true, label: 'Web' })
  await defines(t, 'inventories/north', { label: 'North' })
  const listed = async (values: string): Promise<Rows> => {
    await defines(t, `graph/delivery/fields/from_${values}`, {
      type: 'enum',
      source: 'inventoryKey',
      values,
    })
    const answer = await node.ask(`/enums/graph/delivery/from_${values}/values`)
    return answer.json<{ values: Rows }>().values
  }
  t.strictSame(await listed('channels'), [{ key: 'online', label: 'Web' }])
  t.strictSame(await listed('inventories'), [{ key: 'north', label: 'North' }])
  t.ok((await listed('currencies')).some(({ key }) => key === 'SEK'))
  t.equal((await listed('countries')).length, 249)
  const states = (await node.ask('/enums/graph/order/orderState/values')).json<{ values: Rows }>()
  t.ok(states.values.some(({ key }) => key === 'confirmed'))
  await node.ask(`${REGISTRY}/channels/online`, { method: 'DELETE' })
})

t.test('enums have a permission of their own', async (t) => {
  const path = '/enums/definitions/mine/values'
  const ask = async (scope: string, ask: object, key = ''): Promise<Answer> =>
    node.ask(path + key, { ...ask, token: await node.token(scope) })
  const put = { method: 'PUT', body: { label: 'x' } }
  refused(
    t,
    await ask('enums:read', put, '/a'),
    'FORBIDDEN',
    /enums\/definitions\/mine\/values\/a:w/,
  )
  t.equal((await ask('enums:write', put, '/a')).status, 200)
  t.equal((await ask('registry/enums:write', put, '/b')).status, 200)
  refused(t, await ask('enums:write', {}), 'FORBIDDEN', /enums\/definitions\/mine\/values:read/)
  t.equal((await ask('enums:read', {})).json<{ values: Rows }>().values.length, 2)
  const registry = await node.ask(`${REGISTRY}/enums/definitions/mine/values/c`, {
    body: {},
    token: await node.token('enums:write'),
  })
  refused(t, registry, 'FORBIDDEN', /registry\//)
})

t.test('a field has a value for each locale', async (t) => {
  const title = { sv: 'Bord', 'en-GB': 'Table', de: 7 }
  const order = await smallOrder(node, { orderNumber: 'CFD' }, () => ({
    type: 'setDynamicFields',
    fields: { title },
  }))
  const wrote = await defines(t, 'graph/order/fields/title', {
    type: 'text',
    source: `dynamic->'title'`,
    dimensions: ['locale'],
  })
  const kept = { sv: 'Bord', 'en-GB': 'Table' }
  const fields = ['title.sv', `title->'en-GB'`]
  const filter = `title.sv == 'Bord' and title.de == nothing`
  const { orders } = await graph<{ orders: Rows }>(t, all(fields, { filter }), wrote)
  t.strictSame(orders, [{ orderNumber: 'CFD', title: kept }])
  const sorted = await graph<{ orders: Rows }>(t, all([], { orderBy: 'title.sv', limit: 1 }), wrote)
  t.strictSame(sorted.orders, [{ orderNumber: 'CFD' }])
  const query = [{ type: 'query', body: { fields: ['title'] } }]
  const own = done(t, await node.ask(`/resources/actors/order/${order.orderId}`, { body: query }))
  t.strictSame(own.data, { title: kept })
  const whole = await node.ask(GRAPH, { body: all([], { filter: `title == 'Bord'` }) })
  refused(t, whole, 'INVALID_FILTER', /name one value: field.<locale>/)
  const deep = await node.ask(GRAPH, { body: all(['title.sv.x']) })
  refused(t, deep, 'INVALID_QUERY', /no more dimensions than title.<locale>/)
  const meta = (await node.ask(`${GRAPH}/meta`)).json<{ nodes: { name: string; fields: Rows }[] }>()
  const { fields: told } = meta.nodes.find(({ name }) => name === 'order')!
  t.match(
    told.find(({ name }) => name === 'title'),
    { type: 'text', dimensions: ['locale'], custom: true },
  )
  const scope = 'graph/order:query graph/order:field:orderNumber graph/order:field:title:sv'
  const token = await node.token(scope)
  t.equal((await node.ask(GRAPH, { body: all(['title.sv']), token })).status, 200)
  refused(t, await node.ask(GRAPH, { body: all(['title']), token }), 'FORBIDDEN_FIELD', /title/)
  const text = `{ orders(filter: "orderNumber == 'CFD'") { title titleField(name: "sv") } }`
  const answer = await node.ask('/graphql', { body: { query: text } })
  t.strictSame(answer.json(), { data: { orders: [{ title: kept, titleField: 'Bord' }] } })
})

t.test('nodes within others have fields, and so has history', async (t) => {
  const order = await smallOrder(
    node,
    { orderNumber: 'CFH' },
    ({ orderLineId }) => ({ type: 'setOrderLineSkus', orderLineId, skus: { A: 1, B: 2 } }),
    () => ({ type: 'addActivityLog', messageTemplate: 'Called', dynamic: { kind: 'call' } }),
    () => ({ type: 'addActivityLog', messageTemplate: 'Wrote', dynamic: { kind: 7 } }),
  )
  await defines(t, 'graph/orderLineSku/fields/code', { type: 'text', source: 'skuNumber' })
  const wrote = await defines(t, 'graph/activityLog/fields/kind', {
    type: 'text',
    source: `dynamic->'kind'`,
  })
  const skus = { edge: 'skus', filter: `code == 'B'`, node: { fields: ['code', 'unitQuantity'] } }
  const lines = { edge: 'orderLines', node: { navigate: [skus] } }
  const log = { edge: 'activityLogs', node: { fields: ['message', 'kind'] } }
  const calls = { ...log, alias: 'calls', filter: `kind == 'call'` }
  const found = {
    orderLines: [{ skus: [{ code: 'B', unitQuantity: 2 }] }],
    activityLogs: [
      { message: 'Wrote', kind: null },
      { message: 'Called', kind: 'call' },
    ],
    calls: [{ message: 'Called', kind: 'call' }],
  }
  const body = { navigate: [lines, log, calls] }
  const filter = `orderNumber == 'CFH'`
  const answer = await graph<{ orders: Rows }>(t, [{ edge: 'orders', filter, node: body }], wrote)
  t.strictSame(answer.orders, [found])
  const query = [{ type: 'query', body }]
  const own = await node.ask(`/resources/actors/order/${order.orderId}`, { body: query })
  t.strictSame(done(t, own).data, found)
  const set = [
    {
      edge: 'activityLogs',
      filter: `orderId == ${order.orderId} and kind == nothing`,
      node: { fields: ['message'] },
    },
  ]
  t.strictSame(await graph(t, set, wrote), { activityLogs: [{ message: 'Wrote' }] })
})

// Of a cluster the others go on, and what one that comes reads is the cluster's.
if (!onCluster) {
  t.test('a start reads the index as it is, custom fields and all', async (t) => {
    const wrote = await node.ask(`${REGISTRY}/any`, { body: 1 })
    await graph(t, all(['season']), wrote)
    const files = (): readonly string[] =>
      readdirSync(node.dir).filter((name) => /^graph.*\.sqlite$/.test(name))
    await node.stop()
    const before = files()
    t.equal(before.length, 1)
    await node.start()
    const { orders } = (await node.ask(GRAPH, { body: all(['season']) })).json<{ orders: Rows }>()
    t.equal(orders[0]!['season'], 'summer')
    t.strictSame(files(), before, 'nothing is filled anew')
  })
}
