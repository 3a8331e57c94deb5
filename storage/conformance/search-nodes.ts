// Node types for the graph index's conformance suite: libraries with shelves and books, in every
// form of storage, linked inside and across actors and over other nodes. It stands beside the
// suite; values are few and nasty, so that nodes meet in comparisons.

import type { EdgeDef, FieldDef, FieldType, NodeType } from '../../protocol/graph/node-type.ts'
import { graphSchema } from '../../protocol/graph/schema.ts'
import type { SearchField } from '../../protocol/graph/search/search-index.ts'

const field = (name: string, type: FieldType): FieldDef => ({ name, type })
const key = (name: string, type: FieldType): FieldDef => ({ name, type, indexed: true })
const edge = (
  name: string,
  node: string,
  cardinality: EdgeDef['cardinality'],
  by: string,
): EdgeDef => ({ name, node, cardinality, from: by, to: by, sameActor: true })
const across = (
  name: string,
  node: string,
  cardinality: EdgeDef['cardinality'],
  [from, to]: readonly [string, string],
): EdgeDef => ({ name, node, cardinality, from, to, sameActor: false })

/** Over loans: from our member to the loan's, from the loan's other to the far end's. */
const through = (
  name: string,
  node: string,
  cardinality: EdgeDef['cardinality'],
  [from, first, second, to]: readonly [string, string, string, string],
): EdgeDef => ({
  ...across(name, node, cardinality, [from, to]),
  through: { node: 'loan', from: first, to: second },
})

const words = (...path: string[]): SearchField => ({ path, keyword: false })
const keyword = (...path: string[]): SearchField => ({ path, keyword: true })

export const LIBRARY: NodeType = {
  name: 'library',
  set: 'libraries',
  idField: 'libraryId',
  root: true,
  storage: { kind: 'row' },
  fields: [
    key('libraryId', 'uuid'),
    key('name', 'text'),
    { name: 'kind', type: 'enum', values: ['small', 'large'], indexed: true },
    key('area', 'number'),
    key('openedAt', 'instant'),
    field('checkedAt', 'instant'),
    field('closesOn', 'date'),
    field('isPublic', 'boolean'),
    field('tags', '[text]'),
    { name: 'address', type: 'object', members: [field('city', 'text'), field('floor', 'number')] },
    field('motto', 'text'),
    field('rating', 'number'),
    field('dynamic', 'dynamic'),
    field('raw', 'value'),
    field('twinId', 'uuid'),
    key('cityCode', 'text'),
  ],
  edges: [
    edge('shelves', 'shelf', 'many', 'libraryId'),
    edge('books', 'book', 'many', 'libraryId'),
    edge('notes', 'note', 'many', 'libraryId'),
    edge('visits', 'visit', 'many', 'libraryId'),
    // Leads somewhere only from a library that is its own twin.
    { ...edge('ownShelves', 'shelf', 'many', 'libraryId'), from: 'twinId' },
    edge('unknown', 'nowhere', 'many', 'libraryId'),
    across('city', 'city', 'single', ['cityCode', 'code']),
    across('twin', 'library', 'single', ['twinId', 'libraryId']),
    across('twinOf', 'library', 'many', ['libraryId', 'twinId']),
    across('twinShelves', 'shelf', 'many', ['twinId', 'libraryId']),
    // By numbers, instants and truths; a single one may find several.
    across('ofSize', 'library', 'many', ['area', 'area']),
    across('openedWith', 'library', 'single', ['openedAt', 'openedAt']),
    across('shelfOfDay', 'shelf', 'single', ['openedAt', 'builtAt']),
    through('lentNotes', 'note', 'many', ['libraryId', 'libraryId', 'isbn', 'body']),
  ],
  search: {
    fields: [
      keyword('name'),
      words('motto'),
      words('tags'),
      words('address', 'city'),
      words('dynamic', 'x'),
    ],
    edges: [
      { edge: 'shelves', fields: [keyword('label'), words('dynamic', 'y')] },
      { edge: 'books', fields: [words('title')] },
      { edge: 'notes', fields: [words('body')] },
    ],
  },
}

const SHELF: NodeType = {
  name: 'shelf',
  set: 'shelves',
  idField: 'shelfId',
  position: 'place',
  storage: { kind: 'row' },
  fields: [
    key('shelfId', 'uuid'),
    key('libraryId', 'uuid'),
    key('label', 'text'),
    field('width', 'number'),
    field('builtAt', 'instant'),
    field('dynamic', 'dynamic'),
  ],
  edges: [
    edge('library', 'library', 'single', 'libraryId'),
    edge('books', 'book', 'many', 'shelfId'),
    edge('notes', 'note', 'many', 'shelfId'),
    through('lentBooks', 'book', 'many', ['label', 'label', 'isbn', 'isbn']),
  ],
  search: { fields: [keyword('label'), words('dynamic', 'x')], edges: [] },
}

const BOOK: NodeType = {
  name: 'book',
  set: 'books',
  idField: 'bookId',
  storage: { kind: 'row' },
  fields: [
    field('bookId', 'text'),
    key('libraryId', 'uuid'),
    key('shelfId', 'uuid'),
    key('isbn', 'text'),
    field('pages', 'number'),
    field('isLent', 'boolean'),
    field('title', 'text'),
  ],
  edges: [
    edge('library', 'library', 'single', 'libraryId'),
    edge('shelf', 'shelf', 'single', 'shelfId'),
    edge('leaves', 'leaf', 'many', 'bookId'),
    across('alike', 'book', 'single', ['isLent', 'isLent']),
    through('lenders', 'library', 'many', ['isbn', 'isbn', 'libraryId', 'libraryId']),
    through('lentShelf', 'shelf', 'single', ['isbn', 'isbn', 'libraryId', 'libraryId']),
  ],
  search: { fields: [keyword('isbn'), words('title')], edges: [] },
}

const LEAF: NodeType = {
  name: 'leaf',
  set: 'leaves',
  idField: 'leafId',
  storage: { kind: 'embedded', node: 'book', member: 'leaves' },
  fields: [
    field('leafId', 'text'),
    field('bookId', 'text'),
    field('libraryId', 'uuid'),
    field('number', 'number'),
    field('text', 'text'),
    field('dynamic', 'dynamic'),
  ],
  edges: [
    edge('book', 'book', 'single', 'bookId'),
    edge('library', 'library', 'single', 'libraryId'),
  ],
  search: { fields: [words('text')], edges: [] },
}

const NOTE: NodeType = {
  name: 'note',
  set: 'notes',
  idField: 'noteId',
  storage: { kind: 'embedded', node: 'library', member: 'notes' },
  fields: [
    field('noteId', 'text'),
    field('libraryId', 'uuid'),
    field('shelfId', 'uuid'),
    field('cityCode', 'text'),
    field('body', 'text'),
    field('weight', 'number'),
    field('writtenAt', 'instant'),
  ],
  edges: [
    edge('library', 'library', 'single', 'libraryId'),
    edge('shelf', 'shelf', 'single', 'shelfId'),
    across('city', 'city', 'single', ['cityCode', 'code']),
  ],
  search: { fields: [words('body')], edges: [] },
}

/** Links between books, shelves and libraries. */
const LOAN: NodeType = {
  name: 'loan',
  set: 'loans',
  idField: 'loanId',
  storage: { kind: 'row' },
  fields: [
    field('loanId', 'text'),
    key('libraryId', 'uuid'),
    field('isbn', 'text'),
    field('label', 'text'),
    field('at', 'instant'),
  ],
  edges: [
    edge('library', 'library', 'single', 'libraryId'),
    across('books', 'book', 'many', ['isbn', 'isbn']),
  ],
}

const CITY: NodeType = {
  name: 'city',
  set: 'cities',
  idField: 'cityId',
  root: true,
  storage: { kind: 'row' },
  fields: [field('cityId', 'uuid'), key('code', 'text'), field('dynamic', 'dynamic')],
  edges: [
    across('libraries', 'library', 'many', ['code', 'cityCode']),
    across('notes', 'note', 'many', ['code', 'cityCode']),
  ],
}

const VISIT: NodeType = {
  name: 'visit',
  set: 'visits',
  idField: 'visitId',
  storage: { kind: 'history', parent: 'library', parentField: 'libraryId' },
  fields: [
    field('visitId', 'text'),
    field('libraryId', 'uuid'),
    field('mood', 'text'),
    field('minutes', 'number'),
  ],
  edges: [edge('library', 'library', 'single', 'libraryId')],
  search: { fields: [keyword('mood')], edges: [] },
}

export const NODE_TYPES: readonly NodeType[] = [LIBRARY, SHELF, BOOK, LEAF, NOTE, LOAN, CITY, VISIT]
export const SCHEMA = graphSchema(NODE_TYPES)

export const TEXTS = [
  'a', 'A', 'ab', 'b', 'B', 'z', 'é', '\uE000', '\uFFFD', '😀', '😀b', '', ' ', "it's", 'say "x"',
  'back\\slash', '50%', 'a_c', 'a*[c?]', 'now', '1', 'true', '2026-01-01',
] // prettier-ignore
/** What phrases find: few words in many texts. */
export const NAMES = [
  'Åsa Öberg', 'asa öberg lind', 'Lind ÅSA', '王小明 Öberg', 'öberg', 'LIND', "it's Åsa, it's", 'a-b asa',
  "Lind 't ö\u00adberg", 'O\uff07asa li\u200dnd',
] // prettier-ignore
export const NUMBERS = [0, 1, -1, 2.5, 0.1, 0.2, 0.3, 10, 99.99, 1_000_000_000_000, 0.0001]
export const INSTANTS = [
  '1969-12-31T23:59:59.500Z',
  '2026-01-01T00:00:00.000Z',
  '2026-01-01T00:00:00.001Z',
  '2026-01-31T12:00:00.000Z',
  '2026-03-01T00:00:00.000Z',
]
export const DATES = ['2025-12-31', '2026-01-01', '2026-01-02', '2026-02-28', '2026-03-01']
export const MEMBERS = [
  'x',
  'y',
  'x\u0000y',
  'x\u0001',
  'a"b',
  "it's",
  'b\\c',
  'd.e',
  '[0]',
  'é😀',
  '',
]
export const CODES = ['N', 'S', '\uE000', '😀']
export const PLACES = [1, 2, 3, 10]

/** UUIDs of actors and of children; child ids are few, so actors share them. */
export const actorIds = Array.from({ length: 12 }, (_, i) => uuid(0xa, i))
export const shelfIds = Array.from({ length: 5 }, (_, i) => uuid(0xb, i))
export const bookIds = ['1', '2', '10', 'B', 'b', '😀', '\uE000']

function uuid(kind: number, i: number): string {
  // Neither rising nor falling with i.
  const place = ((i * 7 + 3) % 16).toString(16)
  return `0190a${place}00-0000-7000-8000-00000000${kind.toString(16)}0${i.toString(16).padStart(2, '0')}`
}

export type Doc = Record<string, unknown>

/** Visits of an actor, oldest first: the same ones always. */
export function visitsOf(actorId: string): Doc[] {
  const n = actorIds.indexOf(actorId)
  return Array.from({ length: (n * 5) % 7 }, (_, i) => ({
    visitId: `v${i}`,
    libraryId: actorId,
    mood: TEXTS[(n + i * 3) % 5],
    minutes: NUMBERS[(n * 2 + i) % 4],
  }))
}
