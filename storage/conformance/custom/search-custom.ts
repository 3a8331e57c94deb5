// Custom fields and edges in an index: their values are taken from the documents that are written,
// by their type, and are found, sorted and gone by like any other; a wrong one is missing. Source:
// CONTRACT 1.1 "Custom fields", "Custom edges".

import type { Test } from 'tap'
import type {
  Dimensions,
  EdgeDef,
  FieldDef,
  FieldType,
  NodeType,
} from '../../../protocol/graph/node-type.ts'
import { type GraphSchema, graphSchema } from '../../../protocol/graph/schema.ts'
import type { GraphReader } from '../../search.ts'
import { library, OPTIONS, planOf, shelf, type MakeIndex } from '../search-index.ts'
import { actorIds, type Doc, NODE_TYPES, shelfIds } from '../search-nodes.ts'

const custom = (name: string, type: FieldType, ...source: string[]): FieldDef => ({
  name,
  type,
  source,
  custom: true,
  indexed: true,
})

/** With a value for each of the dimensions. */
const dimensional = (name: string, of: FieldType, names: Dimensions['names']): FieldDef => ({
  name,
  type: 'dynamic',
  source: ['dynamic', name],
  custom: true,
  dimensions: { names, of },
})

const byCity: EdgeDef = {
  name: 'inSameTown',
  node: 'library',
  cardinality: 'many',
  from: 'town',
  to: 'town',
  sameActor: false,
  custom: true,
}

const FIELDS = [
  custom('town', 'text', 'address', 'city'),
  custom('season', 'text', 'dynamic', 'season'),
  custom('seats', 'number', 'dynamic', 'hall', 'seats'),
  custom('isWarm', 'boolean', 'dynamic', 'isWarm'),
  custom('renewedAt', 'instant', 'dynamic', 'renewedAt'),
  custom('subjects', '[text]', 'dynamic', 'subjects'),
  dimensional('title', 'text', ['locale']),
  dimensional('price', 'number', ['channel', 'locale']),
  dimensional('soldAt', 'instant', ['channel']),
  dimensional('words', '[text]', ['locale']),
]

/** Of nodes that are kept within others. */
const LEAF_FIELDS = [
  custom('ink', 'text', 'dynamic', 'ink'),
  custom('page', 'number', 'number'),
  dimensional('print', 'text', ['locale']),
]

/** The suite's schema, whose libraries have these custom fields. */
function schemaWith(fields: readonly FieldDef[], leafFields = LEAF_FIELDS): GraphSchema {
  const types = NODE_TYPES.map((type): NodeType => {
    if (type.name === 'shelf') {
      return { ...type, fields: [...type.fields, custom('wood', 'enum', 'dynamic', 'wood')] }
    }
    if (type.name === 'leaf') return { ...type, fields: [...type.fields, ...leafFields] }
    if (type.name !== 'library') return type
    return { ...type, fields: [...type.fields, ...fields], edges: [...type.edges, byCity] }
  })
  return graphSchema(types)
}

const SCHEMA = schemaWith(FIELDS)

/** Whether an index is laid out anew: when a definition changes, and only then. */
export function customLayouts(
  t: Test,
  fingerprintOf: (schema: GraphSchema) => string,
  plain: GraphSchema,
): void {
  const changed = (name: string, as: Partial<FieldDef>) =>
    [FIELDS, LEAF_FIELDS].map((fields) =>
      fields.map((field) => (field.name === name ? { ...field, ...as } : field)),
    ) as [FieldDef[], FieldDef[]]
  const all = [
    plain,
    SCHEMA,
    schemaWith(...changed('season', { source: ['dynamic', 'wood'] })),
    schemaWith(...changed('ink', { source: ['dynamic', 'wood'] })),
    schemaWith(...changed('title', { source: ['dynamic', 'wood'] })),
    schemaWith(...changed('title', { dimensions: { names: ['channel'], of: 'text' } })),
    schemaWith(...changed('print', { dimensions: { names: ['locale'], of: 'date' } })),
  ].map(fingerprintOf)
  t.equal(new Set(all).size, all.length, 'what a field is taken from is part of it, and as what')
  t.equal(fingerprintOf(schemaWith(FIELDS)), all[1], 'the same definitions are no change')
}
const [ONE, TWO, THREE] = actorIds as [string, string, string]
const [SHELF, SHELF_TWO] = shelfIds as [string, string]
const FULL = {
  name: 'full',
  address: { city: 'Lund' },
  dynamic: {
    season: 'summer',
    hall: { seats: 30 },
    isWarm: true,
    renewedAt: '2026-02-28T12:00:00+01:00',
    subjects: ['a', 'b', 'a'],
  },
}
/** Each value is of another type than its field. */
const WRONG = {
  name: 'wrong',
  address: { city: 'Lund' },
  dynamic: { season: 7, hall: [30], isWarm: 'true', renewedAt: 'soon', subjects: ['a', 1] },
}
const names = ['season', 'seats', 'isWarm', 'renewedAt', 'subjects']

async function ask(reader: GraphReader, body: unknown, schema = SCHEMA): Promise<Doc> {
  return JSON.parse(JSON.stringify(await reader.query(planOf(body, schema), 1_000_000))) as Doc
}

export function searchCustom(suite: Test, make: MakeIndex): void {
  void suite.test('custom fields hold what is of their type', (t) => values(t, make))
  void suite.test('custom fields are found and sorted by', (t) => found(t, make))
  void suite.test('custom fields have dimensions', (t) => dimensions(t, make))
  void suite.test('nodes within others have custom fields', (t) => within(t, make))
  void suite.test('custom edges go by custom fields', (t) => edges(t, make))
}

async function filled(t: Test, make: MakeIndex) {
  const made = await make(t, { ...OPTIONS, schema: SCHEMA })
  await made.writer.reset('one')
  await made.writer.apply(
    [
      library(ONE, 1, FULL),
      library(TWO, 1, WRONG),
      library(THREE, 1, {
        name: 'third',
        address: { city: 'Malmö' },
        dynamic: { season: 'autumn' },
      }),
      shelf(ONE, SHELF, 1, { dynamic: { wood: 'oak' } }),
      shelf(ONE, SHELF_TWO, 1, { dynamic: { wood: 1 } }),
    ].map((write) => (made.writer.placed ? { ...write, place: 0 } : write)),
    [],
  )
  return made
}

async function values(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await filled(t, make)
  const all = [{ edge: 'libraries', orderBy: 'name', node: { fields: ['name', ...names] } }]
  const nothing = { season: null, seats: null, isWarm: null, renewedAt: null, subjects: null }
  const full = {
    name: 'full',
    season: 'summer',
    seats: 30,
    isWarm: true,
    renewedAt: '2026-02-28T11:00:00.000Z',
    subjects: ['a', 'b'],
  }
  const third = { ...nothing, name: 'third', season: 'autumn' }
  t.same(await ask(reader, all), { libraries: [full, third, { ...nothing, name: 'wrong' }] })
  await writer.apply(
    [{ ...library(ONE, 2, { name: 'full' }), ...(writer.placed && { place: 0 }) }],
    [],
  )
  t.match(await ask(reader, all), { libraries: [{ ...nothing, name: 'full' }] }, 'it was taken out')
}

async function found(t: Test, make: MakeIndex): Promise<void> {
  const { reader } = await filled(t, make)
  const where = async (filter: string, orderBy = 'name'): Promise<unknown> => {
    const body = [{ edge: 'libraries', filter, orderBy, node: { fields: ['name'] } }]
    const { libraries } = await ask(reader, body)
    return (libraries as Doc[]).map(({ name }) => name)
  }
  t.same(await where(`season == 'summer'`), ['full'])
  t.same(await where(`season != 'summer'`), ['third'])
  t.same(await where('season == nothing'), ['wrong'])
  t.same(await where('seats > 29 and isWarm == true'), ['full'])
  t.same(await where(`renewedAt >= '2026-02-28T11:00:00Z' and renewedAt < '2026-03-01'`), ['full'])
  t.same(await where(`subjects allof ['b', 'a']`), ['full'])
  t.same(await where(`subjects anyof ['c']`), [])
  t.same(await where(`name != ''`, 'season, name'), ['third', 'full', 'wrong'])
  t.same(await where(`name != ''`, 'season desc'), ['full', 'third', 'wrong'])
  const oak = [{ edge: 'shelves', filter: `wood == 'oak'`, node: { fields: ['shelfId', 'wood'] } }]
  t.same(await ask(reader, oak), { shelves: [{ shelfId: SHELF, wood: 'oak' }] })
}

async function edges(t: Test, make: MakeIndex): Promise<void> {
  const { reader } = await filled(t, make)
  const nested = { edge: 'inSameTown', orderBy: 'name', node: { fields: ['name'] } }
  const all = [
    { edge: 'libraries', orderBy: 'name', node: { fields: ['name'], navigate: [nested] } },
  ]
  const inLund = [{ name: 'full' }, { name: 'wrong' }]
  t.same(await ask(reader, all), {
    libraries: [
      { name: 'full', inSameTown: inLund },
      { name: 'third', inSameTown: [{ name: 'third' }] },
      { name: 'wrong', inSameTown: inLund },
    ],
  })
  const some = { edge: 'inSameTown', filter: `season == 'summer'`, require: 'some' }
  const gated = [
    { edge: 'libraries', orderBy: 'name', node: { fields: ['name'], navigate: [some] } },
  ]
  t.same(await ask(reader, gated), { libraries: inLund })
}

/** By name: what its dynamic fields hold. */
const TITLED: Readonly<Record<string, object>> = {
  a: {
    title: { sv: 'Bord', 'en-GB': 'Table', de: 7 },
    price: { web: { sv: 100, de: 9.5 }, pos: { sv: 90 } },
    soldAt: { web: '2026-02-28T12:00:00+01:00', pos: '2026-03-01' },
    words: { sv: ['trä', 'rund', 'trä'], de: ['rund', 1] },
  },
  b: {
    title: { sv: 'Stol', 'en-GB': '' },
    price: { web: { sv: 99 }, pos: 7 },
    soldAt: { web: 'soon' },
    words: { sv: ['rund'] },
  },
  c: { title: 'Bord', price: { web: 5 }, soldAt: ['2026-02-28'], words: [] },
  d: { title: { sv: ['Bord'] }, price: { web: { sv: '5' } }, words: { sv: 'rund' } },
  e: {},
}

const DIMENSIONS: readonly [filter: string, names: string][] = [
  [`title.sv == 'Bord'`, 'a'],
  [`title.sv != 'Bord'`, 'b'],
  [`title->'en-GB' == ''`, 'b'],
  [`title->'en-GB' startsWith 'Ta'`, 'a'],
  [`title.sv contains 'o'`, 'a b'],
  [`title.sv in ['Stol', 'Bord']`, 'a b'],
  [`title.de == nothing`, 'a b c d e'],
  [`title.sv == nothing`, 'c d e'],
  ['title == nothing', 'c d e'],
  ['price.web.sv > 99', 'a'],
  ['price.web.sv >= 99 and not (price.pos.sv == 90)', 'b'],
  ['price.web.sv - price.pos.sv == 10', 'a'],
  ['price.web == nothing', 'c d e'],
  [`soldAt.web >= '2026-02-28T11:00:00Z'`, 'a'],
  [`soldAt.web < soldAt.pos - 12 hours`, 'a'],
  [`soldAt.pos == '2026-03-01'`, 'a'],
  [`words.sv anyof ['rund']`, 'a b'],
  [`words.sv allof ['trä', 'rund']`, 'a'],
  [`words.de anyof ['rund']`, ''],
]

async function dimensions(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, { ...OPTIONS, schema: SCHEMA })
  await writer.reset('one')
  const writes = Object.entries(TITLED).map(([name, dynamic], i) => ({
    ...library(actorIds[i]!, 1, { name, dynamic }),
    ...(writer.placed && { place: 0 }),
  }))
  await writer.apply(writes, [])
  const named = async (more: object): Promise<string> => {
    const { libraries } = await ask(reader, [
      { edge: 'libraries', orderBy: 'name', node: { fields: ['name'] }, ...more },
    ])
    return (libraries as Doc[]).map(({ name }) => name).join(' ')
  }
  for (const [filter, those] of DIMENSIONS) t.equal(await named({ filter }), those, filter)
  t.equal(await named({ orderBy: 'title.sv desc, name' }), 'b a c d e')
  t.equal(await named({ orderBy: 'price.web.sv' }), 'b a c d e')
  const fields = ['title', 'price.web', `words->'sv'`]
  const shown = await ask(reader, [{ edge: 'libraries', orderBy: 'name', node: { fields } }])
  t.same((shown['libraries'] as Doc[])[0], {
    title: { sv: 'Bord', 'en-GB': 'Table' },
    price: { web: { sv: 100, de: 9.5 } },
    words: { sv: ['trä', 'rund'] },
  })
  t.same((shown['libraries'] as Doc[])[3], {
    title: null,
    price: { web: null },
    words: { sv: null },
  })
}

async function within(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, { ...OPTIONS, schema: SCHEMA })
  await writer.reset('one')
  const leaf = (number: number, dynamic: object) => ({
    ...{ leafId: `l${number}`, bookId: 'b', libraryId: ONE, number, dynamic },
  })
  const leaves = [
    leaf(1, { ink: 'red', print: { sv: 'bok' } }),
    leaf(2, { ink: 3, print: 'bok' }),
    leaf(3, { ink: 'blue', print: { sv: 'ark', de: 1 } }),
  ]
  const doc = { bookId: 'b', libraryId: ONE, shelfId: SHELF, isbn: '1', leaves }
  const book = { node: 'book', actorId: ONE, id: 'b', version: 1, doc }
  await writer.apply(
    [library(ONE, 1, { name: 'a' }), book].map((write) =>
      writer.placed ? { ...write, place: 0 } : write,
    ),
    [],
  )
  const fields = ['leafId', 'ink', 'page', 'print.sv']
  const all = [
    { leafId: 'l1', ink: 'red', page: 1, print: { sv: 'bok' } },
    { leafId: 'l2', ink: null, page: 2, print: { sv: null } },
    { leafId: 'l3', ink: 'blue', page: 3, print: { sv: 'ark' } },
  ]
  const wanted: readonly [more: object, leaves: readonly unknown[]][] = [
    [{}, all],
    [{ filter: `ink != 'red'` }, [all[2]]],
    [{ filter: `print.sv == 'bok' and page < 2` }, [all[0]]],
    [{ orderBy: 'print.sv' }, [all[2], all[0], all[1]]],
    [{ orderBy: 'ink desc', limit: 2 }, [all[0], all[2]]],
  ]
  for (const [more, rows] of wanted) {
    const nested = { edge: 'leaves', ...more, node: { fields } }
    const { books } = await ask(reader, [{ edge: 'books', node: { navigate: [nested] } }])
    t.match(books, [{ leaves: rows }], JSON.stringify(more))
    const { leaves: set } = await ask(reader, [nested])
    t.match(set, rows, JSON.stringify(more))
  }
  const gate = (filter: string) => ({ edge: 'leaves', filter, require: 'some' })
  for (const [filter, count] of [
    [`ink == 'blue'`, 1],
    [`ink == 'black'`, 0],
    [`print.de == nothing and page == 3`, 1],
  ] as const) {
    const gated = [{ edge: 'books', count: true, node: { navigate: [gate(filter)] } }]
    t.same(await ask(reader, gated), { books: count }, filter)
  }
}
