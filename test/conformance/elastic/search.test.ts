// The driver of the search engine passes the suite of every graph index: on the engine's twin, and
// on a real Elasticsearch.

import t, { type Test } from 'tap'
import { engine, type EngineAddress } from '../../harness/engines.ts'
import type { RemoteHistory } from '../../../protocol/graph/history.ts'
import type { GraphSchema } from '../../../protocol/graph/schema.ts'
import type { Position } from '../../../protocol/ids.ts'
import { ask, library, OPTIONS, shelf } from '../../../storage/conformance/search-index.ts'
import type { IndexOptions, IndexUnderTest } from '../../../storage/conformance/search-index.ts'
import { actorIds } from '../../../storage/conformance/search-nodes.ts'
import { searchConformance, searchProperty } from '../../../storage/conformance/search.ts'
import { MemorySearchEngine } from '../../../storage/memory/search-engine.ts'
import type { Fill, GraphReader, GraphWriter, IndexWrite } from '../../../storage/search.ts'
import { ElasticClient } from '../../../storage/elastic/client.ts'
import type { SearchEngine } from '../../../storage/elastic/engine.ts'
import type { FinderBounds } from '../../../storage/elastic/finder.ts'
import { Generations } from '../../../storage/elastic/generations.ts'
import { layoutOf } from '../../../storage/elastic/layout.ts'
import { ElasticReader } from '../../../storage/elastic/reader.ts'
import { ElasticWriter } from '../../../storage/elastic/writer.ts'

/** What outlives a writer: which generation is the live one, and how far it is. */
interface Kept {
  number: number
  generation: string | null
  readonly offsets: Map<number, number>
  readonly fills: Map<number, Fill>
}

interface Whole {
  readonly options: IndexOptions
  readonly kept: Kept
  readonly bounds?: FinderBounds | undefined
}

/** Everything in pieces: pages, parents, searches. */
const PIECES: FinderBounds = { page: 2, wholes: 1, links: 2, searches: 2, semiJoinChildren: 2 }

/** One index over the generations that the suite empties; its searches see all that was written. */
class WholeIndex implements GraphWriter, GraphReader {
  readonly placed = true
  readonly #engine: SearchEngine
  readonly #options: IndexOptions
  readonly #kept: Kept
  readonly #generations: Generations
  readonly #bounds: FinderBounds | undefined

  constructor(engine: SearchEngine, prefix: string, { options, kept, bounds }: Whole) {
    this.#engine = engine
    this.#options = options
    this.#kept = kept
    this.#bounds = bounds
    const layout = layoutOf(options.schema)
    this.#generations = new Generations({ engine, prefix, layout, store: 'test' })
  }

  async apply(
    writes: readonly IndexWrite[],
    offsets: readonly Position[],
    fills: readonly Fill[] = [],
  ): Promise<void> {
    const layout = layoutOf(this.#options.schema)
    const writer = new ElasticWriter({
      engine: this.#engine,
      layout,
      rows: new Set(layout.nodes.keys()),
      writeAliasOf: (name) => this.#generations.writeAliasOf(this.#kept.number, name),
      saveOffsets: async (saved) => {
        for (const { shard, offset } of saved) this.#kept.offsets.set(shard, offset)
        for (const { shard } of saved) this.#kept.fills.delete(shard)
      },
      saveFills: async (saved) => {
        for (const fill of saved) this.#kept.fills.set(fill.shard, fill)
      },
      nowMs: () => 0,
      pause: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
      beforeBulk: () => undefined,
    })
    await writer.apply(writes, offsets, fills)
  }

  offsets(): ReadonlyMap<number, number> {
    return this.#kept.offsets
  }

  fills(): ReadonlyMap<number, Fill> {
    return this.#kept.fills
  }

  generation(): string | null {
    return this.#kept.generation
  }

  async reset(generation: string): Promise<void> {
    await this.#generations.make(this.#kept.number + 1)
    await this.#generations.activate(this.#kept.number + 1)
    await this.#generations.drop(this.#kept.number)
    this.#kept.number++
    this.#kept.generation = generation
    this.#kept.offsets.clear()
    this.#kept.fills.clear()
  }

  async query(...[plan, budgetMs]: Parameters<GraphReader['query']>) {
    const layout = layoutOf(this.#options.schema)
    const names = Array.from(layout.nodes.values(), ({ name }) => this.indexOf(name))
    await this.#engine.refresh(names, { timeoutMs: 60_000 })
    const reader = new ElasticReader({
      engine: this.#engine,
      schema: this.#options.schema,
      indexOf: (name) => this.indexOf(name),
      history: remote(this.#options),
      now: this.#options.now,
      cursors: this.#options.cursors,
      ...(this.#bounds && { bounds: this.#bounds }),
    })
    return reader.query(plan, budgetMs)
  }

  indexOf(name: string): string {
    return this.#generations.indexOf(this.#kept.number, name)
  }

  async clear(): Promise<void> {
    for (const number of (await this.#generations.find()).keys()) {
      await this.#generations.drop(number)
    }
  }

  close(): void {}
}

/** History piece by piece, two nodes at a time. */
function remote({ history }: IndexOptions): RemoteHistory {
  return {
    read: async (actorId, node, rest) => {
      const all = [...history.read(actorId, node)]
      const from = (rest as number | null) ?? 0
      const nodes = all.slice(from, from + 2)
      return { nodes, rest: from + 2 < all.length ? from + 2 : null }
    },
  }
}

let made = 0

function open(
  t: Test,
  search: SearchEngine,
  options: IndexOptions,
  bounds?: FinderBounds,
): IndexUnderTest {
  const prefix = `conformance-${process.pid}-${++made}-`
  const kept: Kept = { number: 0, generation: null, offsets: new Map(), fills: new Map() }
  const make = (schema: GraphSchema): IndexUnderTest => {
    const index = new WholeIndex(search, prefix, { options: { ...options, schema }, kept, bounds })
    return { writer: index, reader: index, reopen: make }
  }
  t.teardown(() => new WholeIndex(search, prefix, { options, kept }).clear())
  return make(options.schema)
}

t.setTimeout(280_000)

t.test('the twin', (t) => {
  searchConformance(t, (t, options) => open(t, new MemorySearchEngine({ nowMs: () => 0 }), options))
  t.end()
})

t.test('the twin, in pieces', (t) => {
  searchProperty(t, (t, options) =>
    open(t, new MemorySearchEngine({ nowMs: () => 0 }), options, PIECES),
  )
  t.end()
})

/** What a projector writes of a library with these labels on its shelves. */
function shelved(actorId: string, version: number, labels: readonly string[]): IndexWrite[] {
  const shelves = labels.map((label, place) => ({
    ...shelf(actorId, String(place), version, { label }),
    place,
  }))
  const whole = shelves.map(({ node, id, doc }) => ({ node, id, doc: doc! }))
  return [{ ...library(actorId, version, { area: labels.length }), place: 0, whole }, ...shelves]
}

const SHELVES = {
  edge: 'shelves',
  node: { fields: ['label'], navigate: [{ edge: 'library', node: { fields: ['area'] } }] },
}

t.test('what is shown below an own node is of the state that it shows', async (t) => {
  const [one] = actorIds as [string]
  const { writer, reader } = open(t, new MemorySearchEngine({ nowMs: () => 0 }), OPTIONS)
  await writer.reset('one')
  const shown = (more: object = {}, navigate: object[] = [SHELVES]): Promise<object> =>
    ask(reader, [{ edge: 'libraries', ...more, node: { fields: ['area'], navigate } }])
  const as = (...labels: string[]): object => {
    const area = labels.length
    const shelves = labels.map((label) => ({ label, library: { area } }))
    return { libraries: [{ area, shelves }] }
  }
  await writer.apply(shelved(one, 1, ['a', 'b']), [])
  t.same(await shown(), as('a', 'b'))
  const [own, ...shelves] = shelved(one, 2, ['a', 'x', 'c'])
  await writer.apply(shelves, [])
  t.same(await shown(), as('a', 'b'), 'parts that come into sight before it')
  const semiJoin = { ...SHELVES, filter: "label == 'x'", require: 'some' }
  t.same(await shown({}, [semiJoin]), { libraries: [] }, 'what it does not hold opens no semi-join')
  await writer.apply([own!], [])
  t.same(await shown(), as('a', 'x', 'c'))
  const [later] = shelved(one, 3, ['a', 'y', 'c', 'd'])
  await writer.apply([later!], [])
  t.same(await shown(), as('a', 'y', 'c', 'd'), 'parts that come into sight behind it')
  t.same(await shown({}, [semiJoin]), { libraries: [] }, 'nor does what it does not hold any more')
  await writer.apply([{ ...library(one, 4, { area: 2 }), place: 0 }], [])
  const [{ shelves: apart }] = ((await shown()) as { libraries: [{ shelves: object[] }] }).libraries
  t.same(apart, [{ label: 'a' }, { label: 'x' }, { label: 'c' }].map(of2), 'too many: searched for')
})

const of2 = (node: object): object => ({ ...node, library: { area: 2 } })

t.test('libraries that hold their shelves come in smaller pages', async (t) => {
  const bounds = { ...PIECES, wholes: 2 }
  const engine = new MemorySearchEngine({ nowMs: () => 0 })
  const { writer, reader } = open(t, engine, OPTIONS, bounds)
  await writer.reset('one')
  await writer.apply(
    actorIds.flatMap((id, i) => shelved(id, 1, Array<string>(i).fill('a'))),
    [],
  )
  const all = actorIds.toSorted().map((id) => ({ area: actorIds.indexOf(id) }))
  for (const limit of [1, 2, 3, actorIds.length]) {
    const node = { fields: ['area'], navigate: [{ edge: 'shelves', count: true }] }
    const answer = await ask(reader, [{ edge: 'libraries', limit, count: true, node }])
    t.same(answer, {
      libraries: {
        count: actorIds.length,
        nodes: all.slice(0, limit).map(({ area }) => ({ area, shelves: area })),
      },
      ...(limit < all.length && { librariesHasMore: true }),
    })
  }
})

t.test('Elasticsearch', async (t) => {
  t.setTimeout(270_000)
  const address = await engine('elasticsearch')
  if ('skipped' in address) {
    t.pass(address.skipped, { skip: address.skipped })
    return
  }
  const client = clientOf(address)
  t.teardown(() => client.close())
  await missingValues(t, client, address)
  searchConformance(t, (t, options) => ({ ...open(t, client, options), runs: 12 }))
  searchProperty(t, (t, options) => ({ ...open(t, client, options, PIECES), runs: 8 }))
})

/** A page may end with a document that has no value: its sort values lead on all the same. */
async function missingValues(t: Test, client: ElasticClient, { host, port }: EngineAddress) {
  const index = `conformance-${process.pid}-missing`
  const url = `http://${host}:${port}/${index}`
  const put = (path: string, body: object): Promise<Response> =>
    fetch(url + path, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const types = { truth: 'boolean', day: 'date', amount: 'double', word: 'keyword' }
  const given = { truth: false, day: '2026-01-31', amount: 2.5, word: 'a' }
  const properties = Object.fromEntries(
    Object.entries(types).map(([name, type]) => [name, { type }]),
  )
  await put('', { mappings: { properties: { ...properties, place: { type: 'long' } } } })
  t.teardown(() => fetch(url, { method: 'DELETE' }))
  for (const place of [0, 1, 2]) {
    await put(`/_doc/${place}?refresh=true`, { place, ...(place === 0 && given) })
  }
  for (const name of Object.keys(types)) {
    for (const order of ['asc', 'desc'] as const) {
      const places: unknown[] = []
      let searchAfter: readonly unknown[] | null = null
      for (let page = 0; page < 3; page++) {
        const [answer] = await client.search(
          [
            {
              ...{ index, query: { match_all: {} }, size: 1, source: ['place'], counts: false },
              sort: [
                { [name]: { order, missing: '_last' } },
                { place: { order: 'asc', missing: '_last' } },
              ],
              ...(searchAfter && { searchAfter }),
            },
          ],
          { timeoutMs: 60_000 },
        )
        const [hit] = answer!.hits
        places.push(hit?.source['place'])
        searchAfter = hit?.sort ?? null
      }
      t.same(places, [0, 1, 2], `${name} ${order}`)
    }
  }
}

function clientOf({ host, port }: EngineAddress): ElasticClient {
  return new ElasticClient({ urls: [`http://${host}:${port}`] })
}
