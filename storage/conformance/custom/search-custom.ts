// Custom fields and edges in an index: their values are taken from the documents that are written,
// by their type, and are found, sorted and gone by like any other; a wrong one is missing. Source:
// CONTRACT 1.1 "Custom fields", "Custom edges".

import type { Test } from 'tap'
import type { EdgeDef, FieldDef, FieldType, NodeType } from '../../../protocol/graph/node-type.ts'
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
]

/** The suite's schema, whose libraries have these custom fields. */
function schemaWith(fields: readonly FieldDef[]): GraphSchema {
  const types = NODE_TYPES.map((type): NodeType => {
    if (type.name === 'shelf') {
      return { ...type, fields: [...type.fields, custom('wood', 'enum', 'dynamic', 'wood')] }
    }
    if (type.name !== 'library') return type
    return { ...type, fields: [...type.fields, ...fields], edges: [...type.edges, byCity] }
  })
  return graphSchema(types)
}

const SCHEMA = schemaWith(FIELDS)

/** The same, but for what one of the fields is taken from. */
const CHANGED = schemaWith(
  FIELDS.map((field) =>
    field.name === 'season' ? { ...field, source: ['dynamic', 'wood'] } : field,
  ),
)

/** Whether an index is laid out anew: when a definition changes, and only then. */
export function customLayouts(
  t: Test,
  fingerprintOf: (schema: GraphSchema) => string,
  plain: GraphSchema,
): void {
  const all = [plain, SCHEMA, CHANGED].map(fingerprintOf)
  t.equal(new Set(all).size, 3, 'what a field is taken from is part of it')
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
