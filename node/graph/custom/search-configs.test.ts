// Configured search indexes against a plain table: which are taken, which are refused and for what,
// and that node types never get one that doesn't fit them, whatever is configured.

import fc from 'fast-check'
import t from 'tap'
import { ORDER_NODE_TYPES } from '../../../commerce/order/graph/node-types.ts'
import { graphSchema } from '../../../protocol/graph/schema.ts'
import { searchFault } from '../../../protocol/graph/search/search-faults.ts'
import { customTypes, type Definition } from './definitions.ts'
import { searchConfigFault, searchedNode, withSearches } from './search-configs.ts'

const CUSTOM: readonly Definition[] = [
  { key: 'graph/order/fields/season', value: { type: 'text', source: `dynamic->'season'` } },
  {
    key: 'graph/order/fields/title',
    value: { type: 'text', source: `dynamic->'title'`, dimensions: ['locale'] },
  },
  { key: 'graph/order/fields/size', value: { type: 'number', source: `dynamic->'size'` } },
  {
    key: 'graph/order/edges/same',
    value: {
      ...{ field: 'customerNumber', relatedSet: 'orders', relatedField: 'customerNumber' },
      cardinality: 'many',
    },
  },
]
const { types } = customTypes(ORDER_NODE_TYPES, CUSTOM, () => [])
const schema = graphSchema(types)

const config = (value: unknown, node = 'order'): Definition => ({
  key: `system/graph/${node}/search`,
  value,
})
const fields = (...names: string[]): object => ({ fields: names.map((field) => ({ field })) })
const edge = (name: string, ...names: string[]): object => ({
  fields: [{ field: 'orderNumber', keyword: true }],
  edges: [{ edge: name, ...fields(...names) }],
})

const GOOD: readonly Definition[] = [
  config(fields('orderNumber')),
  config(fields('invoiceAddress.name', 'tags', 'orderState', 'orderId')),
  config(fields(`dynamic->'a' -> 'b'`, 'season', 'title.sv', `title->'sv-SE'`)),
  config(fields()),
  config(edge('deliveries', 'deliveryAddress.name')),
  config(edge('orderLines', 'description', 'productNumber')),
  config(fields('description'), 'orderLine'),
  config(fields('skuNumber'), 'orderLineSku'),
]

const BAD: readonly [definition: Definition, member: string, words: RegExp][] = [
  [config(fields('orderNumber'), 'ordr'), 'key', /no node "ordr"; did you mean order/],
  [config(null), '', /no secret/],
  [config(fields('orderNumber', 'ordrNumber')), 'fields.1', /did you mean orderNumber/],
  [config(fields('orderTotal')), 'fields.0', /holds no text/],
  [config(fields('size')), 'fields.0', /holds no text/],
  [config(fields('dynamic')), 'fields.0', /holds no text/],
  [config(fields('title')), 'fields.0', /holds no text/],
  [config(fields('title.sv.x')), 'fields.0', /no more dimensions/],
  [config(fields('season', 'season')), 'fields.1', /named twice/],
  [config(fields(...Array<string>(65).fill('season'))), 'fields', /at most 24/],
  [config(fields('x'.repeat(2_000))), 'fields.0', /longer than/],
  [config(edge('delivries', 'x')), 'edges.0.edge', /no edge delivries/],
  [config(edge('deliveries', 'x')), 'edges.0.fields.0', /no field x/],
  [config(edge('same', 'orderNumber')), 'edges.0.edge', /other actors/],
  [config(edge('activityLogs', 'message')), 'edges.0.edge', /no place in the index/],
  [config(edge('order', 'orderNumber'), 'delivery'), 'fields.0', /no field orderNumber/],
]

t.test('what is taken', async (t) => {
  for (const one of GOOD) {
    t.equal(searchConfigFault(one, schema), null, JSON.stringify(one))
    t.strictSame(withSearches(types, [one]).refused, [])
  }
  const made = withSearches(types, [config(edge('deliveries', 'deliveryNumber'))])
  t.strictSame(made.types.find(({ name }) => name === 'order')!.search, {
    fields: [{ path: ['orderNumber'], keyword: true }],
    edges: [{ edge: 'deliveries', fields: [{ path: ['deliveryNumber'], keyword: false }] }],
  })
})

t.test('what is refused, and for which member', async (t) => {
  for (const [one, member, words] of BAD) {
    const fault = searchConfigFault(one, schema)
    t.equal(fault?.member, member, JSON.stringify(one))
    t.match(fault?.message, words)
    t.match(withSearches(types, [one]).refused, [{ key: one.key, reason: words }])
  }
})

t.test('keys of something else are of no concern', async (t) => {
  for (const key of ['system/graph/order', 'system/graph/order/search/x', 'graph/order/search']) {
    t.equal(searchedNode(key), null)
    t.equal(searchConfigFault({ key, value: 1 }, schema), null)
    t.strictSame(withSearches(types, [{ key, value: 1 }]), { types, refused: [] })
  }
})

t.test('whatever is configured, what is left of it fits, and nothing good is lost', async () => {
  const names = [
    'orderNumber',
    'season',
    'gone',
    'orderTotal',
    `dynamic->'a'`,
    'invoiceAddress.city',
  ]
  const good = new Set(['orderNumber', 'season', `dynamic->'a'`, 'invoiceAddress.city'])
  const some = fc.array(fc.record({ field: fc.constantFrom(...names), keyword: fc.boolean() }), {
    maxLength: 6,
  })
  const line = fc.array(
    fc.constantFrom('description', 'x').map((field) => ({ field })),
    {
      maxLength: 3,
    },
  )
  const edges = fc.array(
    fc.record({ edge: fc.constantFrom('orderLines', 'same', 'none'), fields: line }),
    { maxLength: 3 },
  )
  fc.assert(
    fc.property(some, edges, (own, theirs) => {
      const made = withSearches(types, [config({ fields: own, edges: theirs })])
      const search = made.types.find(({ name }) => name === 'order')!.search!
      const kept = [...new Set(own.map(({ field }) => field))].filter((name) => good.has(name))
      const lines = theirs.find(({ edge: name }) => name === 'orderLines')
      const all = search.fields
        .map(({ path }) => path.at(-1))
        .toSorted()
        .join(' ')
      const wanted = kept
        .map((name) => name.match(/\w+(?='?$)/)![0])
        .toSorted()
        .join(' ')
      return (
        searchFault(search, schema.nodes.get('order')!, schema) === null &&
        all === wanted &&
        search.edges.length === (lines === undefined ? 0 : 1)
      )
    }),
  )
})
