// The twin of the search engine is as nasty as the engine documents itself to be: what a test
// relies on when it shows that the driver copes. Source: PROTOCOL 3.13, 4; Elasticsearch 9.

import t from 'tap'
import { type BulkItem, EngineAway, NoSuchIndex, type SearchRequest } from '../elastic/engine.ts'
import { MemorySearchEngine, type EngineMutants } from './search-engine.ts'

const PROPERTIES = {
  code: { type: 'keyword' },
  size: { type: 'double' },
  kontor: { dynamic: 'strict', properties: { deleted: { type: 'boolean' } } },
} as const

const put = (id: string, version: number, doc: object, index = 'w'): BulkItem => {
  return { index, id, write: { kind: 'index', version, source: JSON.stringify(doc) } }
}
const purge = (id: string, seqNo: number): BulkItem => {
  return { index: 'w', id, write: { kind: 'purge', seqNo, primaryTerm: 1 } }
}

/** null: it has not failed. */
const failureOf = (run: Promise<unknown>): Promise<unknown> =>
  run.then(
    () => null,
    (why: unknown) => why,
  )

async function stage(mutants: EngineMutants = {}) {
  const clock = { ms: 0 }
  const engine = new MemorySearchEngine({ nowMs: () => clock.ms, mutants })
  await engine.createIndex('i', { writeAlias: 'w', properties: PROPERTIES, meta: { a: 1 } })
  const search = async (more: Partial<SearchRequest> = {}) => {
    const [answer] = await engine.search([
      {
        ...{ index: 'i', query: { match_all: {} }, size: 10, counts: true },
        sort: [{ code: { order: 'asc', missing: '_last' } }],
        source: ['code'],
        ...more,
      },
    ])
    return answer!
  }
  const codes = async (): Promise<string> => {
    await engine.refresh(['i'])
    return (await search()).hits.map(({ source }) => source['code']).join('')
  }
  return { engine, clock, search, codes }
}

t.test('what is written is found after a refresh, its own or one asked for', async (t) => {
  const { engine, clock, search } = await stage()
  const count = async (): Promise<number | null> => (await search()).total
  await engine.bulk([put('a', 1, { code: 'a' })])
  t.equal(await count(), 0)
  clock.ms = 999
  t.equal(await count(), 0)
  clock.ms = 1_000
  t.equal(await count(), 1)
  await engine.bulk([put('b', 1, { code: 'b' })])
  await engine.refresh(['i'])
  t.equal(await count(), 2)
  const [hit] = (await search({ sequence: true })).hits
  t.same(await engine.bulk([purge('a', hit!.seqNo!)]), ['done'])
  t.equal(await count(), 2, 'nor is what goes gone before')
  await engine.refresh(['w'])
  t.equal(await count(), 1)
  t.ok((await failureOf(engine.refresh(['i', 'none']))) instanceof NoSuchIndex)
  t.ok((await failureOf(search({ index: 'none' }))) instanceof NoSuchIndex)
})

t.test(
  'of two writes the newer stays, whichever comes last; the same one counts again',
  async (t) => {
    const { engine, codes } = await stage()
    const results = [
      [put('a', 2, { code: 'a' }), 'done'],
      [put('a', 1, { code: 'b' }), 'newer'],
      [put('a', 2, { code: 'c' }), 'done'],
      [put('a', 3, { code: 'd' }, 'i'), 'gone'],
    ] as const
    for (const [item, result] of results) t.same(await engine.bulk([item]), [result])
    t.equal(await codes(), 'c', 'an index is not an alias that can be written to')
    const careless = await stage({ internalVersions: true })
    await careless.engine.bulk([put('a', 2, { code: 'a' }), put('a', 1, { code: 'b' })])
    t.equal(await careless.codes(), 'b')
  },
)

t.test('what is deleted for good is forgotten with its version after a minute', async (t) => {
  const { engine, clock, codes } = await stage()
  await engine.bulk([put('a', 5, { code: 'a' }), put('b', 1, { code: 'b' })])
  t.same(await engine.bulk([purge('a', 1), purge('b', 0), purge('none', 0)]), [
    ...['newer', 'newer', 'newer'],
  ])
  t.same(await engine.bulk([purge('a', 0)]), ['done'])
  clock.ms = 59_999
  t.same(await engine.bulk([put('a', 5, { code: 'c' })]), ['newer'])
  t.equal(await codes(), 'b')
  clock.ms = 60_000
  t.same(await engine.bulk([put('a', 1, { code: 'd' })]), ['done'], 'an older one brings it back')
  t.equal(await codes(), 'bd')
  const hard = await stage({ hardDeletes: true })
  const removed = { code: 'e', kontor: { deleted: true } }
  await hard.engine.bulk([put('a', 1, removed), put('b', 1, { kontor: { deleted: false } })])
  t.equal((await (await hard.codes(), hard.search())).total, 1)
})

t.test('a strict mapping refuses a document, and only that one', async (t) => {
  const { engine, codes } = await stage()
  const results = await engine.bulk([
    put('a', 1, { code: 'a', more: 1 }),
    put('b', 1, { code: 'b' }),
    put('c', 1, { size: 'large' }),
    put('d', 1, { code: 'x'.repeat(32_767) }),
    put('e', 1, { kontor: { more: 1 } }),
  ])
  t.equal(results[1], 'done')
  for (const i of [0, 2, 3, 4]) t.match(results[i], { refused: String })
  t.equal(await codes(), 'b')
})

t.test('pages, counts, and what is read of a document', async (t) => {
  const { engine, search } = await stage()
  const sizes = { a: 1, b: 1, c: 2 }
  await engine.bulk(Object.entries(sizes).map(([code, size]) => put(code, 1, { code, size })))
  await engine.bulk([put('z', 1, {})])
  await engine.refresh(['i'])
  const page = await search({ size: 2 })
  t.same([page.hits.map(({ id }) => id), page.total], [['a', 'b'], 4])
  const next = await search({ size: 9, searchAfter: page.hits[1]!.sort })
  t.same([next.hits.map(({ id }) => id), next.total], [['c', 'z'], 4], 'a count is of all')
  t.equal((await search({ counts: false })).total, null)
  const [first] = next.hits
  t.strictSame(first, { id: 'c', source: { code: 'c' }, sort: ['c'] })
  const descending = [{ size: { order: 'desc', missing: '_last' } }, BY_CODE] as const
  const found = await search({ sort: descending })
  t.same(
    found.hits.map(({ id }) => id),
    ['c', 'a', 'b', 'z'],
  )
})

const BY_CODE = { code: { order: 'asc', missing: '_last' } } as const

t.test('aliases move all at once or not at all; an index that is there stays', async (t) => {
  const { engine, codes } = await stage()
  await engine.bulk([put('a', 1, { code: 'a' })])
  await engine.createIndex('i', { writeAlias: 'other', properties: {}, meta: {} })
  t.equal(await codes(), 'a')
  await engine.createIndex('j', { writeAlias: 'v', properties: PROPERTIES, meta: {} })
  const aliases = async () =>
    (await engine.indexes('')).map(({ name, aliases: own }) => [name, ...own].join(' '))
  const add = (index: string) => ({ add: { index, alias: 'live' } })
  const remove = (index: string) => ({ remove: { index, alias: 'live' } })
  await engine.moveAliases([add('i'), remove('j'), remove('none')])
  t.same(await aliases(), ['i w live', 'j v'])
  t.ok(
    (await failureOf(engine.moveAliases([remove('i'), add('j'), add('none')]))) instanceof
      NoSuchIndex,
  )
  t.same(await aliases(), ['i w live', 'j v'])
  await engine.moveAliases([remove('i'), add('j')])
  t.same(await aliases(), ['i w', 'j v live'])
  t.same(
    (await engine.indexes('j')).map(({ name }) => name),
    ['j'],
  )
  await engine.deleteIndex('j')
  await engine.deleteIndex('j')
  t.same(await aliases(), ['i w'])
})

t.test('it is away, late, busy with some, or silent about what it did', async (t) => {
  const { engine, codes, search } = await stage()
  const { hooks } = engine
  hooks.beforeBulk = () => 'away'
  t.ok((await failureOf(engine.bulk([put('a', 1, { code: 'a' })]))) instanceof EngineAway)
  t.equal(await codes(), '', 'nothing was done')
  const late = Promise.withResolvers<void>()
  hooks.beforeBulk = () => ({ when: late.promise })
  t.ok((await failureOf(engine.bulk([put('b', 1, { code: 'b' })]))) instanceof EngineAway)
  t.equal(await codes(), '')
  late.resolve()
  await late.promise
  t.equal(await codes(), 'b', 'it was done afterwards')
  hooks.beforeBulk = () => ['busy', null]
  t.same(await engine.bulk([put('c', 1, { code: 'c' }), put('d', 1, { code: 'd' })]), [
    ...['busy', 'done'],
  ])
  hooks.beforeBulk = undefined
  hooks.afterBulk = () => 'away'
  t.ok((await failureOf(engine.bulk([put('e', 1, { code: 'e' })]))) instanceof EngineAway)
  t.equal(await codes(), 'bde')
  hooks.beforeSearch = () => 'away'
  t.ok((await failureOf(search())) instanceof EngineAway)
  hooks.beforeOther = () => 'away'
  const others = [
    () => engine.refresh(['i']),
    () => engine.indexes(''),
    () => engine.createIndex('k', { writeAlias: 'k-w', properties: {}, meta: {} }),
    () => engine.moveAliases([{ add: { index: 'i', alias: 'live' } }]),
    () => engine.deleteIndex('i'),
  ]
  for (const other of others) t.ok((await failureOf(other())) instanceof EngineAway)
  t.same([...engine.state.keys()], ['i'])
})
