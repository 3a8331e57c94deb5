// Who may define a custom field or edge: a table, and any path and entries against a plain oracle.

import t from 'tap'
import fc from 'fast-check'
import { ORDER_NODE_TYPES } from '../../../commerce/order/graph/node-types.ts'
import { Acl, OWNER_ACL, parseScope } from '../../../protocol/ace.ts'
import { refusalToDefine } from './definition-access.ts'

function aclOf(scope: string): Acl {
  const parsed = parseScope(scope)
  if (!parsed.ok) throw new Error(parsed.reason)
  return new Acl(parsed.aces)
}

/** What the caller lacks; null: they may. */
function lacks(scope: string, key: string, value: unknown): string | null {
  const error = refusalToDefine(aclOf(scope), { key, value }, ORDER_NODE_TYPES)
  return error === null ? null : `${error.code} ${String(error.details!['needs'])}`
}

const FIELD = 'graph/order/fields/x'
const sourced = (source: string): unknown => ({ type: 'text', source })
const needs = (text: string): string => `FORBIDDEN_FIELD ${text}`

t.test('a custom field takes the entry of its source, and all nodes', async (t) => {
  const query = 'registry:write graph/order:query'
  const own = `${query} graph/order:field:dynamic:season`
  const season = sourced(`dynamic->'season'`)
  t.equal(lacks(own, FIELD, season), null)
  t.equal(lacks(`${query} graph/order:field:dynamic`, FIELD, season), null)
  t.equal(lacks(`${query} graph/order:field`, FIELD, season), null)
  t.equal(lacks('graph:query graph:field', FIELD, season), null)
  t.equal(lacks('graph/order:*', FIELD, season), null)
  t.equal(lacks(query, FIELD, season), needs('graph/order:field:dynamic:season'))
  t.equal(
    lacks(own, FIELD, sourced(`dynamic->'Season'`)),
    needs('graph/order:field:dynamic:Season'),
  )
  t.equal(lacks(own, FIELD, sourced('orderNumber')), needs('graph/order:field:orderNumber'))
  const city = sourced('invoiceAddress.city')
  t.equal(lacks(`${query} graph/order:field:invoiceAddress:city`, FIELD, city), null)
  t.equal(lacks(own, FIELD, city), needs('graph/order:field:invoiceAddress:city'))
  t.equal(
    lacks('graph/order:field:dynamic:season', FIELD, season),
    'FORBIDDEN_NODE graph/order:query',
  )
  const attribute = 'region@graph/order:query graph/order:field'
  t.equal(lacks(attribute, FIELD, season), 'FORBIDDEN_NODE graph/order:query')
  t.equal(
    lacks('registry:write', FIELD, season),
    needs('graph/order:query graph/order:field:dynamic:season'),
    'all that is lacking is told',
  )
  t.equal(lacks(own, 'graph/delivery/fields/x', season)?.includes('graph/delivery:query'), true)
  t.equal(lacks('registry:write graph/order:field:x', FIELD, season)?.includes('dynamic'), true)
})

t.test('what no entry can name takes one on what is above it', async (t) => {
  const query = 'graph/order:query'
  for (const [source, entry] of [
    [`dynamic->'a:b'`, 'field:dynamic'],
    [`dynamic->'a b'->'c'`, 'field:dynamic'],
    [`dynamic->"it's"->'c:d'`, "field:dynamic:it's"],
    [`dynamic->'a.b'->'c'`, 'field:dynamic:a.b'],
    [`dynamic->'a'->'b'->'c'`, 'field:dynamic:a'],
  ] as const) {
    t.equal(lacks(query, FIELD, sourced(source)), needs(`graph/order:${entry}`), source)
    t.equal(lacks(`${query} graph/order:${entry}`, FIELD, sourced(source)), null, source)
  }
  t.equal(
    lacks(`${query} graph/order:field:dynamic:a`, FIELD, sourced(`dynamic->'a:b'`)),
    needs('graph/order:field:dynamic'),
  )
})

t.test('a definition that nobody can read may be any field of its node', async (t) => {
  const some = 'graph/order:query graph/order:field:dynamic'
  for (const value of [null, 7, [], 'dynamic', {}, sourced(`dynamic->`), { source: 7 }]) {
    t.equal(lacks(some, FIELD, value), needs('graph/order:field'))
    t.equal(lacks('graph/order:query graph/order:field', FIELD, value), null)
  }
})

t.test('a custom edge takes both its fields, of all nodes', async (t) => {
  const key = 'graph/order/edges/x'
  const edge = { field: 'season', relatedSet: 'deliveries', cardinality: 'many' }
  const own = 'graph/order:query graph/order:field:season'
  const related = 'graph/delivery:query graph/delivery:field:deliveryId'
  t.equal(lacks(`${own} ${related}`, key, edge), null)
  t.equal(lacks(own, key, edge), needs(related))
  t.equal(lacks(related, key, edge), needs(own))
  t.equal(
    lacks(`${own} graph/delivery:field`, key, edge),
    'FORBIDDEN_NODE graph/delivery:query',
    'whoever sees none of the related nodes leads nobody to them',
  )
  const named = { ...edge, relatedField: 'inventoryKey' }
  t.equal(lacks(`${own} ${related}`, key, named), needs('graph/delivery:field:inventoryKey'))
  const unknown = { ...edge, relatedSet: 'parcels' }
  t.equal(lacks(`${own} ${related}`, key, unknown), needs('graph:query graph:field'))
  t.equal(lacks('graph:query graph:field', key, unknown), null)
})

t.test('owners may, and other keys are nobody’s concern', async (t) => {
  const value = sourced('orderNumber')
  t.equal(refusalToDefine(OWNER_ACL, { key: FIELD, value }, ORDER_NODE_TYPES), null)
  const others = ['graph/order/fields', 'graph/order/fields/x/y', 'graph/order/other/x', 'a/graph']
  for (const key of [...others, 'system/graph/order/search', 'enums/graph/order/x/values/y']) {
    t.equal(lacks('registry:write', key, value), null, key)
  }
})

const WORDS = [
  'a',
  'A',
  'a.b',
  "it's",
  'say "a"',
  'a:b',
  'a b',
  'a/b',
  '*',
  'ä',
  'a\\b',
  ':',
  'field',
]
const path = fc.record({
  names: fc.array(fc.constantFrom('dynamic', 'a', 'A', 'field'), { minLength: 1, maxLength: 3 }),
  members: fc.array(fc.constantFrom(...WORDS), { maxLength: 3 }),
})
/** Fields as entries name them; of those that can't be written none is made. */
const entries = fc.array(
  fc.array(fc.constantFrom('dynamic', ...WORDS), { maxLength: 2 }).filter((names) => {
    return names.every((name) => !/[\s:*/]/.test(name))
  }),
  { maxLength: 4 },
)

const quoted = (text: string): string => `'${text.replace(/[\\']/g, (sign) => `\\${sign}`)}'`

t.test('any path and any entries: an entry covers what begins with its names', async () => {
  fc.assert(
    fc.property(path, entries, ({ names, members }, granted) => {
      const source = [names.join('.'), ...members.map(quoted)].join('->')
      const all = [...names, ...members]
      const may = granted.some((entry) => entry.every((name, i) => name === all[i]))
      const scope = granted.map((entry) => ['graph/order:field', ...entry].join(':'))
      const answer = lacks(['graph/order:query', ...scope].join(' '), FIELD, sourced(source))
      if ((answer === null) !== may) throw new Error(`${source}: ${answer}`)
      // What is told to be lacking is what helps.
      const more = answer?.replace('FORBIDDEN_FIELD ', '') ?? ''
      const helped = lacks(`graph/order:query ${more}`, FIELD, sourced(source))
      if (answer !== null && helped !== null) throw new Error(`${source}: ${more}: ${helped}`)
    }),
    { numRuns: 5_000 },
  )
})
