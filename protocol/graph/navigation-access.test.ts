// The planner and permissions: what a token covers of nodes, fields, filters, orders and history.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { SCHEMA } from '../../storage/conformance/search-nodes.ts'
import type { RequestError } from '../errors.ts'
import { followedEdges } from './followed.ts'
import { metaOf } from './meta.ts'
import { planNavigations } from './navigation.ts'
import type { EdgeDef } from './node-type.ts'
import type { Condition } from './plan.ts'
import { FULL_ACCESS, type GraphAccess } from './planning.ts'
import { plan, refusal, filtered } from './testing/planned.ts'

const ids = (...values: string[]): Condition => ({
  kind: 'in',
  as: 'text',
  operand: { kind: 'field', path: ['libraryId'], type: 'text' },
  values,
})

void t.test('what a token covers', (t) => {
  const only = (query: readonly string[], fields: readonly string[]): GraphAccess => ({
    sees: ({ name }) => query.includes(name),
    mayField: (node, path) => fields.includes(`${node}:${path.join(':')}`),
    mayFilter: () => true,
  })
  const body = (fields: string[], more: object = {}): unknown => [
    { edge: 'libraries', node: { fields }, ...more },
  ]
  const access = only(['library'], ['library:name', 'library:dynamic:x'])
  t.equal(refusal(body(['name', "dynamic->'x'"]), access).code, 'none')
  t.match(refusal(body(["dynamic->'y'"]), access), {
    code: 'FORBIDDEN_FIELD',
    message: /graph\/library:field:dynamic:y/,
    details: { node: 'library', field: 'dynamic.y' },
  })
  t.equal(refusal([{ edge: 'libraries' }], access).code, 'FORBIDDEN_FIELD', 'the id is a field')
  const counted = [{ edge: 'libraries', filter: "motto == 'a'", count: true }]
  t.equal(refusal(counted, access).code, 'none', 'filters and counts take query access alone')
  t.match(refusal([{ edge: 'shelves', count: true }], access), {
    code: 'FORBIDDEN_NODE',
    details: { node: 'shelf' },
  })
  const nested = body(['name'], {
    node: { fields: ['name'], navigate: [{ edge: 'books', require: 'some' }] },
  })
  t.equal(refusal(nested, access).code, 'FORBIDDEN_NODE', 'nested ones too, semi-joins included')

  const some: GraphAccess = {
    sees: () => ids('b', 'a'),
    mayField: () => true,
    mayFilter: () => true,
  }
  t.match(
    plan(filtered("name == 'x'"), some)[0]!.filter,
    { kind: 'and', of: [{ kind: 'compare' }, { kind: 'in', values: ['b', 'a'] }] },
    'entries on single nodes become part of the filter',
  )
  const none: GraphAccess = { sees: () => false, mayField: () => true, mayFilter: () => true }
  t.equal(refusal([{ edge: 'libraries' }], none).code, 'FORBIDDEN_NODE')

  const meta = metaOf(SCHEMA, only(['library', 'book'], ['library:name', 'library:address:city']))
  t.same(meta.sets, [
    { name: 'libraries', node: 'library' },
    { name: 'books', node: 'book' },
  ])
  const [library] = meta.nodes
  t.same(
    library!.fields.map(({ name, type }) => [name, type]),
    [
      ['name', 'text'],
      ['address.city', 'text'],
    ],
  )
  t.same(
    library!.edges.map(({ name }) => name),
    ['books', 'twin', 'twinOf', 'ofSize', 'openedWith'],
  )
  const kind = metaOf(SCHEMA, FULL_ACCESS).nodes[0]!.fields.find(({ name }) => name === 'kind')
  t.same(kind, {
    name: 'kind',
    type: 'enum',
    enum: ['small', 'large'],
    searchIndexed: false,
    keyword: false,
    custom: false,
  })
  t.end()
})

void t.test('sorting takes what reading takes, filters what the setting says', (t) => {
  const library: GraphAccess = {
    sees: () => true,
    mayField: (_, path) => path[0] === 'name',
    mayFilter: () => true,
  }
  const sorted = (orderBy: string): unknown => [{ edge: 'libraries', orderBy, count: true }]
  t.equal(refusal(sorted('name desc'), library).code, 'none')
  t.match(refusal(sorted('name, address.floor'), library), {
    code: 'FORBIDDEN_FIELD',
    details: { node: 'library', field: 'address.floor', path: '/0/orderBy' },
  })
  const counted = (filter: string): unknown => [{ edge: 'libraries', filter, count: true }]
  t.equal(refusal(counted("motto == 'x'"), library).code, 'none')
  const strict = { ...library, mayFilter: library.mayField }
  t.equal(refusal(counted("name == 'x' and 'a' < name"), strict).code, 'none')
  for (const filter of [
    "motto == 'x'",
    "not (name == 'a' or motto contains 'x')",
    'name == motto',
    'motto == nothing',
    "motto in ['x']",
    'address.floor + 1 > 2',
    "dynamic->'x'",
    "(motto == 'x') == true",
    "tags anyof ['x']",
    "openedAt > '2020-01-01T00:00:00Z'",
    'closesOn < now',
  ]) {
    const { code, message } = refusal(counted(filter), strict)
    t.equal(code, 'FORBIDDEN_FIELD', `${filter}: ${message}`)
  }
  const semiJoin = [
    {
      edge: 'libraries',
      node: {
        fields: ['name'],
        navigate: [{ edge: 'books', filter: "isbn == 'x'", require: 'some' }],
      },
    },
  ]
  t.equal(refusal(semiJoin, library).code === 'FORBIDDEN_FIELD', false)
  t.equal(refusal(semiJoin, strict).code, 'FORBIDDEN_FIELD', 'semi-joins too')
  t.end()
})

void t.test('history belongs to its parents: seen of those that the token covers', (t) => {
  const id = '0190a000-0000-7000-8000-000000000001'
  const other = id.replace('1', '2')
  const access = (libraries: boolean | Condition): GraphAccess => ({
    ...FULL_ACCESS,
    sees: ({ name }) => (name === 'library' ? libraries : true),
  })
  const visits = [{ edge: 'visits', filter: `libraryId == '${other}'` }]
  t.equal(refusal(visits, access(false)).code, 'FORBIDDEN_NODE')
  t.match(plan(visits, access(ids(id)))[0]!.filter, {
    kind: 'and',
    of: [{}, { kind: 'in', operand: { path: ['libraryId'] }, values: [id] }],
  })
  t.same(plan([{ edge: 'visits' }], access(ids(id)))[0]!.historyOf, [id], 'and that finds them')
  t.end()
})

void t.test('an edge over a link goes by links that are seen', (t) => {
  const loans: Condition = { kind: 'constant', value: false }
  const access = (sees: boolean | Condition): GraphAccess => ({
    ...FULL_ACCESS,
    sees: ({ name }) => (name === 'loan' ? sees : true),
  })
  const lent = [{ edge: 'libraries', node: { navigate: [{ edge: 'lentNotes', count: true }] } }]
  const { source } = plan(lent, access(loans))[0]!.plan.steps[0]!
  t.match(source, { through: { node: 'loan', filter: loans } })
  t.match(refusal(lent, access(false)), { code: 'FORBIDDEN_NODE', details: { node: 'loan' } })
  t.end()
})

void t.test('messages name what the metadata shows, nothing else', (t) => {
  const access: GraphAccess = {
    sees: ({ name }) => name === 'library' || name === 'book',
    mayField: (_, path) => path[0] === 'name' || path.join('.') === 'address.city',
    mayFilter: () => true,
  }
  const told = (body: unknown): string => refusal(body, access).message
  const fields = (...list: string[]): unknown => [{ edge: 'libraries', node: { fields: list } }]
  t.match(told(fields('motti')), /no field motti; there are name, address$/)
  t.match(told(fields('address.flor')), /no member flor; there is city$/)
  t.match(told([{ edge: 'libraries', orderBy: 'motti', count: true }]), /there are name, address$/)
  t.match(told([{ edge: 'libraries', filter: "motti == 'x'" }]), /there are name, address$/)
  t.match(told([{ edge: 'shelvs' }]), /no base set "shelvs"; there are libraries, books$/)
  const edge = [{ edge: 'libraries', node: { navigate: [{ edge: 'shelvs' }] } }]
  t.match(told(edge), /no edge "shelvs"; there are books, twin, twinOf/)
  const wrong = [{ edge: 'libraries', filter: "kind == 'huge'", count: true }]
  t.equal(told(wrong), 'was planned', 'nor the words of an enum')
  t.match(refusal(wrong).message, /none of small, large/)
  t.end()
})

void t.test('an edge over a link takes the link', (t) => {
  const access: GraphAccess = { ...FULL_ACCESS, sees: ({ name }) => name !== 'loan' }
  const body = [{ edge: 'shelves', node: { navigate: [{ edge: 'lentBooks' }] } }]
  t.equal(refusal(body).code, 'none')
  t.equal(refusal(body, access).code, 'FORBIDDEN_NODE')
  const granted: GraphAccess = { ...FULL_ACCESS, mayFilter: (_, path) => path[0] !== 'isbn' }
  t.equal(refusal(body, granted).code, 'FORBIDDEN_FIELD')
  for (const one of [access, granted]) {
    const shelf = metaOf(SCHEMA, one).nodes.find(({ name }) => name === 'shelf')!
    t.same(
      shelf.edges.map(({ name }) => name),
      ['library', 'books', 'notes'],
    )
    const near = [{ edge: 'shelves', node: { navigate: [{ edge: 'lentBook' }] } }]
    t.match(refusal(near).message, /lentBooks/)
    t.notMatch(refusal(near, one).message, /lentBooks/)
  }
  t.end()
})

void t.test('an edge of the registry takes both its fields, with filters by granted ones', (t) => {
  const library = SCHEMA.nodes.get('library')!
  const city: EdgeDef = { ...library.edges.get('city')!, custom: true }
  const type = { ...library.type, edges: [city] }
  const node = { ...library, type, edges: new Map([['city', city]]) }
  const schema = {
    nodes: new Map([...SCHEMA.nodes, ['library', node]]),
    sets: new Map([...SCHEMA.sets, ['libraries', node]]),
  }
  const body = [{ edge: 'libraries', node: { navigate: [{ edge: 'city', count: true }] } }]
  const but = (...hidden: string[]): GraphAccess => ({
    ...FULL_ACCESS,
    mayFilter: (on, [member]) => !hidden.includes(`${on}:${member}`),
  })
  const options = { nowMs: 0, limits: LIMITS.graph }
  const asked = (access: GraphAccess): string => {
    try {
      planNavigations(body, schema, access, options)
      return 'none'
    } catch (error) {
      const { code, details } = (error as RequestError).errors[0]!
      return `${code} ${String(details?.['node'])}:${String(details?.['field'])}`
    }
  }
  const told = (access: GraphAccess): string[] =>
    followedEdges(node, schema, access).map(({ name }) => name)
  for (const [access, code, names] of [
    [FULL_ACCESS, 'none', ['city']],
    [but('library:code', 'city:cityCode'), 'none', ['city']],
    [but('library:cityCode'), 'FORBIDDEN_FIELD library:cityCode', []],
    [but('city:code'), 'FORBIDDEN_FIELD city:code', []],
  ] as const) {
    t.equal(asked(access), code)
    t.same(told(access), names, 'and the metadata says so')
  }
  t.end()
})
