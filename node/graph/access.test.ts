// Which nodes and fields entries open, through the real entries; and, as a property, that what a
// plan lets through is what a plain reading of the entries says.

import t from 'tap'
import fc from 'fast-check'
import { Acl, OWNER_ACL, narrow, parseScope, type Ace } from '../../protocol/ace.ts'
import type { Attributes } from '../../protocol/attributes.ts'
import type { NodeType } from '../../protocol/graph/node-type.ts'
import { graphAccess, visibility } from './access.ts'

const ID = '019a0000-0000-7000-8000-00000000000a'
const OTHER = ID.replace('a', 'b')

const ORDER: NodeType = {
  name: 'order',
  set: 'orders',
  idField: 'orderId',
  fields: [
    { name: 'orderId', type: 'uuid' },
    { name: 'region', type: 'text' },
    { name: 'rank', type: 'number' },
    { name: 'isOpen', type: 'boolean' },
    { name: 'tags', type: '[text]' },
    { name: 'storeId', type: 'uuid' },
    { name: 'address', type: 'object', members: [{ name: 'city', type: 'text' }] },
    { name: 'dynamic', type: 'dynamic' },
  ],
  edges: [],
  storage: { kind: 'row' },
}
const SKU: NodeType = {
  ...ORDER,
  name: 'sku',
  set: 'skus',
  idField: 'number',
  fields: [{ name: 'number', type: 'text' }],
}

function aces(scope: string): readonly Ace[] {
  const parsed = parseScope(scope)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.aces
}

const aclOf = (scope: string, attributes: Attributes = {}): Acl =>
  new Acl(aces(scope), null, attributes)

t.test('node types by query', async (t) => {
  const nodes = (acl: Acl, type = ORDER) => visibility(acl, type).nodes
  t.equal(nodes(OWNER_ACL), true)
  t.equal(nodes(aclOf('graph:*')), true)
  t.equal(nodes(aclOf('graph/order:query')), true)
  t.equal(nodes(aclOf('graph/order:query'), SKU), false)
  t.equal(nodes(aclOf('graph/order:field')), false)
  const one = visibility(aclOf(`graph/order/${ID.toUpperCase()}:query`), ORDER)
  t.equal(one.sees({ orderId: ID }), true)
  t.equal(one.sees({ orderId: OTHER }), false)
  t.equal(nodes(aclOf(`graph/order/${ID}:query`), SKU), false)
  t.equal(nodes(aclOf('graph/order/not-a-uuid:query')), false)
  t.equal(visibility(aclOf('graph/sku/a:query'), SKU).sees({ number: 'a' }), true)
  t.equal(graphAccess(aclOf('graph/order:query'), 'any').sees(ORDER), true)
})

t.test('nodes by attributes, which are fields of theirs', async (t) => {
  const attributes = {
    region: ['north', 'south', 7],
    rank: [1, '2'],
    isOpen: [true],
    tags: ['a', 'b'],
    storeId: [ID.toUpperCase(), 'x'],
    'address.city': ['Lund'],
    'dynamic.shop': ['s', 3, true],
    'dynamic.a.b': ['c'],
    empty: [],
    address: ['x'],
    dynamic: ['x'],
  }
  const sees = (attribute: string, doc: object, on = 'graph/order'): boolean =>
    visibility(aclOf(`${attribute}@${on}:query`, attributes), ORDER).sees({ ...doc })
  t.ok(sees('region', { region: 'north' }))
  t.ok(sees('region', { region: 'south' }, 'graph'))
  t.notOk(sees('region', { region: 'west' }))
  t.notOk(sees('region', { region: 7 }), 'a text never equals a number')
  t.notOk(sees('region', {}), 'without a value it is nobody of')
  t.notOk(sees('region', { region: null }))
  t.notOk(sees('region', { region: 'north' }, 'graph/sku'), 'another node type')
  t.ok(sees('rank', { rank: 1 }))
  t.notOk(sees('rank', { rank: 2 }))
  t.ok(sees('isOpen', { isOpen: true }))
  t.notOk(sees('isOpen', { isOpen: false }))
  t.ok(sees('tags', { tags: ['z', 'b'] }))
  t.notOk(sees('tags', { tags: ['z'] }))
  t.ok(sees('storeId', { storeId: ID }))
  t.ok(sees('address.city', { address: { city: 'Lund' } }))
  t.notOk(sees('address.city', { address: { city: 'Kiel' } }))
  for (const shop of ['s', 3, true]) t.ok(sees('dynamic.shop', { dynamic: { shop } }))
  for (const shop of ['3', 's ', false, ['s'], null]) {
    t.notOk(sees('dynamic.shop', { dynamic: { shop } }), JSON.stringify(shop))
  }
  t.ok(sees('dynamic.a.b', { dynamic: { a: { b: 'c' } } }))
  const nodes = (scope: string) => visibility(aclOf(scope, attributes), ORDER).nodes
  for (const attribute of ['brand', 'empty', 'address', 'dynamic', 'region.x', 'constructor']) {
    t.equal(nodes(`${attribute}@graph:query`), false, `${attribute} opens none`)
  }
  t.equal(
    visibility(aclOf('region@graph:query', attributes), SKU).nodes,
    false,
    'it lacks the field',
  )
  t.equal(visibility(aclOf('region@graph:query'), ORDER).nodes, false, 'nobody without attributes')
})

t.test('a narrowed set opens only what each side opens', async (t) => {
  const attributes = { region: ['north'], rank: [1] }
  const seen = (base: string, scope: string, doc: object): boolean =>
    visibility(narrow(aclOf(base, attributes), aces(scope)), ORDER).sees({ ...doc })
  const ids = `graph/order/${ID}:query graph/order/${OTHER}:query`
  t.ok(seen(`graph/order/${ID}:query`, ids, { orderId: ID }))
  t.notOk(seen(`graph/order/${ID}:query`, ids, { orderId: OTHER }))
  t.ok(seen(`graph/order/${ID}:query`, 'graph:query', { orderId: ID }), 'asked for more')
  t.notOk(seen('graph/sku:query', ids, { orderId: ID }))
  t.ok(seen('graph:*', 'region@graph:query', { region: 'north' }))
  t.notOk(seen('graph:*', 'region@graph:query', { region: 'south' }))
  t.ok(seen('region@graph:query', 'rank@graph:query', { region: 'north', rank: 1 }))
  t.notOk(seen('region@graph:query', 'rank@graph:query', { region: 'north', rank: 2 }))
})

t.test('filters look at any field, or where it is set at granted ones only', async (t) => {
  const acl = aclOf('graph/order:query graph/order:field:orderNumber')
  t.equal(graphAccess(acl, 'any').mayFilter('order', ['customerNumber']), true)
  t.equal(graphAccess(acl, 'granted').mayFilter('order', ['customerNumber']), false)
  t.equal(graphAccess(acl, 'granted').mayFilter('order', ['orderNumber']), true)
})

t.test('fields, their members, and members that no entry can name', async (t) => {
  const mayField = (scope: string, ...path: string[]): boolean => {
    const acl = aclOf(scope)
    const may = graphAccess(acl, 'any').mayField('order', path)
    t.equal(visibility(acl, ORDER).mayField(path), may)
    return may
  }
  const one = 'graph/order:field:dynamic:gift'
  t.equal(mayField(one, 'dynamic', 'gift'), true)
  t.equal(mayField(one, 'dynamic', 'other'), false)
  t.equal(mayField(one, 'dynamic'), false)
  t.equal(mayField(one, 'dynamic', 'gift:wrap'), false)
  t.equal(mayField(one, 'orderNumber'), false)
  t.equal(mayField('graph/order:field:dynamic', 'dynamic', 'gift:wrap'), true)
  t.equal(mayField('graph/delivery:field', 'dynamic'), false)
  t.equal(mayField('graph:*', 'orderNumber'), true)
  t.equal(mayField('region@graph:query', 'region'), false, 'an attribute is not a field to read')
})

/** An entry, and what it says of a node, read as plainly as the specification words it. */
const ENTRIES: readonly (readonly [string, (doc: Doc, of: Attributes) => boolean])[] = [
  ['graph/order:query', () => true],
  ['graph:query', () => true],
  ['graph/sku:query', () => false],
  ['graph/order:field:region', () => false],
  [`graph/order/${ID}:query`, (doc) => doc.orderId === ID],
  [`graph/order/${OTHER}:query`, (doc) => doc.orderId === OTHER],
  ['region@graph/order:query', (doc, of) => (of['region'] ?? []).some((v) => v === doc.region)],
  ['region@graph:query', (doc, of) => (of['region'] ?? []).some((v) => v === doc.region)],
  ['rank@graph/order:query', (doc, of) => (of['rank'] ?? []).some((v) => v === doc.rank)],
  ['tags@graph:query', (doc, of) => doc.tags.some((tag) => (of['tags'] ?? []).includes(tag))],
  ['brand@graph:query', () => false],
  ['region@graph/sku:query', () => false],
]

interface Doc {
  readonly orderId: string
  readonly region: string
  readonly rank: number
  readonly tags: readonly string[]
}

t.test('what is seen is what the entries say, one by one', async () => {
  const few = fc.subarray(ENTRIES as [(typeof ENTRIES)[number]], { maxLength: 4 })
  const text = fc.constantFrom('a', 'b', 'c')
  const doc: fc.Arbitrary<Doc> = fc.record({
    orderId: fc.constantFrom(ID, OTHER),
    region: text,
    rank: fc.constantFrom(1, 2, 3),
    tags: fc.uniqueArray(text, { maxLength: 2 }),
  })
  const values = fc.uniqueArray(fc.constantFrom('a', 'b', 1, 2), { maxLength: 3 })
  const attributes = fc.dictionary(fc.constantFrom('region', 'rank', 'tags', 'brand'), values)
  fc.assert(
    fc.property(fc.array(few, { minLength: 1, maxLength: 3 }), attributes, doc, (lists, of, d) => {
      const scopes = lists.map((list) => list.map(([entry]) => entry).join(' '))
      const base = aclOf(scopes[0]!, of)
      const acl = scopes.slice(1).reduce((narrowed, scope) => narrow(narrowed, aces(scope)), base)
      const right = lists.every((list) => list.some(([, opens]) => opens(d, of)))
      return visibility(acl, ORDER).sees({ ...d }) === right
    }),
    { numRuns: 2_000 },
  )
})
