// Who may define custom fields and edges, over HTTP on a real node: who sees all that they lead to.
// Source: specification "Scopes and ACEs", CONTRACT 1.1 "Custom fields", "Custom edges".

import t, { type Test } from 'tap'
import { refused } from '../harness/answers.ts'
import { type Answer, startNode } from '../harness/node-process.ts'
import { administration } from './administration.ts'

const node = await startNode(t)
const { role, caller } = administration(node)
const REGISTRY = '/resources/registry'

const season = { type: 'text', source: `dynamic->'season'` }
const salary = { type: 'text', source: `dynamic->'salary'` }
const FIELD = 'graph/order/fields/season'
const EDGE = 'graph/order/edges/alike'
const alike = {
  field: 'customerNumber',
  relatedSet: 'orders',
  relatedField: 'orderNumber',
  cardinality: 'many',
}

let callers = 0

/** A token of a client that may write the registry, and has these entries beside. */
async function writer(...entries: string[]): Promise<string> {
  const key = `shop:writer-${callers++}`
  await role(key, 'registry:read', 'registry:write', ...entries)
  return (await caller(key)).token
}

const write = (token: string, key: string, body: unknown, more = ''): Promise<Answer> =>
  node.ask(`${REGISTRY}/${key}${more}`, { body, token })
const kept = async (key: string): Promise<unknown> => {
  const answer = await node.ask(`${REGISTRY}/${key}`)
  return answer.status === 404 ? null : answer.json<{ value: unknown }>().value
}

type Code = 'FORBIDDEN_FIELD' | 'FORBIDDEN_NODE'

function forbidden(t: Test, answer: Answer, needs: string, code: Code = 'FORBIDDEN_FIELD'): void {
  refused(t, answer, code, /must see all that it leads to/)
  t.equal(answer.status, 403)
  const { errors } = answer.json<{ errors: { details: { needs: string } }[] }>()
  t.equal(errors[0]!.details.needs, needs)
  t.match(answer.headers['www-authenticate'], `scope="${needs}"`)
}

t.test('a field takes the entry of its source, and the query entry of its node', async (t) => {
  const own = await writer('graph/order:query', 'graph/order:field:dynamic:season')
  t.equal((await write(own, FIELD, season)).status, 200)
  forbidden(t, await write(own, FIELD, salary), 'graph/order:field:dynamic:salary')
  t.strictSame(await kept(FIELD), season, 'the one before stands')
  // Its own entry says nothing of what it is made of.
  const reader = await writer('graph/order:query', 'graph/order:field:season')
  forbidden(t, await write(reader, FIELD, salary), 'graph/order:field:dynamic:salary')
  const city = { type: 'text', source: 'invoiceAddress.city' }
  const needs = 'graph/order:field:invoiceAddress:city'
  forbidden(t, await write(own, FIELD, city), needs)
  t.equal((await write(await writer('graph/order:query', needs), FIELD, city)).status, 200)
  const byLocale = { ...salary, dimensions: ['locale'] }
  forbidden(t, await write(own, FIELD, byLocale), 'graph/order:field:dynamic:salary')
  const few = await writer('graph/order:field:dynamic:season', 'region@graph/order:query')
  forbidden(t, await write(few, FIELD, season), 'graph/order:query', 'FORBIDDEN_NODE')
  t.strictSame(await kept(FIELD), city)
  t.equal((await node.ask(`${REGISTRY}/${FIELD}`, { method: 'DELETE', token: few })).status, 200)
})

t.test('an edge takes both its fields, and the query entries of both nodes', async (t) => {
  const order = 'graph/order:query'
  const field = 'graph/order:field:customerNumber'
  const related = 'graph/order:field:orderNumber'
  t.equal((await write(await writer(order, field, related), EDGE, alike)).status, 200)
  forbidden(t, await write(await writer(order, field), EDGE, alike), related)
  forbidden(t, await write(await writer(order, related), EDGE, alike), field)
  const toLines = { field: 'orderNumber', relatedSet: 'orderLines', cardinality: 'many' }
  const rest = 'graph/orderLine:query graph/orderLine:field:orderLineId'
  forbidden(t, await write(await writer(order, related), EDGE, toLines), rest)
  t.strictSame(await kept(EDGE), alike, 'the one before stands')
})

t.test('no other way in writes one', async (t) => {
  const key = 'graph/order/fields/hidden'
  const entries = ['graph/order:query', 'actors/order:create', 'enums:write']
  const token = await writer(...entries)
  const needs = 'graph/order:field:dynamic:salary'
  for (const path of [
    key,
    `/${key}`,
    key.replaceAll('/', '%2F'),
    key.replace('hidden', '%68idden'),
  ]) {
    forbidden(t, await write(token, path, salary), needs)
  }
  for (const query of ['?isSecret=true', '?isSecret=false']) {
    forbidden(t, await write(token, key, salary, query), needs)
  }
  for (const condition of ['If-Match', 'If-None-Match']) {
    const headers = { [condition]: '*' }
    forbidden(t, await node.ask(`${REGISTRY}/${key}`, { body: salary, token, headers }), needs)
  }
  const message = [{ type: 'put', body: { value: { value: salary, isSecret: false } } }]
  const others: readonly (readonly [string, string, unknown])[] = [
    ['PUT', `${REGISTRY}/${key}`, salary],
    ['PATCH', `${REGISTRY}/${key}`, salary],
    ['POST', `/resources/actors/registry/${key}`, message],
    ['POST', `/resources/actors/registry/${encodeURIComponent(key)}`, message],
    ['POST', '/resources/actors/registry/new', message],
    ['POST', '/resources/actors/registry', message],
    ['PUT', `/enums/${key}`, salary],
    ['PUT', `/enums/graph/order/x/values/..%2F..%2F..%2F..%2F${encodeURIComponent(key)}`, salary],
  ]
  for (const [method, path, body] of others) {
    const { status } = await node.ask(path, { method, body, token })
    t.ok(status >= 400 && status < 500, `${method} ${path}: ${status}`)
  }
  // What is kept above the key holds no definitions.
  for (const above of ['graph', 'graph/order', 'graph/order/fields', `${key}/more`]) {
    t.equal((await write(token, above, { hidden: salary, fields: { hidden: salary } })).status, 200)
  }
  t.equal(await kept(key), null)
  const filter = `hidden == 'x'`
  const asked = await node.ask('/resources/graph', {
    body: [{ edge: 'orders', filter, count: true }],
  })
  refused(t, asked, 'INVALID_FILTER', /no field hidden/)
})

t.test('whom an attribute entry lets see some nodes leads it to no others', async (t) => {
  const key = 'graph/order/fields/team'
  const team = { type: 'text', source: `dynamic->'team'` }
  t.equal((await node.ask(`${REGISTRY}/${key}`, { body: team })).status, 200)
  const token = await writer('team@graph/order:query', 'graph/order:field')
  const other = { type: 'text', source: 'currencyCode' }
  forbidden(t, await write(token, key, other), 'graph/order:query', 'FORBIDDEN_NODE')
  t.strictSame(await kept(key), team)
})
