// The planner: every rule of the contract for navigation objects, with what a caller is told when
// one is broken. What plans mean is the matter of storage/conformance/search.ts.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { NODE_TYPES, SCHEMA } from '../../storage/conformance/search-nodes.ts'
import { FULL_ACCESS } from './planning.ts'
import { planNode } from './navigation.ts'
import type { Step } from './plan.ts'
import { actorFields, graphSchema } from './schema.ts'
import { OPTIONS, plan, type Refusal, refused, refusal } from './testing/planned.ts'

void t.test('a plan says all there is to know', (t) => {
  const [step] = plan([
    {
      edge: 'libraries',
      orderBy: "name desc, dynamic->'x', address.floor asc",
      node: {
        fields: ['name', 'address.city', "dynamic->'a b'->'c'"],
        navigate: [{ edge: 'shelves', alias: 'racks', limit: 5, count: true }],
      },
    },
  ])
  t.match(step, {
    name: 'libraries',
    source: { kind: 'set' },
    storage: { kind: 'row' },
    idField: 'libraryId',
    limit: LIMITS.graph.limitDefault,
    returns: 'nodes',
    require: 'any',
    filter: null,
    orderBy: [
      { path: ['name'], direction: 'desc', as: 'text' },
      { path: ['dynamic', 'x'], direction: 'asc', as: 'any' },
      { path: ['address', 'floor'], direction: 'asc', as: 'number' },
    ],
    plan: {
      node: 'library',
      fields: [['name'], ['address', 'city'], ['dynamic', 'a b', 'c']],
    },
  })
  t.match(step!.plan.steps[0], {
    name: 'racks',
    source: { kind: 'edge', edge: 'shelves', parent: 'library', sameActor: true },
    position: 'place',
    limit: 5,
    returns: 'count',
  })
  t.same(JSON.parse(JSON.stringify(step)), step, 'it can be sent to another thread')
  t.end()
})

void t.test('what comes back', (t) => {
  const returns = (more: object): string => plan([{ edge: 'libraries', ...more }])[0]!.returns
  t.equal(returns({}), 'nodes')
  t.equal(returns({ count: true }), 'count')
  t.equal(returns({ count: true, node: {} }), 'both')
  t.equal(returns({ count: false }), 'nodes')
  t.same(plan([{ edge: 'libraries' }])[0]!.plan.fields, [['libraryId']], 'the id, unless told')
  t.same(plan([{ edge: 'libraries', node: { navigate: [] } }])[0]!.plan.fields, [])
  t.same(
    plan([{ edge: 'libraries', node: { fields: ['address.city', 'address'] } }])[0]!.plan.fields,
    [['address']],
    'a whole brings its parts',
  )
  const nested = (more: object): Step => {
    const body = [{ edge: 'libraries', node: { navigate: [{ edge: 'books', ...more }] } }]
    return plan(body)[0]!.plan.steps[0]!
  }
  t.match(nested({}), { limit: LIMITS.graph.nestedLimitDefault, require: 'any', returns: 'nodes' })
  t.match(nested({ require: true }), { require: 'some', returns: 'nothing' })
  t.match(nested({ require: false }), { require: 'any', returns: 'nodes' })
  t.match(nested({ require: 'none', count: true }), { require: 'none', returns: 'count' })
  t.match(nested({ require: 'some', node: { fields: ['title'] } }), { returns: 'nodes' })
  const semiJoins = { navigate: [{ edge: 'leaves', require: 'some' }] }
  t.match(
    nested({ require: 'some', node: semiJoins }),
    { returns: 'nothing' },
    'semi-joins below a semi-join',
  )
  t.end()
})

void t.test('names that are not there', (t) => {
  const places: [unknown, RegExp, string][] = [
    [[{ edge: 'library' }], /no base set "library"; did you mean libraries\?/, '/0'],
    [[{ edge: 'libaries' }], /did you mean libraries\?/, '/0'],
    [[{ edge: 'xyz' }], /; there are libraries, shelves, books/, '/0'],
    [
      [{ edge: 'libraries', node: { navigate: [{ edge: 'shelfs' }] } }],
      /library has no edge "shelfs"; did you mean shelves\?/,
      '/0/node/navigate/0',
    ],
    [
      [{ edge: 'libraries', node: { navigate: [{ edge: 'unknown' }] } }],
      /no edge "unknown"/,
      '/0/node/navigate/0',
    ],
    [
      [{ edge: 'libraries', node: { fields: ['name', 'nam'] } }],
      /library has no field nam; did you mean name/,
      '/0/node/fields/1',
    ],
    [
      [{ edge: 'libraries', node: { fields: ['address.town'] } }],
      /address has no member town/,
      '/0/node/fields/0',
    ],
    [
      [{ edge: 'libraries', node: { fields: ['dynamic.x'] } }],
      /dynamic has no fixed members; write dynamic->'x'/,
      '/0/node/fields/0',
    ],
    [
      [{ edge: 'libraries', node: { fields: ["address->'city'"] } }],
      /-> is for dynamic; write address.city/,
      '/0/node/fields/0',
    ],
    [
      [{ edge: 'libraries', node: { fields: ["dynamic->'__proto__'"] } }],
      /can't be the name/,
      '/0/node/fields/0',
    ],
    [[{ edge: 'libraries', orderBy: 'nme' }], /did you mean name/, '/0/orderBy'],
    [[{ edge: 'libraries', orderBy: 'tags' }], /tags has no order/, '/0/orderBy'],
    [[{ edge: 'libraries', orderBy: 'now' }], /found "now", expected a field/, '/0/orderBy'],
    [
      [{ edge: 'libraries', orderBy: 'name up' }],
      /found "up", expected asc, desc, a comma or the end/,
      '/0/orderBy',
    ],
  ]
  for (const [body, message, path] of places) {
    const { code, message: said, details } = refusal(body)
    t.equal(code, 'INVALID_QUERY', said)
    t.match(said, message)
    t.equal(details?.['path'], path)
  }
  t.end()
})

void t.test('shapes and bounds', (t) => {
  const bodies: [unknown, RegExp][] = [
    [{}, /must be array/],
    [[1], /At \/0: must be object/],
    [[{ edge: 'libraries', fields: [] }], /At \/0\/fields: is not known here/],
    [[{}], /At \/0\/edge: is missing/],
    [[{ edge: 'libraries', limit: 0 }], /limit.*>= 1/],
    [[{ edge: 'libraries', limit: 1.5 }], /limit.*integer/],
    [[{ edge: 'libraries', limit: 1_001 }], /limit is at most 1000, found 1001/],
    [[{ edge: 'libraries', alias: '1x' }], /alias must be letters, digits and _/],
    [[{ edge: 'libraries', alias: '__proto__' }], /alias must be/],
    [[{ edge: 'libraries', require: 'all' }], /require must be any, some or none/],
    [[{ edge: 'libraries', require: 'some' }], /belongs to a nested navigation/],
    [[{ edge: 'libraries', phrase: 'x', orderBy: 'name' }], /exclude each other/],
    [[{ edge: 'cities', phrase: 'x' }], /no field of city is indexed for search/],
    [[{ edge: 'libraries', phrase: ' ' }], /at \/0\/phrase, position 0: the phrase is empty/],
    [
      [{ edge: 'libraries', node: { navigate: [{ edge: 'visits', require: 'none' }] } }],
      /visits can't filter its parent/,
    ],
    [Array.from({ length: 33 }, () => ({ edge: 'libraries' })), /more than 32 navigations/],
    [[{ edge: 'libraries', node: { fields: Array(201).fill('name') } }], /at most 200 fields/],
    [
      [{ edge: 'libraries', node: { navigate: [{ edge: 'books', node: { fields: [1] } }] } }],
      /At \/0\/node\/navigate\/0\/node\/fields\/0: must be string/,
    ],
  ]
  for (const [body, message] of bodies) {
    const { code, message: said } = refusal(body)
    t.equal(code, 'INVALID_QUERY', said)
    t.match(said, message)
  }
  t.match(refusal([{ edge: 'libraries', phrase: 'white "heart' }]), {
    code: 'INVALID_QUERY',
    message: 'at /0/phrase, position 6: the quote that opens here has no closing "',
    details: { path: '/0/phrase', position: 6 },
  })
  const deep = (levels: number): object =>
    levels === 0
      ? {}
      : { navigate: [{ edge: levels % 2 ? 'shelves' : 'library', node: deep(levels - 1) }] }
  t.equal(refusal([{ edge: 'libraries', node: deep(7) }]).code, 'none')
  t.match(refusal([{ edge: 'libraries', node: deep(9) }]).message, /nests deeper than 8 levels/)
  t.same(plan([]), [])
  t.end()
})

void t.test('no member of the answer twice', (t) => {
  const duplicate = (body: unknown): unknown => {
    const { code, details } = refusal(body)
    return code === 'DUPLICATE_ALIAS' ? details?.['name'] : code
  }
  const one = { edge: 'libraries' }
  t.equal(duplicate([one, one]), 'libraries')
  t.equal(duplicate([one, { ...one, alias: 'b' }]), 'none')
  t.equal(duplicate([{ ...one, node: { fields: ['name', 'name'] } }]), 'name')
  const named = (alias: string): unknown => [
    { ...one, node: { fields: ['name'], navigate: [{ edge: 'books', alias }] } },
  ]
  t.equal(duplicate(named('name')), 'name')
  t.equal(duplicate(named('other')), 'none')
  t.equal(duplicate([one, { ...one, alias: 'librariesHasMore' }]), 'librariesHasMore')
  const semiJoin = { edge: 'books', require: 'some' }
  t.equal(duplicate([{ ...one, node: { navigate: [semiJoin, { edge: 'books' }] } }]), 'none')
  t.end()
})

void t.test('history', (t) => {
  const id = '0190a000-0000-7000-8000-000000000001'
  const actors = (filter?: string): unknown => {
    const body = [{ edge: 'visits', ...(filter !== undefined && { filter }) }]
    const { code, message } = refusal(body)
    return code === 'none' ? plan(body)[0]!.historyOf : message
  }
  t.match(actors(), /read from its library's records/)
  t.match(actors("mood == 'a'"), /filter by libraryId == '...'/)
  t.match(actors(`libraryId == '${id}' or mood == 'a'`), /records/)
  t.match(actors(`not (libraryId == '${id}')`), /records/)
  t.same(actors(`libraryId == '${id}'`), [id])
  t.same(actors(`mood == 'a' and (minutes > 1 and ${id} == libraryId)`), [id])
  t.same(actors(`libraryId in [${id}, '${id.replace('1', '2').toUpperCase()}']`), [
    id,
    id.replace('1', '2'),
  ])
  t.end()
})

void t.test('a node object of a query message', (t) => {
  const node = planNode({ fields: ['label'], navigate: [{ edge: 'books' }] }, 'shelf', SCHEMA, {
    ...OPTIONS,
    access: FULL_ACCESS,
  })
  t.match(node, { node: 'shelf', fields: [['label']], steps: [{ name: 'books' }] })
  const bad = (body: unknown): string =>
    refused(() => planNode(body, 'shelf', SCHEMA, { ...OPTIONS, access: FULL_ACCESS })).message
  t.match(bad(null), /In the query: must be object/)
  t.match(bad({ edge: 'books' }), /edge: is not known here/)
  t.match(bad({ navigate: [{ edge: 'x' }] }), /shelf has no edge "x"/)
  t.match(bad({ navigate: [{ edge: 'books', limit: 'x' }] }), /At \/navigate\/0\/limit/)
  t.end()
})

void t.test('the schema', (t) => {
  t.equal(SCHEMA.sets.get('libraries'), SCHEMA.nodes.get('library'))
  t.notOk(SCHEMA.nodes.get('library')!.edges.has('unknown'), 'edges to unknown types are left out')
  const library = NODE_TYPES[0]!
  const [, shelf, , leaf, , , , visit] = NODE_TYPES
  const { root: _, ...unmarked } = library
  const marked = graphSchema([unmarked, visit!])
  t.equal(marked.nodes.get('library')!.type.root, true, 'parents of history are root nodes')
  t.same(actorFields(SCHEMA, shelf!), new Set(['libraryId']))
  t.equal(graphSchema([leaf!]).nodes.size, 0, 'embedded nodes without their holder are left out')
  t.throws(() => graphSchema([library, library]), /same name/)
  t.throws(() => graphSchema([library, { ...library, name: 'b' }]), /set libraries/)
  t.throws(() => graphSchema([{ ...library, idField: 'x' }]), /no field x, its id/)
  const clash = { ...library.edges[0]!, name: 'name' }
  t.throws(() => graphSchema([{ ...library, edges: [clash] }]), /as a field and as an edge/)
  const inLeaf = { kind: 'embedded', node: 'leaf', member: 'x' } as const
  const [, , book] = NODE_TYPES
  t.throws(
    () => graphSchema([book!, leaf!, { ...shelf!, storage: inLeaf }]),
    /kept in leaf, which has no row/,
  )
  t.end()
})

t.test('the filters of one query are bounded together', (t) => {
  const { filterCharsMax, filtersCharsMax } = LIMITS.graph
  const filter = `name == '${'x'.repeat(filterCharsMax - 10)}'`
  const inner = (n: number): Refusal =>
    refusal(
      Array.from({ length: n }, (_, i) => ({
        edge: 'libraries',
        alias: `a${i}`,
        count: true,
        filter,
      })),
    )
  const most = filtersCharsMax / filterCharsMax
  t.equal(inner(most).code, 'none')
  t.match(inner(most + 1), {
    code: 'INVALID_QUERY',
    message: /longer than 16384 characters together/,
  })
  t.end()
})

t.test('paths and orders are bounded before they are read', (t) => {
  const arrows = (n: number): string => `dynamic${"->'a'".repeat(n)}`
  const fields = (field: string): Refusal =>
    refusal([{ edge: 'libraries', node: { fields: [field] } }])
  const { fieldPartsMax, fieldCharsMax, sortKeysMax, orderByCharsMax } = LIMITS.graph
  t.equal(fields(arrows(fieldPartsMax - 1)).code, 'none')
  t.match(fields(arrows(fieldPartsMax)).message, /at most 16 parts/)
  t.match(fields(`dynamic->'${'x'.repeat(fieldCharsMax)}'`).message, /longer than 1024 characters/)
  const filter = `${arrows(fieldPartsMax)} == 1`
  t.match(refusal([{ edge: 'libraries', filter }]), {
    code: 'INVALID_FILTER',
    message: /at most 16 parts/,
  })
  const sorted = (n: number): Refusal =>
    refusal([{ edge: 'libraries', orderBy: Array(n).fill('name').join() }])
  t.equal(sorted(sortKeysMax).code, 'none')
  t.match(sorted(sortKeysMax + 1).message, /more than 16 sort keys/)
  t.match(sorted(orderByCharsMax).message, /longer than 4096 characters/)
  t.end()
})

void t.test(
  'what is wrong with a filter is told with its place, in the body and in the text',
  (t) => {
    const told = (filter: string): unknown =>
      refusal([
        { edge: 'cities' },
        {
          edge: 'libraries',
          node: { fields: ['name'], navigate: [{ edge: 'shelves' }, { edge: 'books', filter }] },
        },
      ])
    for (const [filter, position] of [
      ['', null],
      ['pages >', 7],
      ["title == 'a' and pages = 1", 23],
      ["isbn == 'a' and isbm == 'b'", 16],
      ["isbn == 'a' and pages == 'b'", 22],
      ["(isbn == 'a'", 12],
      ["title startsWith 'a", 17],
      ["isbn == 'a' 17", 12],
    ] as const) {
      const details = { position, path: '/1/node/navigate/1/filter' }
      const expected = position === null ? { code: 'none' } : { code: 'INVALID_FILTER', details }
      t.match(told(filter), expected, filter)
    }
    t.end()
  },
)
