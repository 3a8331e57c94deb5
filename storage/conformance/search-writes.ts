// Random nodes for the graph index's conformance suite, as they are written and removed. It stands
// beside the suite.

import fc from 'fast-check'
import {
  actorIds,
  bookIds,
  CODES,
  DATES,
  type Doc,
  INSTANTS,
  MEMBERS,
  NAMES,
  NUMBERS,
  PLACES,
  shelfIds,
  TEXTS,
} from './search-nodes.ts'

/** What nodes are made of: the more there is, the fewer nodes meet. */
export interface World {
  /** Actors: libraries, and cities. */
  readonly libraries: readonly string[]
  readonly cities: readonly string[]
  /** Ids of shelves and of books and loans: actors share them. */
  readonly shelfIds: readonly string[]
  readonly bookIds: readonly string[]
  /** Actors that may be a library's twin, there or not. */
  readonly twins: readonly string[]
  readonly codes: readonly string[]
  /** Values of the fields that edges go by. */
  readonly keys: readonly string[]
  readonly sizes: readonly number[]
  readonly instants: readonly string[]
}

/** Few of each. */
export const SMALL_WORLD: World = {
  libraries: actorIds.slice(0, 9),
  cities: actorIds.slice(9),
  shelfIds,
  bookIds,
  twins: actorIds,
  codes: CODES,
  keys: TEXTS,
  sizes: NUMBERS,
  instants: INSTANTS,
}

const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null | undefined> =>
  fc.oneof(
    { weight: 6, arbitrary: value },
    { weight: 1, arbitrary: fc.constantFrom(null, undefined) },
  )
const some = <T>(values: readonly T[]): fc.Arbitrary<T | null | undefined> =>
  maybe(fc.constantFrom(...values))

/** Texts that phrases find, among others. */
const NAMED = [...NAMES, ...NAMES, ...NAMES, ...TEXTS]

const anyJson: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(...TEXTS, ...INSTANTS.slice(0, 2)),
  fc.constantFrom<unknown>(...NUMBERS, true, false, null),
  fc.array(fc.constantFrom<unknown>('a', '1', 1, 2.5, true, false, null, 'é'), { maxLength: 3 }),
  fc.record({ x: fc.constantFrom<unknown>('a', 1, null) }),
)
const dynamic = maybe(fc.dictionary(fc.constantFrom(...MEMBERS), anyJson, { maxKeys: 4 }))

const libraryDoc = ({ keys, sizes, instants, twins, codes, shelfIds: shelves }: World) =>
  fc.record<Doc>({
    name: some([...keys, ...NAMES]),
    kind: some(['small', 'large']),
    area: some(sizes),
    openedAt: some(instants),
    checkedAt: some(INSTANTS),
    closesOn: some(DATES),
    isPublic: some([true, false]),
    tags: maybe(fc.uniqueArray(fc.constantFrom(...TEXTS, ...NAMES), { maxLength: 3 })),
    address: maybe(fc.record({ city: some(NAMED), floor: some(NUMBERS) })),
    motto: some(NAMED),
    rating: some(NUMBERS),
    dynamic,
    raw: anyJson,
    twinId: some(twins),
    cityCode: some(codes),
    notes: maybe(
      fc.uniqueArray(
        fc.record<Doc>({
          noteId: fc.constantFrom(...bookIds),
          shelfId: some(shelves),
          cityCode: some(codes),
          body: some([...keys, ...NAMED]),
          weight: some(NUMBERS),
          writtenAt: some(INSTANTS),
        }),
        { selector: (note) => note['noteId'], maxLength: 3 },
      ),
    ),
  })

const shelfDoc = ({ keys, instants }: World) =>
  fc.record<Doc>({
    label: some([...keys, ...NAMES]),
    width: some(NUMBERS),
    builtAt: some(instants),
    dynamic,
    place: some(PLACES),
  })

const bookDoc = ({ keys, shelfIds: shelves }: World) =>
  fc.record<Doc>({
    shelfId: some(shelves),
    isbn: some(keys),
    pages: some(NUMBERS),
    isLent: some([true, false]),
    title: some(NAMED),
    leaves: maybe(
      fc.array(fc.record<Doc>({ number: some(NUMBERS), text: some(NAMED), dynamic }), {
        maxLength: 3,
      }),
    ),
  })

const loanDoc = ({ keys }: World) =>
  fc.record<Doc>({ isbn: some(keys), label: some(keys), at: some(INSTANTS) })

const cityDoc = ({ codes }: World) => fc.record<Doc>({ code: some(codes), dynamic })

/** One node to write or remove. */
export interface RandomWrite {
  readonly node: string
  readonly actorId: string
  readonly id: string
  readonly doc: Doc | null
}

const write = (
  node: string,
  place: { actors: readonly string[]; ids: readonly string[] | null },
  doc: fc.Arbitrary<Doc>,
  finish: (doc: Doc, actorId: string, id: string) => Doc,
): fc.Arbitrary<RandomWrite> =>
  fc
    .record({
      actorId: fc.constantFrom(...place.actors),
      child: fc.constantFrom(...(place.ids ?? [''])),
      doc: fc.option(doc, { freq: 8 }),
    })
    .map(({ actorId, child, doc: made }) => {
      const id = place.ids === null ? actorId : child
      return { node, actorId, id, doc: made === null ? null : finish(made, actorId, id) }
    })

const withNotes = (doc: Doc, libraryId: string): Doc =>
  Array.isArray(doc['notes'])
    ? { ...doc, libraryId, notes: (doc['notes'] as Doc[]).map((note) => ({ ...note, libraryId })) }
    : { ...doc, libraryId }

function withLeaves(doc: Doc, libraryId: string, bookId: string): Doc {
  const own = { ...doc, bookId, libraryId }
  if (!Array.isArray(doc['leaves'])) return own
  const leaves = (doc['leaves'] as Doc[]).map((leaf, i) => ({
    ...leaf,
    leafId: `${bookId}/${i}`,
    bookId,
    libraryId,
  }))
  return { ...own, leaves }
}

/** One write of any node of the world. */
export function randomWrite(world: World): fc.Arbitrary<RandomWrite> {
  const { libraries: actors, cities } = world
  const shelves = { actors, ids: world.shelfIds }
  const books = { actors, ids: world.bookIds }
  return fc.oneof(
    {
      weight: 4,
      arbitrary: write('library', { actors, ids: null }, libraryDoc(world), withNotes),
    },
    {
      weight: 4,
      arbitrary: write('shelf', shelves, shelfDoc(world), (doc, libraryId, shelfId) => ({
        ...doc,
        shelfId,
        libraryId,
      })),
    },
    { weight: 4, arbitrary: write('book', books, bookDoc(world), withLeaves) },
    {
      weight: 3,
      arbitrary: write('loan', books, loanDoc(world), (doc, libraryId, loanId) => ({
        ...doc,
        loanId,
        libraryId,
      })),
    },
    {
      weight: 1,
      arbitrary: write('city', { actors: cities, ids: null }, cityDoc(world), (doc, cityId) => ({
        ...doc,
        cityId,
      })),
    },
  )
}

/** Writes in any order; the later of two for one node is the newer. */
export const randomWrites: fc.Arbitrary<RandomWrite[]> = fc.array(randomWrite(SMALL_WORLD), {
  minLength: 1,
  maxLength: 60,
})
