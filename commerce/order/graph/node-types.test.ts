// Node types of the order against each other, and the docs of orders against them.

import fc from 'fast-check'
import t from 'tap'
import { instantMs } from '../../../protocol/graph/filter/instants.ts'
import type { FieldDef, NodeType } from '../../../protocol/graph/node-type.ts'
import { isUuid } from '../../../protocol/ids.ts'
import { id, OrderDriver } from '../testing/order-driver.ts'
import { scriptArbitrary } from '../testing/random-commands.ts'
import { deliveredOrder } from '../testing/sample-orders.ts'
import { ORDER_NODE_TYPES } from './node-types.ts'

const types = new Map(ORDER_NODE_TYPES.map((type) => [type.name, type]))
const fieldOf = (type: NodeType, name: string) => type.fields.find((field) => field.name === name)

t.test('every edge leads from a field to a field of a node that is there', (t) => {
  for (const type of ORDER_NODE_TYPES) {
    t.ok(fieldOf(type, type.idField), `${type.name}.${type.idField}`)
    t.ok(fieldOf(type, 'lastModified'), `${type.name}.lastModified`)
    for (const edge of type.edges) {
      const name = `${type.name}.${edge.name}`
      const target = types.get(edge.node)
      t.ok(target, name)
      const [from, to] = [fieldOf(type, edge.from), fieldOf(target!, edge.to)]
      t.equal(from?.type, 'uuid', `${name} from ${edge.from}`)
      t.equal(to?.type, 'uuid', `${name} to ${edge.to}`)
      if (type.storage.kind === 'row') t.ok(from!.indexed, `${name}: ${edge.from} is indexed`)
      if (target!.storage.kind === 'row') t.ok(to!.indexed, `${name}: ${edge.to} is indexed`)
      if (edge.cardinality === 'single') t.equal(edge.to, target!.idField, `${name} finds one`)
    }
  }
  t.end()
})

t.test('embedded and history nodes have their parent', (t) => {
  for (const { storage, name } of ORDER_NODE_TYPES) {
    if (storage.kind === 'embedded') t.equal(types.get(storage.node)?.storage.kind, 'row', name)
    if (storage.kind === 'history') t.ok(fieldOf(types.get(name)!, storage.parentField), name)
  }
  t.strictSame(
    ORDER_NODE_TYPES.map((type) => type.set),
    [
      'orders',
      'deliveries',
      'orderLines',
      'orderLineSkus',
      'staticDiscounts',
      'calculatedDiscounts',
      'returns',
      'invoices',
      'invoiceLines',
      'invoiceLineDiscounts',
      'orderJournalEntries',
      'activityLogs',
    ],
  )
  t.end()
})

/** What is wrong with a value of a field, or null. */
function problemOf(field: FieldDef, value: unknown): string | null {
  const fits: Record<FieldDef['type'], () => boolean> = {
    text: () => typeof value === 'string',
    number: () => Number.isFinite(value) && !Object.is(value, -0),
    boolean: () => typeof value === 'boolean',
    instant: () => typeof value === 'string' && instantMs(value) !== null,
    date: () => /^\d{4}-\d\d-\d\d$/.test(String(value)),
    uuid: () => isUuid(String(value)),
    enum: () => field.values!.includes(value as string),
    '[text]': () => Array.isArray(value) && value.every((item) => typeof item === 'string'),
    object: () =>
      Object.entries(value as object).every(([name, item]) => {
        const member = field.members!.find((known) => known.name === name)
        return member !== undefined && problemOf(member, item) === null
      }),
    dynamic: () => typeof value === 'object' && value !== null && !Array.isArray(value),
    value: () => value !== undefined,
  }
  return fits[field.type]() ? null : `${field.name}: ${JSON.stringify(value)} is no ${field.type}`
}

/** Fields and embedded lists of a doc, all of them declared and of their types. */
function checkDoc(node: string, doc: Readonly<Record<string, unknown>>): void {
  const type = types.get(node)!
  for (const [name, value] of Object.entries(doc)) {
    const inside = ORDER_NODE_TYPES.find(
      ({ storage }) =>
        storage.kind === 'embedded' && storage.node === node && storage.member === name,
    )
    if (inside !== undefined) {
      for (const item of value as Record<string, unknown>[]) checkDoc(inside.name, item)
      continue
    }
    const field = fieldOf(type, name)
    const problem = field === undefined ? `${name} is not declared` : problemOf(field, value)
    if (problem !== null) throw new Error(`${node}: ${problem}`)
  }
  for (const name of [type.idField, 'lastModified']) {
    if (doc[name] === undefined) throw new Error(`${node} without ${name}`)
  }
}

t.test('docs hold declared fields of their types, and nothing else', (t) => {
  fc.assert(
    fc.property(scriptArbitrary, ({ beginning, batches, currencyCode, taxIncluded }) => {
      const order = new OrderDriver()
      if (!order.create(beginning, { currencyCode, taxIncluded }).ok) order.create()
      for (const batch of batches) order.apply(...batch)
      const { behaviour, state } = order
      for (const ref of behaviour.nodes(state!)) {
        const found = behaviour.project(state!, ref)!
        if (found.id !== found.doc[types.get(ref.node)!.idField]) throw new Error(found.id)
        checkDoc(ref.node, found.doc)
      }
      for (const { node, doc } of order.history()) checkDoc(node, doc)
    }),
    { numRuns: 60 },
  )
  t.end()
})

t.test('nodes that are not there project to nothing', (t) => {
  const { behaviour, state } = deliveredOrder()
  for (const node of [...types.keys(), 'payment']) {
    t.equal(behaviour.project(state!, { node, id: id(99) }), null, node)
  }
  t.end()
})

t.test('ids of embedded nodes are their own and lasting', (t) => {
  const order = deliveredOrder()
  order.do({ type: 'createStaticOrderDiscount', value: 10 })
  const ids = (order.doc('order')['calculatedDiscounts'] as { calculatedDiscountId: string }[]).map(
    (doc) => doc.calculatedDiscountId,
  )
  t.equal(new Set(ids).size, 3)
  t.ok(ids.every(isUuid))
  t.end()
})
