// How node types lie in the search engine: which fields are for finding, what is kept without being
// looked at, and what makes another layout. Source: PROTOCOL 3.13, layout.ts.

import t from 'tap'
import type { FieldDef, NodeType } from '../../protocol/graph/node-type.ts'
import { graphSchema } from '../../protocol/graph/schema.ts'
import { layoutOf } from './layout.ts'

const edge = { node: '', cardinality: 'many', from: '', to: '', sameActor: true } as const

const SHOP: NodeType = {
  name: 'shop',
  set: 'shops',
  idField: 'shopId',
  root: true,
  storage: { kind: 'row' },
  fields: [
    { name: 'shopId', type: 'uuid', indexed: true },
    { name: 'title', type: 'text' },
    { name: 'state', type: 'enum', values: ['a'], indexed: true },
    { name: 'size', type: 'number', indexed: true },
    { name: 'weight', type: 'number' },
    { name: 'isOpen', type: 'boolean', indexed: true },
    { name: 'openedAt', type: 'instant', indexed: true },
    { name: 'closesOn', type: 'date' },
    { name: 'tags', type: '[text]', indexed: true },
    { name: 'address', type: 'object', members: [{ name: 'floor', type: 'number' }] },
    { name: 'dynamic', type: 'dynamic' },
    { name: 'raw', type: 'value' },
  ],
  edges: [
    { ...edge, name: 'shelfRows', node: 'shelfRow', from: 'shopId', to: 'shopId' },
    { ...edge, name: 'rivals', node: 'shop', from: 'rivalId', to: 'shopId', sameActor: false },
  ],
}

const SHELF_ROW: NodeType = {
  name: 'shelfRow',
  set: 'shelfRows',
  idField: 'rowId',
  position: 'place',
  storage: { kind: 'row' },
  fields: [
    { name: 'rowId', type: 'text' },
    { name: 'shopId', type: 'uuid' },
    { name: 'makerId', type: 'uuid' },
  ],
  edges: [
    { ...edge, name: 'shop', node: 'shop', from: 'shopId', to: 'shopId' },
    { ...edge, name: 'ofMaker', node: 'shop', from: 'makerId', to: 'shopId', sameActor: false },
    { ...edge, name: 'alike', node: 'shelfRow', from: 'title', to: 'makerId', sameActor: false },
    // One of the same actor after it takes nothing back.
    { ...edge, name: 'own', node: 'shelfRow', from: 'title', to: 'makerId' },
  ],
}

const SLIP: NodeType = {
  name: 'slip',
  set: 'slips',
  idField: 'slipId',
  storage: { kind: 'embedded', node: 'shelfRow', member: 'slips' },
  fields: [
    { name: 'slipId', type: 'text' },
    { name: 'dynamic', type: 'dynamic' },
  ],
  edges: [],
}

const TYPES = [SHOP, SHELF_ROW, SLIP]
const layout = layoutOf(graphSchema(TYPES))
const unsought = { index: false } as const

t.test('fields people find nodes by, and those that are only read', async (t) => {
  const shop = layout.nodes.get('shop')!
  const { kontor, ...properties } = shop.properties
  t.strictSame(properties, {
    shopId: { type: 'keyword' },
    title: { type: 'keyword', ...unsought },
    state: { type: 'keyword' },
    size: { type: 'double' },
    weight: { type: 'double', ...unsought },
    isOpen: { type: 'boolean' },
    openedAt: { type: 'date' },
    closesOn: { type: 'date', ...unsought },
    tags: { type: 'keyword' },
    address: { dynamic: false, properties: { floor: { type: 'double', ...unsought } } },
    dynamic: { type: 'object', enabled: false },
    raw: { type: 'object', enabled: false },
    // An edge goes by it, though it is no field.
    rivalId: { type: 'keyword', ...unsought },
  })
  t.strictSame(kontor, {
    dynamic: 'strict',
    properties: {
      actor: { type: 'keyword' },
      id: { type: 'keyword' },
      place: { type: 'long', ...unsought },
      deleted: { type: 'boolean' },
      deletedAt: { type: 'date' },
      members: { type: 'flattened' },
      long: { type: 'keyword' },
      rest: { type: 'object', enabled: false },
      nodes: { type: 'long', ...unsought },
      whole: { type: 'object', enabled: false },
    },
  })
  t.strictSame([...shop.actorMembers], ['shopId'])
  t.strictSame(
    shop.members.map(({ name, kind }) => [name, kind]),
    [
      ['shopId', 'text'],
      ['title', 'text'],
      ['state', 'text'],
      ['size', 'plain'],
      ['weight', 'plain'],
      ['isOpen', 'plain'],
      ['openedAt', 'plain'],
      ['closesOn', 'plain'],
      ['tags', 'texts'],
      ['address', 'object'],
      ['dynamic', 'dynamic'],
      ['raw', 'plain'],
      ['rivalId', 'text'],
    ],
  )
})

t.test('what edges of other actors arrive at is found; elements lie in their holder', async (t) => {
  const row = layout.nodes.get('shelfRow')!
  t.equal(row.name, 'shelf-row', "an index's name is lower case")
  const { kontor: _, ...properties } = row.properties
  t.strictSame(properties, {
    rowId: { type: 'keyword', ...unsought },
    shopId: { type: 'keyword', ...unsought },
    makerId: { type: 'keyword' },
    title: { type: 'keyword', ...unsought },
    place: { type: 'double', ...unsought },
    slips: {
      dynamic: false,
      properties: {
        slipId: { type: 'keyword', ...unsought },
        dynamic: { type: 'object', enabled: false },
      },
    },
  })
  t.strictSame([...row.actorMembers], ['shopId'], 'no other id says whose it is')
  t.notOk(layout.nodes.has('slip'), 'it has no index of its own')
})

t.test('another layout has another fingerprint, the same one has the same', async (t) => {
  const withField = (field: FieldDef, at = 'shop'): readonly NodeType[] =>
    TYPES.map((type) => {
      if (type.name !== at) return type
      const others = type.fields.filter(({ name }) => name !== field.name)
      return { ...type, fields: [...others, field] }
    })
  const others = [
    withField({ name: 'more', type: 'text' }),
    withField({ name: 'raw', type: 'text' }),
    withField({ name: 'raw', type: 'value' }, 'slip'),
    TYPES.map((type) => (type === SHELF_ROW ? { ...type, name: 'shelf' } : type)).slice(0, 2),
    TYPES.map((type) => (type === SHELF_ROW ? { ...type, position: 'at' } : type)),
    withField({ name: 'raw', type: 'value', indexed: true }).map((type) =>
      type.name === 'shop'
        ? { ...type, fields: type.fields.map((field) => ({ ...field, indexed: true })) }
        : type,
    ),
  ]
  const prints = others.map((types) => layoutOf(graphSchema(types)).fingerprint)
  t.equal(new Set([layout.fingerprint, ...prints]).size, others.length + 1)
  t.equal(layoutOf(graphSchema(structuredClone(TYPES))).fingerprint, layout.fingerprint)
})
