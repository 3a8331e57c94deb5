// Definitions against a plain table: which are taken, which are refused and for what, and what a
// set of them makes of the node types, whatever is in it.

import fc from 'fast-check'
import t from 'tap'
import { ORDER_NODE_TYPES } from '../../../commerce/order/graph/node-types.ts'
import { LIMITS } from '../../../config/limits.ts'
import { graphSchema } from '../../../protocol/graph/schema.ts'
import { customTypes, type Definition, definitionFault, placeOf, without } from './definitions.ts'

const types = ORDER_NODE_TYPES
const none = (): readonly string[] => []
const field = (value: object, name = 'season', node = 'order'): Definition => ({
  key: `graph/${node}/fields/${name}`,
  value: { type: 'text', source: `dynamic->'season'`, ...value },
})
const edge = (value: object, name = 'sameCustomer', node = 'order'): Definition => ({
  key: `graph/${node}/edges/${name}`,
  value: {
    field: 'customerNumber',
    relatedSet: 'orders',
    relatedField: 'customerNumber',
    cardinality: 'many',
    ...value,
  },
})

const GOOD: readonly Definition[] = [
  field({}),
  field({ source: 'dynamic -> "season" -> "name"' }),
  field({ source: 'invoiceAddress.city' }),
  field({ source: 'orderState' }),
  field({ source: 'createdAt' }),
  field({ type: 'number', source: 'orderTotal' }),
  field({ type: 'number' }),
  field({ type: '[text]', source: 'tags' }),
  field({ type: 'enum', values: 'channels' }),
  field({ type: 'enum', values: 'definitions/seasons' }),
  field({ type: 'enum', enumDefinition: 'seasons' }),
  field({ type: 'enum' }),
  field({ dimensions: ['locale'] }),
  field({ type: 'number', dimensions: ['channel', 'locale'] }),
  field({ type: 'enum', values: 'channels', dimensions: ['locale'] }),
  field({ dimensions: [], source: 'orderState' }),
  field({}, 'x', 'delivery'),
  field({ source: 'skuNumber' }, 'x', 'orderLineSku'),
  field({ type: 'instant', source: 'timestamp' }, 'x', 'orderJournalEntry'),
  edge({}),
  edge({ relatedField: undefined, field: 'orderId' }),
  edge({ relatedSet: 'invoiceLines', field: 'orderId', relatedField: 'referenceId' }),
  edge({ cardinality: 'single' }),
]

const BAD: readonly [definition: Definition, member: string, words: RegExp][] = [
  [field({}, 'x', 'ordr'), 'key', /no node "ordr"; did you mean order/],
  [edge({}, 'x', 'orderLineSku'), 'key', /within other nodes/],
  [edge({}, 'x', 'orderJournalEntry'), 'key', /within other nodes/],
  [field({}, 'orderNumber'), 'key', /order has orderNumber already/],
  [field({}, 'ORDERNUMBER'), 'key', /order has orderNumber already/],
  [field({}, 'deliveries'), 'key', /order has deliveries already/],
  [field({}, 'skus', 'orderLine'), 'key', /orderLine has skus already/],
  [field({}, '__proto__'), 'key', /meaning of its own/],
  [field({}, 'And'), 'key', /meaning of its own/],
  [field({}, 'kontor'), 'key', /meaning of its own/],
  [field({}, 'x'.repeat(65)), 'key', /at most 64 characters/],
  [field({ source: `dynamc->'x'` }), 'source', /no field dynamc; did you mean dynamic/],
  [field({ source: 'invoiceAddress.town' }), 'source', /no member town/],
  [field({ source: 'dynamic' }), 'source', /holds many values/],
  [field({ source: 'invoiceAddress' }), 'source', /holds many values/],
  [field({ source: `dynamic->'__proto__'` }), 'source', /__proto__/],
  [field({ source: `orderNumber->'x'` }), 'source', /-> is for dynamic/],
  [field({ source: 'x'.repeat(1_025) }), 'source', /longer than 1024/],
  [field({ type: 'number', source: 'orderNumber' }), 'type', /never a number/],
  [field({ source: 'orderTotal' }), 'type', /is of the type number, which is never a text/],
  [field({ values: 'channels' }), 'values', /only an enum has values/],
  [field({ type: 'enum', values: 'colours' }), 'values', /one of channels, inventories/],
  [field({ type: 'enum', values: 'channels', enumDefinition: 'a' }), 'enumDefinition', /exclude/],
  [field({ dimensions: ['locale'], source: 'tags' }), 'dimensions', /tags of order is one value/],
  [field({ dimensions: ['channel'], source: 'orderNumber' }), 'dimensions', /by channel/],
  [{ key: 'graph/order/fields/x', value: null }, '', /no secret/],
  [edge({}, 'deliveries'), 'key', /order has deliveries already/],
  [edge({}, 'orderNumber'), 'key', /order has orderNumber already/],
  [edge({ relatedSet: 'order' }), 'relatedSet', /no base set "order"; did you mean orders/],
  [edge({ relatedSet: 'orderLineSkus' }), 'relatedSet', /within other nodes/],
  [edge({ field: 'customer' }), 'field', /order has no field customer; did you mean/],
  [edge({ field: `dynamic->'x'` }), 'field', /define a custom field/],
  [edge({ relatedField: 'x' }), 'relatedField', /order has no field x/],
  [edge({ field: 'tags' }), 'relatedField', /no edge goes by order.tags/],
  [edge({ field: 'orderTotal' }), 'relatedField', /never equal/],
]

t.test('what is taken', async (t) => {
  for (const one of GOOD) {
    t.equal(definitionFault(one, types), null, JSON.stringify(one))
    const made = customTypes(types, [one], none)
    t.strictSame(made.refused, [])
    t.doesNotThrow(() => graphSchema(made.types))
    const { schema } = { schema: graphSchema(made.types) }
    t.equal(definitionFault(one, without(schema, one.key)), null, 'written again')
  }
})

t.test('what is refused, and for which member', async (t) => {
  for (const [one, member, words] of BAD) {
    const fault = definitionFault(one, types)
    t.equal(fault?.member, member, JSON.stringify(one))
    t.match(fault?.message, words)
    const made = customTypes(types, [one], none)
    t.strictSame(made.types, types, 'it changes nothing')
    t.match(made.refused, [{ key: one.key, reason: words }])
  }
})

t.test('keys of something else are of no concern', async (t) => {
  for (const key of ['channels/a', 'graph/order', 'graph/order/fields', 'graph/order/fields/a/b']) {
    t.equal(placeOf(key), null)
    t.equal(definitionFault({ key, value: 1 }, types), null)
    t.strictSame(customTypes(types, [{ key, value: 1 }], none), { types, refused: [] })
  }
})

t.test('an edge goes by custom fields, whichever key comes first', async (t) => {
  const sku = field({ source: `dynamic->'sku'` }, 'zSku', 'orderLine')
  const by = edge(
    { field: 'productNumber', relatedSet: 'orderLines', relatedField: 'zSku' },
    'a',
    'orderLine',
  )
  const made = customTypes(types, [by, sku], none)
  t.strictSame(made.refused, [])
  t.ok(graphSchema(made.types).nodes.get('orderLine')?.edges.get('a')?.custom)
  t.match(customTypes(types, [by], none).refused, [{ key: by.key }], 'without it there is none')
})

t.test('a node has no more than the bounds', async (t) => {
  const many = Array.from({ length: LIMITS.graph.customFieldsMax + 2 }, (_, i) =>
    field({}, `f${String(i).padStart(3, '0')}`),
  )
  const made = customTypes(types, many, none)
  t.strictSame(
    made.refused.map(({ key }) => key),
    many.slice(-2).map(({ key }) => key),
  )
  t.match(definitionFault(field({}), made.types), { message: /50 custom fields, that is the most/ })
})

t.test('an enum has what it is offered', async (t) => {
  const asked: unknown[] = []
  const made = customTypes(types, [field({ type: 'enum', enumDefinition: 'seasons' })], (place) => {
    asked.push(place)
    return ['summer']
  })
  t.strictSame(asked, [{ node: 'order', field: 'season', values: 'definitions/seasons' }])
  const found = graphSchema(made.types).nodes.get('order')!.fields.get('season')!
  t.strictSame(found.values, ['summer'])
  t.strictSame(found.source, ['dynamic', 'season'])
})

t.test('whatever is defined, the schema fits together', async () => {
  const all = [...GOOD, ...BAD.map(([one]) => one)]
  const names = fc.constantFrom('a', 'A', 'b', 'season', 'Season', 'orderNumber')
  const one = fc.tuple(fc.constantFrom(...all), names).map(([{ key, value }, name]) => ({
    key: key.replace(/[^/]*$/, name),
    value,
  }))
  fc.assert(
    fc.property(fc.uniqueArray(one, { selector: ({ key }) => key, maxLength: 12 }), (some) => {
      const made = customTypes(types, some, none)
      graphSchema(made.types)
      const count = made.types.reduce(
        (sum, { fields, edges }) =>
          sum + [...fields, ...edges].filter(({ custom }) => custom).length,
        0,
      )
      const ours = some.filter(({ key }) => placeOf(key) !== null)
      return count + made.refused.length === ours.length
    }),
  )
})
