// Search indexes as the registry configures them, and having them made anew, over HTTP on a real
// node. Source: specification "Graph" (phrase matching), CONTRACT 1.1 "Search indexes".

import { readdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { refused } from '../harness/answers.ts'
import { onCluster } from '../harness/driver.ts'
import { LIMITS_VARIABLE } from '../harness/lowered-limits.ts'
import { type Answer, startNode } from '../harness/node-process.ts'
import { smallOrder } from '../harness/orders.ts'
import { Patience, until } from '../harness/patience.ts'

// It is made anew for tests one after another.
const node = await startNode(t, {
  [LIMITS_VARIABLE]: JSON.stringify({ 'indexing.askedAgainMs': 0 }),
})
const REGISTRY = '/resources/registry'
const GRAPH = '/resources/graph'
const KEY = 'system/graph/order/search'

const write = (key: string, body: unknown): Promise<Answer> =>
  node.ask(`${REGISTRY}/${key}`, { body })

async function defines(t: Test, key: string, value: unknown): Promise<Answer> {
  const answer = await write(key, value)
  t.equal(answer.status, 200, answer.text)
  return answer
}

/** With the token of a write: 200, or 503 for a while; never 400. */
async function graph<T>(t: Test, body: unknown, after: Answer): Promise<T> {
  const patience = new Patience(60_000)
  const headers = { 'X-Consistency': String(after.headers['x-consistency']) }
  for (;;) {
    const answer = await node.ask(GRAPH, { body, headers })
    if (answer.status === 200) return answer.json<T>()
    refused(t, answer, 'INDEX_BEHIND', /./)
    if (patience.isOver()) throw new Error(`it never came: ${answer.text}`)
  }
}

interface Meta {
  readonly nodes: readonly {
    readonly name: string
    readonly fields: readonly { name: string; searchIndexed: boolean; keyword: boolean }[]
  }[]
  readonly refused?: readonly { readonly key: string; readonly reason: string }[]
}

const meta = async (token?: string): Promise<Meta> =>
  (await node.ask(`${GRAPH}/meta`, token === undefined ? {} : { token })).json<Meta>()

/** Fields of orders that phrases find: `name`, `name!` for keywords. */
async function found(token?: string): Promise<string> {
  const { fields } = (await meta(token)).nodes.find(({ name }) => name === 'order')!
  return fields
    .filter(({ searchIndexed }) => searchIndexed)
    .map(({ name, keyword }) => name + (keyword ? '!' : ''))
    .join(' ')
}

const count = [{ edge: 'orders', count: true }]

t.test('what can not be is refused where it is written', async (t) => {
  const refusal = async (key: string, value: unknown, words: RegExp): Promise<void> => {
    const answer = await write(key, value)
    refused(t, answer, 'INVALID_REGISTRY_VALUE', words)
    t.equal((await node.ask(`${REGISTRY}/${key}`)).status, 404, 'it has no effect')
  }
  const fields = (...names: string[]) => ({ fields: names.map((field) => ({ field })) })
  await refusal(KEY, fields('ordrNumber'), /did you mean orderNumber/)
  await refusal(KEY, fields('orderTotal'), /holds no text/)
  await refusal(KEY, { fields: 'orderNumber' }, /fields/)
  await refusal(KEY, { ...fields('tags'), edges: [{ edge: 'x', fields: [] }] }, /no edge x/)
  await refusal('system/graph/ordr/search', fields('tags'), /no node "ordr"; did you mean order/)
  const edges = [{ edge: 'deliveries', ...fields('deliveryNumber', 'town') }]
  const wrong = await write(KEY, { ...fields('tags'), edges })
  t.match(wrong.json(), { errors: [{ details: { member: 'edges.0.fields.1' } }] })
})

t.test(
  'metadata has the index that is configured, custom fields too, else the built-in',
  async (t) => {
    const builtIn = await found()
    t.match(builtIn, /^orderNumber! customerNumber! /)
    await defines(t, 'graph/order/fields/season', { type: 'text', source: `dynamic->'season'` })
    const index = { fields: [{ field: 'season', keyword: true }, { field: 'invoiceAddress.city' }] }
    await graph(t, count, await defines(t, KEY, index))
    t.equal(await found(), 'invoiceAddress.city season!')
    const names = 'graph/order:query graph/order:field:invoiceAddress:city'
    t.equal(await found(await node.token(names)), 'invoiceAddress.city')
    const taken = await node.ask(`${REGISTRY}/graph/order/fields/season`, { method: 'DELETE' })
    await graph(t, count, taken)
    t.equal(await found(), 'invoiceAddress.city', 'it goes on without the field')
    t.match((await meta()).refused, [{ key: KEY, reason: /no field season/ }])
    t.equal((await meta(await node.token(names))).refused, undefined, 'who may not read the key')
    await graph(t, count, await node.ask(`${REGISTRY}/${KEY}`, { method: 'DELETE' }))
    t.equal(await found(), builtIn)
    t.equal((await meta()).refused, undefined)
  },
)

t.test('a search index is made anew while orders are written and read', async (t) => {
  const path = `${GRAPH}/search/order`
  const state = async (): Promise<Record<string, unknown>> => (await node.ask(path)).json()
  await until('nothing is being made', async () => (await state())['state'] === 'idle')
  t.strictSame(await state(), { state: 'idle', done: 0, total: 0, startedAt: null })
  t.equal((await node.ask(path, { body: {} })).status, 202, 'what is written applies by itself')
  t.equal((await state())['state'], 'idle')
  t.equal((await node.ask(path, { body: { rebuild: true } })).status, 202)
  const running = await state()
  t.match(running, { state: 'running', startedAt: Number, done: Number, total: Number })
  let orders = 0
  await until('it is read from the new one', async () => {
    await smallOrder(node)
    orders++
    return (await state())['state'] === 'idle'
  })
  t.ok(orders > 0, `${orders} orders meanwhile`)
})

t.test('updating takes its own permission', async (t) => {
  const ask = async (scope: string, name: string, body?: object): Promise<Answer> =>
    node.ask(`${GRAPH}/search/${name}`, { token: await node.token(scope), ...(body && { body }) })
  for (const scope of ['graph:query', 'graph/order:query', 'graph/delivery:update-search']) {
    refused(t, await ask(scope, 'order'), 'FORBIDDEN', /graph\/order:update-search/)
    refused(t, await ask(scope, 'order', {}), 'FORBIDDEN', /graph\/order:update-search/)
    refused(t, await ask(scope, 'nobody'), 'FORBIDDEN', /graph\/nobody:update-search/)
  }
  t.equal((await ask('graph/order:update-search', 'order')).status, 200)
  t.equal((await ask('graph/order:update-search', 'order', {})).status, 202)
  t.equal((await ask('graph:update-search', 'delivery')).status, 200)
  refused(t, await ask('graph:update-search', 'ordr'), 'NOT_FOUND', /^there is no node "ordr"$/)
  refused(t, await ask('graph:*', 'ordr'), 'NOT_FOUND', /did you mean order/)
  refused(t, await ask('graph:*', 'order', { rebuild: 1 }), 'MALFORMED_REQUEST', /rebuild/)
  t.equal((await node.send(`${GRAPH}/search/order`)).status, 401)
})

t.test('phrases find by what is configured, and go on while that changes', async (t) => {
  const gift = (order: string, gift: string) =>
    smallOrder(node, { orderNumber: order }, () => ({
      type: 'setDynamicFields',
      fields: { gift, season: `${gift}ry` },
    }))
  await gift('SI-1', 'Red Lantern')
  await gift('SI-2', 'Blue Lantern')
  const asked = (phrase: string) => [{ edge: 'orders', phrase, node: { fields: ['orderNumber'] } }]
  const numbers = (orders: readonly { orderNumber: string }[]): string =>
    orders
      .map(({ orderNumber }) => orderNumber)
      .toSorted()
      .join(' ')
  type Orders = { orders: { orderNumber: string }[] }
  const find = async (phrase: string, after: Answer): Promise<string> =>
    numbers((await graph<Orders>(t, asked(phrase), after)).orders)
  await defines(t, 'graph/order/fields/season', { type: 'text', source: `dynamic->'season'` })
  const first = await defines(t, KEY, {
    fields: [{ field: `dynamic->'gift'` }, { field: 'orderNumber', keyword: true }],
  })
  t.equal(await find('lantern', first), 'SI-1 SI-2')
  t.equal(await find('"red lantern"', first), 'SI-1')
  t.equal(await find('SI-2', first), 'SI-2')
  t.equal(await find('P-1', first), '', 'lines are not configured')
  const over = new AbortController()
  const asking = Array.from({ length: 2 }, async () => {
    const patience = new Patience(60_000)
    const seen = new Set<string>()
    while (!over.signal.aborted && !patience.isOver()) {
      const answer = await node.ask(GRAPH, { body: asked('lantern') })
      t.equal(answer.status, 200, answer.text)
      seen.add(numbers(answer.json<Orders>().orders))
    }
    return [...seen]
  })
  const path = `${GRAPH}/search/order`
  await until('it is asked for', async () => {
    return (await node.ask(path, { body: { rebuild: true } })).status === 202
  })
  await until('it is made anew', async () => {
    return (await node.ask(path)).json<{ state: string }>().state === 'idle'
  })
  const lines = [{ edge: 'orderLines', fields: [{ field: 'productNumber', keyword: true }] }]
  const second = await defines(t, KEY, { fields: [{ field: 'season' }], edges: lines })
  t.equal(await find('lanternry', second), 'SI-1 SI-2', 'a custom field')
  t.match(await find('P-1', second), /SI-1 SI-2/, 'over an edge')
  t.equal(await find('lantern', second), '')
  over.abort()
  for (const seen of await Promise.all(asking)) {
    t.ok(
      seen.every((some) => some === 'SI-1 SI-2' || some === ''),
      seen.join(', '),
    )
    t.equal(seen[0], 'SI-1 SI-2')
  }
  const builtIn = await node.ask(`${REGISTRY}/${KEY}`, { method: 'DELETE' })
  t.equal(await find('SI-1', builtIn), 'SI-1')
  t.equal(await find('lanternry', builtIn), '')
})

// Of a cluster the others go on, and what one that comes reads is the cluster's.
if (!onCluster) {
  t.test('a start reads the index as it is', async (t) => {
    await graph(t, count, await defines(t, KEY, { fields: [{ field: 'tags' }] }))
    const path = `${GRAPH}/search/order`
    await until('it is there', async () => {
      return (await node.ask(path)).json<{ state: string }>().state === 'idle'
    })
    const files = (): readonly string[] =>
      readdirSync(node.dir).filter((name) => /^graph.*\.sqlite$/.test(name))
    await node.stop()
    const before = files()
    await node.start()
    t.equal(await found(), 'tags')
    t.strictSame(files(), before, 'nothing is filled anew')
  })
}
