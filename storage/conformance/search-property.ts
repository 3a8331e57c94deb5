// The heart of the graph index suite, a property: whatever was written, in whatever order, any
// query answers what the plain reference answers, order included. Source: ARCHITECTURE 5 and 7,
// CONTRACT 1.4, PROTOCOL 3.13.

import fc from 'fast-check'
import type { Test } from 'tap'
import { FULL_ACCESS } from '../../protocol/graph/planning.ts'
import type { GraphReader, GraphWriter, IndexWrite } from '../search.ts'
import { ask, OPTIONS, planOf, TIMEOUT_MS, type MakeIndex } from './search-index.ts'
import { type Doc, SCHEMA } from './search-nodes.ts'
import { aimed, bodyOf, randomAim, randomQuery, type RandomNavigation } from './search-queries.ts'
import { Reference, type ReferenceNode } from './search-reference.ts'
import { accessOf, randomSight, type Sight } from './search-sight.ts'
import { randomWrites, type RandomWrite } from './search-writes.ts'

/** So many answered queries tell whether the random ones find anything at all. */
const JUDGED_QUERIES = 400

const SEES_ALL: Sight = new Map()

const keyOf = ({ actorId, node, id }: RandomWrite): string => `${actorId} ${node} ${id}`

/** What writes leave behind, in the order in which it came, last if it went in between. */
export function remaining(writes: readonly RandomWrite[]): ReferenceNode[] {
  const last = new Map<string, ReferenceNode>()
  for (const { doc, ...rest } of writes) {
    const key = keyOf({ doc, ...rest })
    if (doc === null) last.delete(key)
    else last.set(key, { ...rest, doc })
  }
  return [...last.values()]
}

interface Batching {
  /** Writes in one step. */
  readonly size: number
  /** Every so many writes an older one is sent again. */
  readonly repeatEvery: number
  /** Writes name places, though the driver could do without. */
  readonly hasPlaces: boolean
  /** Each step ends with the libraries that it touched, holding their other nodes. */
  readonly isWhole: boolean
}

/** Each node at its place: where it came, among all that ever came. */
function placed(writes: readonly RandomWrite[]): IndexWrite[] {
  const places = new Map<string, number>()
  let next = 0
  return writes.map((write, i) => {
    const key = keyOf(write)
    if (write.doc === null) places.delete(key)
    else if (!places.has(key)) places.set(key, next++)
    const place = places.get(key)
    return { ...write, version: i + 1, ...(place !== undefined && { place }) }
  })
}

/** Writes as a projector would send them, with old ones in between that must change nothing. */
export async function applyAll(
  writer: GraphWriter,
  writes: readonly RandomWrite[],
  batching: Batching,
): Promise<void> {
  const needsPlaces = writer.placed || batching.hasPlaces
  const sent = placed(writes).map((write) => {
    const { place: _, ...bare } = write
    return needsPlaces ? write : bare
  })
  const withOld = sent.flatMap((write, i) => {
    if (i % batching.repeatEvery !== batching.repeatEvery - 1) return [write]
    return [write, sent[Math.floor(i / 2)]!]
  })
  const wholes = new Wholes()
  for (let at = 0; at < withOld.length; at += batching.size) {
    const step = withOld.slice(at, at + batching.size)
    const more = batching.isWhole && writer.placed ? wholes.after(step) : []
    await writer.apply([...step, ...more], [{ shard: 0, offset: at + 1 }])
  }
}

/** Libraries with all that is in them, as a projector writes them where places are asked for. */
class Wholes {
  readonly #actors = new Map<string, Map<string, IndexWrite>>()

  /** Those that these writes change, as they are behind them. */
  after(writes: readonly IndexWrite[]): IndexWrite[] {
    for (const write of writes) {
      const nodes = this.#actors.get(write.actorId) ?? new Map<string, IndexWrite>()
      this.#actors.set(write.actorId, nodes)
      const key = `${write.node} ${write.id}`
      if ((nodes.get(key)?.version ?? 0) < write.version) nodes.set(key, write)
    }
    return [...new Set(writes.map(({ actorId }) => actorId))].flatMap((actorId) => {
      const nodes = [...this.#actors.get(actorId)!.values()]
      const own = nodes.find(({ node, id }) => node === 'library' && id === actorId)
      if (own === undefined || own.doc === null) return []
      const others = nodes.filter((one) => one !== own && one.doc !== null)
      const whole = others
        .toSorted((a, b) => a.place! - b.place!)
        .map(({ node, id, doc }) => ({ node, id, doc: doc! }))
      return [{ ...own, version: Math.max(...nodes.map(({ version }) => version)), whole }]
    })
  }
}

export async function property(t: Test, make: MakeIndex): Promise<void> {
  t.setTimeout(TIMEOUT_MS)
  const { writer, reader, runs } = await make(t, OPTIONS)
  // What a failed run has printed repeats it.
  const seed = Number(process.env['SEARCH_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  let answered = 0
  let found = 0
  await fc.assert(
    fc.asyncProperty(
      randomWrites,
      fc.record({
        size: fc.integer({ min: 1, max: 30 }),
        repeatEvery: fc.integer({ min: 2, max: 9 }),
        hasPlaces: fc.boolean(),
        isWhole: fc.boolean(),
      }),
      fc.array(fc.record({ random: randomQuery, aim: randomAim }), { minLength: 5, maxLength: 10 }),
      fc.option(randomSight, { nil: SEES_ALL, freq: 2 }),
      async (writes, batching, queries, sight) => {
        await writer.reset('again')
        await applyAll(writer, writes, batching)
        const nodes = remaining(writes)
        const reference = new Reference(nodes, sight)
        const isWhole = batching.isWhole || !writer.placed
        for (const { random, aim } of queries) {
          const query = asWhole(aim === null ? random : aimed(random, nodes, aim), isWhole)
          answered++
          if (await agrees(reader, reference, query, { access: accessOf(sight) })) found++
        }
      },
    ),
    {
      numRuns: Number(process.env['SEARCH_RUNS'] ?? runs ?? 250),
      // Where runs are few they are slow: the seed is worth more than a smaller example.
      endOnFailure: runs !== undefined || process.env['SEARCH_SEED'] !== undefined,
      seed,
    },
  )
  const share = `${found} of ${answered} queries found something (SEARCH_SEED=${seed})`
  // Of few queries luck has the greater part.
  if (answered < JUDGED_QUERIES) t.comment(share)
  else t.ok(found * 4 > answered, share)
}

/** A library without its other nodes in it is not found by them: it isn't looked for then. */
function asWhole(query: readonly RandomNavigation[], isWhole: boolean): RandomNavigation[] {
  return query.map((one) => ({
    ...one,
    phrase: isWhole || one.type.name !== 'library' ? one.phrase : null,
    node: one.node && { ...one.node, navigate: asWhole(one.node.navigate, isWhole) },
  }))
}

/** So many pages of one query are looked at. */
const PAGES = 4

/**
 * Asks a query, page by page as far as its first base set goes, and throws where an answer is not
 * the reference's. True: something was found.
 */
export async function agrees(
  reader: GraphReader,
  reference: Reference,
  query: readonly RandomNavigation[],
  { access = FULL_ACCESS, pages = PAGES } = {},
): Promise<boolean> {
  const [first, ...more] = bodyOf(query) as [Doc, ...Doc[]]
  const { alias, limit } = query[0]!
  // The second page is asked for with a cursor of any node, as the last of a page is.
  let after: string | undefined
  let isSome = false
  for (let page = 0; page < pages; page++) {
    const cursor = page === 1 ? 'each' : 'last'
    const body = [{ ...first, cursor, ...(after !== undefined && { after }) }, ...more]
    const expected = asJson(reference.answer(query, page * (limit ?? 100))) as Doc
    const answer = asJson(await ask(reader, body, access)) as Doc
    const { [`${alias}Cursor`]: last, [`${alias}Cursors`]: each, ...shown } = answer
    const hasMore = expected[`${alias}HasMore`] === true
    const next = each === undefined ? last : (each as string[]).at(-1)
    if (!equal(shown, expected) || (each === undefined && (last !== undefined) !== hasMore)) {
      throw new Error(
        `query ${JSON.stringify(body)}\n planned ${JSON.stringify(planOf(body, SCHEMA, access))}\n answered ${JSON.stringify(answer)}\n` +
          ` expected ${JSON.stringify(expected)}`,
      )
    }
    isSome ||= showsSomething(expected)
    if (!hasMore) break
    after = next as string
  }
  return isSome
}

/** True when an answer shows a node, or counts one. */
function showsSomething(answer: unknown): boolean {
  return Object.values(answer as Doc).some((value) => {
    if (Array.isArray(value)) return value.length > 0
    if (typeof value === 'object' && value !== null) return (value as Doc)['count'] !== 0
    return value !== null && value !== 0 && value !== false
  })
}

const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** The same JSON, whatever the order of members. */
function equal(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((one, i) => equal(one, b[i]))
  }
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b
  const [x, y] = [Object.entries(a), b as Record<string, unknown>]
  return (
    x.length === Object.keys(y).length &&
    x.every(([name, value]) => Object.hasOwn(y, name) && equal(value, y[name]))
  )
}
