// Values of custom fields against a plain table, and what is added to documents as a property.

import fc from 'fast-check'
import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { completing, valueAs } from './custom-fields.ts'
import { compareDocs } from './evaluate.ts'
import { planNavigations } from './navigation.ts'
import type { FieldType, NodeType } from './node-type.ts'
import { FULL_ACCESS } from './planning.ts'
import { graphSchema } from './schema.ts'

type Doc = Readonly<Record<string, unknown>>

const UUID = '018f2b3c-4d5e-7abc-8def-0123456789ab'

/** Every value by every type: what the field holds; left out: nothing. */
const TABLE: readonly [value: unknown, as: Partial<Record<FieldType, unknown>>][] = [
  ['summer', { text: 'summer', enum: 'summer' }],
  ['', { text: '', enum: '' }],
  [7, { number: 7 }],
  [-0.5, { number: -0.5 }],
  [Number.NaN, {}],
  [true, { boolean: true }],
  [false, { boolean: false }],
  [null, {}],
  [undefined, {}],
  [{}, {}],
  [[], { '[text]': [] }],
  [['a', 'b', 'a'], { '[text]': ['a', 'b'] }],
  [['a', 1], {}],
  ['7', { text: '7', enum: '7' }],
  ['true', { text: 'true', enum: 'true' }],
  [UUID, { text: UUID, enum: UUID, uuid: UUID }],
  [UUID.toUpperCase(), { text: UUID.toUpperCase(), enum: UUID.toUpperCase(), uuid: UUID }],
  [
    '2026-02-28',
    {
      text: '2026-02-28',
      enum: '2026-02-28',
      date: '2026-02-28',
      instant: '2026-02-28T00:00:00.000Z',
    },
  ],
  ['2026-02-30', { text: '2026-02-30', enum: '2026-02-30' }],
  [
    '2026-02-28T12:00:00+01:00',
    {
      text: '2026-02-28T12:00:00+01:00',
      enum: '2026-02-28T12:00:00+01:00',
      instant: '2026-02-28T11:00:00.000Z',
    },
  ],
]
const TYPES: readonly FieldType[] = [
  'text',
  'number',
  'boolean',
  'instant',
  'date',
  'uuid',
  'enum',
  '[text]',
  'object',
  'dynamic',
  'value',
]

t.test('a value is what the type says, or missing', async (t) => {
  for (const [value, as] of TABLE) {
    for (const type of TYPES) {
      t.strictSame(valueAs(type, value), as[type], `${JSON.stringify(value)} as ${type}`)
    }
  }
})

const type: NodeType = {
  name: 'order',
  set: 'orders',
  idField: 'orderId',
  storage: { kind: 'row' },
  edges: [],
  fields: [
    { name: 'orderId', type: 'uuid' },
    { name: 'deep', type: 'text', custom: true, source: ['dynamic', 'a', 'b'] },
    { name: 'size', type: 'number', custom: true, source: ['dynamic', 'size'] },
  ],
}

const paths = fc.constantFrom('a', 'b', 'size', 'other', 'constructor', 'length')
const json = fc
  .letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom('x', '', 1, 2.5, true, null),
      fc.dictionary(paths, tie('value')),
      fc.array(tie('value'), { maxLength: 2 }),
    ),
  }))
  .value.map((value): unknown => JSON.parse(JSON.stringify(value)))

/** As text, the members of the document by name. */
const sorted = (doc: object): string =>
  JSON.stringify(Object.entries(doc).toSorted(([a], [b]) => (a < b ? -1 : 1)))

t.test('a document gets what its sources hold, and is not changed', async (t) => {
  const complete = completing([type])
  fc.assert(
    fc.property(json, json, (dynamic, stale) => {
      const doc = { orderId: UUID, dynamic, deep: stale }
      const before = JSON.stringify(doc)
      const { doc: made } = complete({ node: 'order', doc })
      t.equal(JSON.stringify(doc), before)
      const found = JSON.parse(JSON.stringify({ d: dynamic })) as {
        d: { a?: { b?: unknown }; size?: unknown } | null
      }
      const isRecord = (value: unknown): boolean => typeof value === 'object' && value !== null
      const a = isRecord(found.d) ? found.d?.a : undefined
      const deep = isRecord(a) && Object.hasOwn(a!, 'b') ? a!.b : undefined
      const size = isRecord(found.d) ? found.d?.size : undefined
      const wanted: Record<string, unknown> = { orderId: UUID, dynamic }
      if (typeof deep === 'string') wanted['deep'] = deep
      if (typeof size === 'number') wanted['size'] = size
      t.equal(sorted(made), sorted(wanted))
    }),
  )
})

const PRICES: NodeType = {
  ...type,
  name: 'price',
  set: 'prices',
  storage: { kind: 'embedded', node: 'order', member: 'prices' },
  fields: [
    {
      name: 'of',
      type: 'dynamic',
      custom: true,
      source: ['dynamic', 'of'],
      dimensions: { names: ['channel', 'locale'], of: 'number' },
    },
  ],
}

t.test('dimensions keep the values of their type, by both keys', async (t) => {
  const complete = completing([type, PRICES])
  const keys = fc.constantFrom('web', 'sv', 'constructor', 'sv-SE')
  const leaf = fc.oneof(fc.integer(), fc.constantFrom<unknown>('1', null, [1], true))
  const byLocale = fc.oneof(fc.dictionary(keys, leaf), leaf)
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.dictionary(keys, byLocale), leaf)), (held) => {
      const prices = held.map((of) => ({ dynamic: { of }, of: 'stale' }))
      const doc = { orderId: UUID, prices, dynamic: { size: 3 } }
      const before = JSON.stringify(doc)
      const made = complete({ node: 'order', doc }).doc as Doc
      t.equal(JSON.stringify(doc), before)
      t.equal(made['size'], 3, 'the node has its own, too')
      for (const [i, one] of (made['prices'] as Doc[]).entries()) {
        const values: string[] = []
        for (const [channel, of] of Object.entries(held[i] ?? {}) as [string, object][]) {
          if (typeof of !== 'object' || of === null || Array.isArray(of)) continue
          for (const [locale, value] of Object.entries(of)) {
            if (typeof value === 'number') values.push(`${channel} ${locale} ${value}`)
          }
        }
        const kept = Object.entries((one['of'] ?? {}) as Record<string, Doc>).flatMap(
          ([channel, of]) =>
            Object.entries(of).map(([locale, value]) => `${channel} ${locale} ${String(value)}`),
        )
        t.strictSame(kept, values)
        t.equal(Object.hasOwn(one, 'of'), values.length > 0, 'none at all is missing')
      }
    }),
  )
})

t.test('a value of a dimension is sorted as a member, as all engines have it', async (t) => {
  const own = { ...PRICES, storage: { kind: 'row' as const }, root: true, idField: 'orderId' }
  const fields = [{ name: 'orderId', type: 'uuid' as const }, ...own.fields]
  const schema = graphSchema([{ ...own, fields, edges: [] }])
  const body = [{ edge: 'prices', orderBy: 'of.web.sv desc', node: { fields: ['orderId'] } }]
  const given = { nowMs: 0, limits: LIMITS.graph }
  const { orderBy } = planNavigations(body, schema, FULL_ACCESS, given).steps[0]!
  t.strictSame(orderBy, [{ path: ['of', 'web', 'sv'], direction: 'desc', as: 'any' }])
  const docs = [2, undefined, 10].map((sv) => ({ of: { web: { sv } } }))
  const found = docs.toSorted((a, b) => compareDocs(orderBy, a, b)).map(({ of }) => of.web.sv)
  t.strictSame(found, [10, 2, undefined])
})

t.test('other nodes and removals stay as they are; nodes beneath are completed', async (t) => {
  const complete = completing([type])
  const other = { node: 'delivery', doc: { dynamic: { size: 1 } } }
  t.equal(complete(other), other)
  t.strictSame(complete({ node: 'order', doc: null }), { node: 'order', doc: null })
  const inner = { node: 'order', doc: { dynamic: { size: 2 } } }
  t.strictSame(complete({ ...other, whole: [inner, other] }).whole, [
    { node: 'order', doc: { dynamic: { size: 2 }, size: 2 } },
    other,
  ])
  t.equal(completing([])(inner), inner)
})
