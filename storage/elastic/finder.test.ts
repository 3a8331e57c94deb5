// What a plan costs the search engine: how many searches, of how many documents, in what time; and
// what a caller is told when it fails. That the answers are right, the suite says
// (test/conformance/elastic/search.test.ts).
// Source: ARCHITECTURE 5, CONTRACT 1.4.

import t from 'tap'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import { library, planOf, shelf } from '../conformance/search-index.ts'
import { actorIds, SCHEMA } from '../conformance/search-nodes.ts'
import type { IndexWrite } from '../search.ts'
import { EngineAway, NoSuchIndex, type RequestBound, type SearchRequest } from './engine.ts'
import { FINDER_BOUNDS, type FinderBounds } from './finder.ts'
import { ElasticReader } from './reader.ts'
import { firstGeneration } from './testing/first-generation.ts'

/** Everything in pieces, each of another size. */
const PIECES: FinderBounds = { page: 5, wholes: 4, links: 3, searches: 2, semiJoinChildren: 6 }

async function stage(writes: readonly IndexWrite[], bounds?: FinderBounds) {
  const clock = { ms: 0 }
  const { engine, writer, indexOf, refresh } = await firstGeneration()
  await writer.apply(writes, [])
  await refresh()
  const asked: { requests: readonly SearchRequest[]; timeoutMs: number }[] = []
  const hooks: { during?: () => void } = {}
  const search = engine.search.bind(engine)
  engine.search = async (requests, bound?: RequestBound) => {
    asked.push({ requests, timeoutMs: bound!.timeoutMs })
    hooks.during?.()
    return search(requests)
  }
  const reader = new ElasticReader({
    engine,
    schema: SCHEMA,
    indexOf,
    now: () => clock.ms,
    bounds: bounds ?? FINDER_BOUNDS,
  })
  const ask = async (body: object, budgetMs = 1_000): Promise<Record<string, unknown>> => {
    asked.length = 0
    return { ...(await reader.query(planOf([body]), budgetMs)) }
  }
  /** The searches of one answer, together as they were sent. */
  const sent = async (body: object): Promise<SearchRequest[][]> => {
    await ask(body)
    return asked.map(({ requests }) => [...requests])
  }
  return { clock, asked, hooks, ask, sent }
}

const libraries = (doc: object = {}): IndexWrite[] =>
  actorIds.map((id, i) => library(id, 1, { name: 'a', motto: 'all', area: i, ...doc }))

const refusal = async (run: Promise<unknown>): Promise<[string, string] | null> => {
  try {
    await run
    return null
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    const [{ code, message }] = error.errors as unknown as [{ code: string; message: string }]
    return [code, message]
  }
}

t.test('what the engine can say whole is one search of as many as are shown', async (t) => {
  const { sent } = await stage(libraries())
  const of = async (more: object) => {
    const searches = await sent({ edge: 'libraries', filter: "name == 'a'", ...more })
    return searches.map((some) => some.map(({ size, counts }) => [size, counts]))
  }
  const node = { fields: ['name'] }
  t.same(await of({ limit: 3, node }), [[[4, false]]], 'one more tells that there are more')
  t.same(await of({ count: true }), [[[0, true]]], 'who counts reads none')
  t.same(await of({ limit: 3, count: true, node }), [[[4, true]]])
})

t.test('candidates come in pages that grow, unless all are needed', async (t) => {
  const { sent } = await stage(libraries({ rating: 1 }), { ...FINDER_BOUNDS, page: 10 })
  const sizes = async (more: object): Promise<number[]> => {
    const node = { fields: ['area'] }
    const filter = 'area + rating > 100'
    const searches = await sent({ edge: 'libraries', filter, orderBy: 'area', node, ...more })
    return searches.flat().map(({ size }) => size)
  }
  t.same(await sizes({ limit: 1 }), [8, 10], 'of the first as many as are soon enough')
  t.same(await sizes({ limit: 2 }), [10, 10])
  t.same(await sizes({ limit: 1, count: true }), [10, 10])
  const found = await stage(libraries())
  await found.ask({ edge: 'libraries', filter: "motto contains 'l'", limit: 1 })
  t.same(
    found.asked.flatMap(({ requests }) => requests.map(({ size }) => size)),
    [8],
  )
})

t.test('candidates are read until there are enough', async (t) => {
  const { sent, ask } = await stage(libraries(), PIECES)
  const of = (limit: number) => {
    const filter = "motto contains 'l'"
    return { edge: 'libraries', filter, limit, orderBy: 'area', node: { fields: ['area'] } }
  }
  for (const [limit, pages] of [
    [1, 1],
    [4, 1],
    [5, 2],
    [9, 2],
    [10, 3],
    [100, 3],
  ] as const) {
    const searches = await sent(of(limit))
    t.equal(searches.length, pages, `${limit} of ${actorIds.length}`)
    for (const [request] of searches) t.equal(request!.size, PIECES.page)
  }
  const { libraries: shown } = (await ask(of(3))) as { libraries: object[] }
  t.same(shown, [{ area: 0 }, { area: 1 }, { area: 2 }])
})

t.test('no search asks for more than its bounds', async (t) => {
  const writes = actorIds.flatMap((id, i) => [
    { ...library(id, 1, { name: 'a', motto: 'all', cityCode: `c${i % 5}`, twinId: id }), place: 0 },
    { ...shelf(id, 's', 1, { label: `l${i}` }), place: 0 },
    { ...shelf(id, 't', 1, { label: 'both' }), place: 1 },
  ])
  const cities = [0, 1, 2, 3, 4].map((i): IndexWrite => {
    const id = `0190b000-0000-7000-8000-00000000000${i}`
    return { node: 'city', actorId: id, id, version: 1, doc: { cityId: id, code: `c${i}` } }
  })
  const { sent } = await stage([...writes, ...cities], PIECES)
  const shelves = { edge: 'shelves', node: { fields: ['label'] } }
  const semiJoin = (filter: string) => ({ ...shelves, filter, require: 'some' })
  const across = { edge: 'libraries', limit: 2, node: { fields: ['name'], navigate: [shelves] } }
  const bodies = [
    { edge: 'libraries', node: { fields: ['name'], navigate: [{ edge: 'twinShelves' }] } },
    { edge: 'cities', node: { navigate: [across] } },
    { edge: 'shelves', filter: "label contains 'l'", node: { navigate: [{ edge: 'library' }] } },
    { edge: 'libraries', node: { navigate: [semiJoin("label == 'both'")] } },
    { edge: 'libraries', node: { navigate: [semiJoin("label == 'l3'")] } },
    { edge: 'libraries', node: { fields: ['name'], navigate: [{ edge: 'city' }] } },
  ]
  let searches = 0
  for (const body of bodies) {
    for (const together of await sent(body)) {
      searches += together.length
      t.ok(together.length <= PIECES.searches, `${together.length} searches in one request`)
      for (const { query, size, source } of together) {
        if (source.includes('kontor.nodes')) t.ok(size <= PIECES.wholes, `${size} wholes`)
        for (const values of termsOf(query)) {
          t.ok(values.length <= PIECES.semiJoinChildren, `${values.length} terms`)
        }
      }
    }
  }
  t.ok(searches > 2 * bodies.length)
})

/** The lists of values in a query. */
function termsOf(query: unknown): unknown[][] {
  if (typeof query !== 'object' || query === null) return []
  const own = 'terms' in query ? (Object.values(query.terms as object) as unknown[][]) : []
  return [...own, ...Object.values(query).flatMap(termsOf)]
}

t.test('parents are followed so many together', async (t) => {
  const { sent } = await stage(
    actorIds.flatMap((id) => [library(id, 1, { twinId: id }), shelf(id, 's', 1)]),
    { ...FINDER_BOUNDS, links: 5 },
  )
  const searches = await sent({ edge: 'shelves', node: { navigate: [{ edge: 'library' }] } })
  const values = searches.slice(1).map(([request]) => termsOf(request!.query).flat().length)
  t.same(values, [5, 5, 2], 'each once, the last as the first')
})

t.test('a link to very many is followed by itself, to as many as are shown', async (t) => {
  const city = actorIds[0]!
  const doc = { cityId: city, code: 'c' }
  const { sent } = await stage(
    [...libraries({ cityCode: 'c' }), { node: 'city', actorId: city, id: city, version: 1, doc }],
    { ...PIECES, page: 2, wholes: 2 },
  )
  const searches = await sent({
    edge: 'cities',
    node: { navigate: [{ edge: 'libraries', limit: 1, node: { fields: ['name'] } }] },
  })
  t.equal(searches.length, 3, 'the city, a first page, then the two that tell the rest')
  t.match(searches[2]![0], { size: 2, counts: false })
})

t.test('each search has the time that is left', async (t) => {
  const { ask, asked, hooks, clock } = await stage(libraries(), PIECES)
  const body = { edge: 'libraries', filter: "motto contains 'l'", limit: 100 }
  hooks.during = () => void (clock.ms += 100)
  await ask(body, 400)
  t.same(
    asked.map(({ timeoutMs }) => timeoutMs),
    [400, 300, 200],
  )
  clock.ms = 0
  const [code, message] = (await refusal(ask(body, 150)))!
  t.same([code, asked.length], ['UNAVAILABLE', 2], 'no search when the time is over')
  t.match(message, /longer than 150 ms/)
})

t.test('what a caller is told when the engine does not answer', async (t) => {
  const { ask, hooks, clock } = await stage(libraries())
  const body = { edge: 'libraries' }
  hooks.during = () => {
    throw new EngineAway('no connection')
  }
  const away = await refusal(ask(body))
  t.same(away![0], 'UNAVAILABLE')
  t.match(away![1], /can't be read now; try again \(no connection\)/)
  hooks.during = () => {
    clock.ms += 1_000
    throw new EngineAway('timed out')
  }
  t.match((await refusal(ask(body)))![1], /longer than 1000 ms/, 'its own time was over')
  hooks.during = () => {
    throw new NoSuchIndex('404')
  }
  const missing = await refusal(ask(body))
  t.same(missing![0], 'UNAVAILABLE')
  t.match(missing![1], /is being made; ask again soon/)
  hooks.during = () => {
    throw new TypeError('ours')
  }
  await t.rejects(ask(body), TypeError, 'a mistake of ours is none of the engine')
})

t.test('an answer that grows too large is not gathered', async (t) => {
  const { ask, asked } = await stage(
    actorIds.flatMap((id) => [
      library(id, 1),
      ...Array.from({ length: 20 }, (_, i) => shelf(id, `${i}`, 1)),
    ]),
    { ...FINDER_BOUNDS, page: 10 },
  )
  const nested = { edge: 'shelves', node: { fields: ['label'] } }
  const body = { edge: 'libraries', node: { navigate: [nested] } }
  await ask(body)
  t.equal(asked.length, 1 + 24 + 1, 'else a page after the other')
  t.teardown(overrideLimits({ 'graph.resultNodesMax': 45 }))
  t.same((await refusal(ask(body)))![0], 'INVALID_QUERY')
  t.equal(asked.length, 1 + 5, 'the page that passed the bound was the last one')
})

t.test(
  'a phrase whose last word only begins so: pages of candidates until there are enough',
  async (t) => {
    const writes = libraries({ motto: 'white heart' })
    const shelves = actorIds.map((id, i) =>
      shelf(id, `s${i}`, 1, { dynamic: { x: 'white heart' } }),
    )
    const { sent } = await stage([...writes, ...shelves], { ...FINDER_BOUNDS, page: 8 })
    const sizes = async (edge: string): Promise<number[]> => {
      const searches = await sent({ edge, phrase: '"white hea"*', limit: 1 })
      return searches.flat().map(({ size }) => size)
    }
    t.same(await sizes('shelves'), [8], 'all of one rank come by their ids')
    t.ok((await sizes('libraries')).length > 1, 'some may be found by an edge alone')
  },
)

t.test('what an index of another program has for phrases is not looked into', async (t) => {
  const { engine, writer, indexOf, refresh } = await firstGeneration()
  await writer.apply(libraries({ motto: 'white', twinId: actorIds[0] }), [])
  await refresh()
  const options = { engine, schema: SCHEMA, indexOf, now: () => 0 }
  const ask = (body: object, isForeign: boolean) =>
    new ElasticReader({ ...options, isForeign }).query(planOf([body]), 1_000)
  const phrase = { edge: 'libraries', phrase: 'white', count: true }
  t.same({ ...(await ask(phrase, false)) }, { libraries: actorIds.length })
  t.match(await refusal(ask(phrase, true)), ['INDEX_BEHIND', /made anew/])
  const twin = { edge: 'twin', phrase: 'white', require: 'some' }
  const gate = { edge: 'libraries', node: { navigate: [twin] } }
  t.match(await refusal(ask(gate, true)), ['INDEX_BEHIND', /made anew/])
  t.same(
    { ...(await ask({ edge: 'libraries', count: true }, true)) },
    { libraries: actorIds.length },
  )
  t.same({ ...(await ask({ edge: 'notes', phrase: 'ink' }, true)) }, { notes: [] }, 'texts at hand')
})
