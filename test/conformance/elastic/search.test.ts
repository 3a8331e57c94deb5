// The driver of the search engine passes the suite of every graph index: on the engine's twin, and
// on a real Elasticsearch.

import t, { type Test } from 'tap'
import { engine, type EngineAddress } from '../../harness/engines.ts'
import type { GraphSchema } from '../../../protocol/graph/schema.ts'
import { ask, library, OPTIONS, shelf } from '../../../storage/conformance/search-index.ts'
import type { IndexOptions, IndexUnderTest } from '../../../storage/conformance/search-index.ts'
import { actorIds } from '../../../storage/conformance/search-nodes.ts'
import { searchConformance, searchProperty } from '../../../storage/conformance/search.ts'
import { MemorySearchEngine } from '../../../storage/memory/search-engine.ts'
import type { IndexWrite } from '../../../storage/search.ts'
import { ElasticClient } from '../../../storage/elastic/client.ts'
import type { SearchEngine } from '../../../storage/elastic/engine.ts'
import type { FinderBounds } from '../../../storage/elastic/finder.ts'
import { wholeIndex } from './whole-index.ts'

/** Everything in pieces: pages, parents, searches. */
const PIECES: FinderBounds = { page: 2, wholes: 1, links: 2, searches: 2, semiJoinChildren: 2 }

function open(
  t: Test,
  search: SearchEngine,
  options: IndexOptions,
  bounds?: FinderBounds,
): IndexUnderTest {
  const indexFor = wholeIndex(t, search, options, bounds)
  const make = (schema: GraphSchema): IndexUnderTest => {
    const index = indexFor(schema)
    return { writer: index, reader: index, reopen: make }
  }
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
