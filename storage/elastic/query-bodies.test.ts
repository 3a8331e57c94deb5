// Conditions as the search engine is asked them, word for word: what it can say whole, what it only
// narrows down, and how deep it goes. That they mean what the language promises, the suite's
// property says (test/conformance/elastic/search.test.ts). Source: CONTRACT Appendix A, query.ts.

import t from 'tap'
import { compileCondition } from '../../protocol/graph/evaluate.ts'
import type { Condition } from '../../protocol/graph/plan.ts'
import { planOf } from '../conformance/search-index.ts'
import { SCHEMA } from '../conformance/search-nodes.ts'
import { compileQuery } from '../memory/search-query.ts'
import { sourceOf } from './document.ts'
import type { Query } from './engine.ts'
import { layoutOf, TERM_CHARS_MAX } from './layout.ts'
import { keyOf, valueOf } from './members.ts'
import { conditionQueryOf, sortsOf, type Place } from './query.ts'
import { livingOf, placeOfStep, selectionOf } from './selection.ts'

const LAYOUT = layoutOf(SCHEMA)
const ACTOR = '0190b000-0000-7000-8000-000000000001'

const stepOf = (edge: string, filter: string | null, more: object = {}) =>
  planOf([{ edge, ...(filter !== null && { filter }), ...more }]).steps[0]!

const askedOf = (edge: string, filter: string) => {
  const step = stepOf(edge, filter)
  const { layout: _, ...place } = placeOfStep(step, LAYOUT, SCHEMA)
  return conditionQueryOf(step.filter!, place)
}

const term = (field: string, value: string | number | boolean): Query => {
  return { term: { [field]: { value } } }
}
const exists = (field: string): Query => ({ exists: { field } })
const not = (...queries: Query[]): Query => ({ bool: { must_not: queries } })
const except = (a: Query, b: Query): Query => ({ bool: { filter: [a], must_not: [b] } })
const all = (...queries: Query[]): Query => ({ bool: { filter: queries } })
const any = (...queries: Query[]): Query => ({ bool: { should: queries, minimum_should_match: 1 } })
const range = (field: string, of: object): Query => ({ range: { [field]: of } })
const X = (shape: 'S' | 'A' | 'O'): string => `kontor.members.${keyOf(shape, ['dynamic', 'x'])}`
const EVERYTHING: Query = { match_all: {} }

const EXACT: readonly (readonly [filter: string, query: Query])[] = [
  ["name == 'a'", term('name', 'a')],
  ["name != 'a'", except(exists('name'), term('name', 'a'))],
  ["not (name == 'a')", not(term('name', 'a'))],
  ["not (not (name == 'a'))", not(not(term('name', 'a')))],
  ['area < 2', range('area', { lt: 2 })],
  ['2 < area', range('area', { gt: 2 })],
  ['area <= 2', range('area', { lte: 2 })],
  ['2 <= area', range('area', { gte: 2 })],
  ['2 == area', term('area', 2)],
  ["name > 'b'", range('name', { gt: 'b' })],
  ['isPublic', term('isPublic', true)],
  ['isPublic != true', except(exists('isPublic'), term('isPublic', true))],
  ["closesOn >= '2026-01-02'", range('closesOn', { gte: '2026-01-02' })],
  ["openedAt == '2026-01-01'", term('openedAt', '2026-01-01T00:00:00.000Z')],
  ['openedAt + 1 day < now', range('openedAt', { lt: '2026-01-31T00:00:00.000Z' })],
  ['openedAt - 1 day >= now', range('openedAt', { gte: '2026-02-02T00:00:00.000Z' })],
  ['motto == nothing', not(exists('motto'))],
  ['motto != nothing', not(not(exists('motto')))],
  ["name in ['a', 'b']", { terms: { name: ['a', 'b'] } }],
  ["tags anyof ['a', 'b']", { terms: { tags: ['a', 'b'] } }],
  ["tags allof ['a', 'b']", all(term('tags', 'a'), term('tags', 'b'))],
  ["name startsWith 'a*'", { prefix: { name: { value: 'a*' } } }],
  ["name startsWith ''", exists('name')],
  ["name contains ''", exists('name')],
  ["dynamic->'x' == 1", term(X('S'), valueOf(1))],
  ["dynamic->'x' != 'a'", except(range(X('S'), { gte: 't', lt: 'u' }), term(X('S'), 'ta'))],
  ["dynamic->'x' < 1", range(X('S'), { gte: 'n', lt: valueOf(1) })],
  ["dynamic->'x' <= 'a'", range(X('S'), { gte: 't', lte: 'ta' })],
  ["dynamic->'x' > 'a'", range(X('S'), { gt: 'ta', lt: 'u' })],
  ["dynamic->'x' >= 1", range(X('S'), { gte: valueOf(1), lt: 'o' })],
  ["dynamic->'x' == true", term(X('S'), 'b1')],
  ["dynamic->'x' == nothing", not(exists(X('S')), exists(X('A')), exists(X('O')))],
  ["dynamic->'x' in [1, 2]", { terms: { [X('S')]: [valueOf(1), valueOf(2)] } }],
  ["dynamic->'x' anyof ['a']", { terms: { [X('A')]: ['eta'] } }],
  ["dynamic->'x' allof []", term(X('A'), '[')],
  ["dynamic->'x' startsWith 'a'", { prefix: { [X('S')]: { value: 'ta' } } }],
  ["name == 'a' and area > 1", all(term('name', 'a'), range('area', { gt: 1 }))],
  ["name == 'a' or area > 1", any(term('name', 'a'), range('area', { gt: 1 }))],
]

t.test('what the engine can say whole', async (t) => {
  for (const [filter, query] of EXACT) {
    t.strictSame(askedOf('libraries', filter), { query, exact: true }, filter)
  }
})

/** Where a text may be: in its term, or in what is too long for one. */
const either = (...queries: Query[]): Query => ({ bool: { should: queries } })
const long = (field: string): Query => term('kontor.long', field)
const wildcard = (field: string, value: string): Query => ({ wildcard: { [field]: { value } } })

const ROUGH: readonly (readonly [filter: string, query: Query])[] = [
  ["name contains 'a*?'", either(wildcard('name', '*a\\*\\?*'), long('name'))],
  ["name endsWith 'b\\\\'", either(wildcard('name', '*b\\\\'), long('name'))],
  ["address.city contains 'a'", either(wildcard('address.city', '*a*'), long('address.city'))],
  ["dynamic->'x' contains 'a'", { prefix: { [X('S')]: { value: 't' } } }],
  ['name == motto', all(exists('name'), exists('motto'))],
  ['area + rating < 1', all(exists('area'), exists('rating'))],
  ['tags == nothing', not(exists('tags'))],
  ["name contains 'a' and area > 1", all(either(wildcard('name', '*a*'), long('name')), range('area', { gt: 1 }))],
  ["not (name contains 'a')", EVERYTHING],
  ["not (name contains 'a') and area > 1", range('area', { gt: 1 })],
] // prettier-ignore

t.test('what it only narrows down', async (t) => {
  for (const [filter, query] of ROUGH) {
    t.strictSame(askedOf('libraries', filter), { query, exact: false }, filter)
  }
})

t.test('of elements it says what any of them holds, and no more', async (t) => {
  const ofNotes: (readonly [string, Query])[] = [
    ['weight == 1', term('notes.weight', 1)],
    ['weight != 1', exists('notes.weight')],
    ['not (weight == 1)', EVERYTHING],
    ['weight == nothing', EVERYTHING],
    ['weight in [1, 2]', { terms: { 'notes.weight': [1, 2] } }],
    ["body contains 'a'", either(wildcard('notes.body', '*a*'), long('notes'))],
    ["body == 'a' and weight > 1", all(term('notes.body', 'a'), range('notes.weight', { gt: 1 }))],
  ]
  for (const [filter, query] of ofNotes) {
    t.strictSame(askedOf('notes', filter), { query, exact: false }, filter)
  }
  t.strictSame(askedOf('leaves', "dynamic->'x' == 1"), { query: EVERYTHING, exact: false })
})

t.test('long texts in objects and elements are found by any part of them', async (t) => {
  const text = `${'x'.repeat(TERM_CHARS_MAX)} end`
  const doc = { address: { city: text }, notes: [{ noteId: '1', body: text }] }
  const { properties } = LAYOUT.nodes.get('library')!
  const write = { node: 'library', actorId: ACTOR, id: ACTOR, version: 1, doc }
  const layout = LAYOUT.nodes.get('library')!
  const source = JSON.parse(sourceOf(write, layout, 0)) as Record<string, unknown>
  for (const [edge, field] of [
    ['libraries', 'address.city'],
    ['notes', 'body'],
  ] as const) {
    for (const filter of [`${field} contains ' end'`, `${field} endsWith 'end'`]) {
      t.ok(compileQuery(askedOf(edge, filter).query, properties)(source), `${edge} ${filter}`)
    }
  }
})

/** How many queries stand one in another. */
function depthOf(query: unknown): number {
  if (typeof query !== 'object' || query === null) return 0
  const below = Object.values(query).map(depthOf)
  return Math.max(0, ...below) + ('bool' in query ? 1 : 0)
}

t.test('the engine takes thirty levels: what nests deeper is looked at here', async (t) => {
  const { properties } = LAYOUT.nodes.get('library')!
  const place: Place = { properties, within: null, lists: new Set() }
  const isA: Condition = {
    ...{ kind: 'compare', as: 'text', operator: '!=' },
    left: { kind: 'field', path: ['name'], type: 'text' },
    right: { kind: 'value', value: 'a' },
  }
  const wraps: ((of: Condition) => Condition)[] = [
    (of) => ({ kind: 'not', of }),
    (of) => ({ kind: 'and', of: [of, isA] }),
    (of) => ({ kind: 'or', of: [of, isA] }),
  ]
  const sources = ['a', 'b'].map((name) => ({ name }))
  for (const kinds of [wraps, ...wraps.map((wrap) => [wrap])]) {
    let condition: Condition = isA
    for (let level = 1; level <= 60; level++) {
      condition = kinds[level % kinds.length]!(condition)
      const compiled = conditionQueryOf(condition, place)
      const query = livingOf([compiled])
      if (depthOf(query) > 28) t.fail(`${depthOf(query)} levels`)
      if (level < 15 && !compiled.exact) t.fail(`${level} levels are no more than it takes`)
      const [test, finds] = [compileCondition(condition), compileQuery(query, properties)]
      for (const source of sources) {
        if (test(source) && !finds(source)) t.fail(`not found at ${level} levels`)
        if (compiled.exact && test(source) !== finds(source)) t.fail(`not exact at ${level} levels`)
      }
    }
  }
})

t.test('orders, what a step reads, and what is removed', async (t) => {
  const last = { missing: '_last' } as const
  const step = stepOf('libraries', "name == 'a' and motto contains 'b'", {
    orderBy: "area desc, dynamic->'x', address.city",
    node: {
      fields: ['rating', 'address.floor'],
      navigate: [{ edge: 'city' }, { edge: 'shelves' }, { edge: 'notes' }],
    },
  })
  const place = placeOfStep(step, LAYOUT, SCHEMA)
  const own = [
    { area: { order: 'desc', ...last } },
    { [X('S')]: { order: 'asc', ...last } },
    { 'address.city': { order: 'asc', ...last } },
  ]
  t.strictSame(sortsOf(step.orderBy, place), own)
  const selection = selectionOf(step, LAYOUT, SCHEMA)
  const byId = [
    { 'kontor.id': { order: 'asc', ...last } },
    { 'kontor.actor': { order: 'asc', ...last } },
  ]
  t.strictSame(selection.sort, [...own, ...byId])
  const members = ['rating', 'address', 'area', 'dynamic', 'cityCode', 'libraryId', 'notes']
  t.strictSame(
    new Set(selection.source),
    new Set([
      ...['kontor.actor', 'kontor.id', 'kontor.place', 'kontor.rest'],
      // Those that the condition reads: the documents are looked at.
      ...[...members, 'name', 'motto'],
      // What is below the own node is read along.
      ...['kontor.nodes', 'kontor.whole.shelf'],
    ]),
  )
  t.equal(selection.isWhole, true)
  const removed = term('kontor.deleted', true)
  t.strictSame(livingOf([selection.compiled]), {
    bool: { filter: [selection.compiled.query], must_not: [removed] },
  })
  const bare = selectionOf(stepOf('libraries', "name == 'a'"), LAYOUT, SCHEMA)
  t.strictSame(
    [bare.test, bare.isWhole, bare.sort],
    [null, false, byId],
    'what the engine has said whole is not looked at again',
  )
  t.notOk(bare.source.includes('name'), 'nor read')
  t.strictSame(livingOf([]), { bool: { must_not: [removed] } })
})
