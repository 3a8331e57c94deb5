// What Elasticsearch is said to have been asked: its own language, without a value.

import t from 'tap'
import { library, planOf, shelf } from '../conformance/search-index.ts'
import { actorIds, SCHEMA, shelfIds } from '../conformance/search-nodes.ts'
import { ElasticReader } from './reader.ts'
import { firstGeneration } from './testing/first-generation.ts'
import { toldSearch } from './told-search.ts'

t.test('every value is a question mark, whatever it stands in', (t) => {
  const told = JSON.parse(
    toldSearch({
      index: 'orders-1',
      query: {
        bool: {
          filter: [
            { term: { name: { value: 'secret' } } },
            { terms: { region: ['secret', 'secrets'] } },
            { terms: { area: [17, 18] } },
            { range: { openedAt: { gte: 17, lt: 18, format: 'epoch_millis' } } },
            { exists: { field: 'motto' } },
            { prefix: { name: { value: 'secret' } } },
            { wildcard: { name: { value: '*secret*' } } },
          ],
          must_not: [{ term: { isPublic: { value: true } } }],
        },
      },
      size: 51,
      sort: [{ area: { order: 'desc', missing: '_last' } }],
      searchAfter: ['secret', 17],
      source: ['name'],
      counts: true,
    }),
  ) as unknown
  t.same(told, {
    index: 'orders-1',
    query: {
      bool: {
        filter: [
          { term: { name: { value: '?' } } },
          { terms: { region: ['?'] } },
          { terms: { area: ['?'] } },
          { range: { openedAt: { gte: '?', lt: '?', format: 'epoch_millis' } } },
          { exists: { field: 'motto' } },
          { prefix: { name: { value: '?' } } },
          { wildcard: { name: { value: '?' } } },
        ],
        must_not: [{ term: { isPublic: { value: '?' } } }],
      },
    },
    size: 51,
    sort: [{ area: { order: 'desc', missing: '_last' } }],
    search_after: '?',
    track_total_hits: true,
  })
  t.end()
})

t.test('searches of each step', async (t) => {
  const { engine, writer, indexOf, refresh } = await firstGeneration()
  const some = actorIds.slice(0, 3)
  await writer.apply(
    some.flatMap((id, i) => [
      library(id, 1, { name: 'visible' }),
      shelf(id, shelfIds[i]!, 1, { label: 'visible' }),
    ]),
    [],
  )
  await refresh()
  let ms = 0
  const reader = new ElasticReader({ engine, schema: SCHEMA, indexOf, now: () => ms++ })
  const shelves = { edge: 'shelves', node: { navigate: [{ edge: 'library' }] } }
  const body = { ...shelves, filter: "label == 'visible'", limit: 2 }
  const { engine: name, steps, engineMs, totalMs } = await reader.explain(planOf([body]), 10_000)
  t.equal(name, 'Elasticsearch')
  t.ok(engineMs > 0 && totalMs > engineMs)
  t.match(steps, [
    { at: '/0', parents: null, rows: 2, queries: [{ runs: 1, rows: 3 }] },
    { at: '/0/node/navigate/0', parents: 2, rows: 2, queries: [{ runs: 1 }] },
  ])
  t.match(JSON.parse(steps[0]!.queries[0]!.query), { size: 3, sort: [{}, {}] })
  t.notMatch(JSON.stringify(steps), /visible/)
})
