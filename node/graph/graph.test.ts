// The graph and its routes through the Operation table, on the journal's and the index's twins: the
// threads are left out, their logic is not.

import t from 'tap'
import { A, B, ask, call, refusal, stage } from './testing/graph-stage.ts'

const titles = [{ edge: 'notebooks', node: { fields: ['title'] } }]

t.test('answers navigations by POST and by GET, as ready JSON', async (t) => {
  const s = await stage(t)
  await s.store.commit([A, { t: 'opened', title: 'one' }, { t: 'noted', id: 'n', text: 'x' }])
  await s.follow()
  const body = [
    {
      edge: 'notebooks',
      filter: `title == 'one'`,
      node: { fields: ['title'], navigate: [{ edge: 'notes', node: { fields: ['text'] } }] },
    },
  ]
  const expected = { notebooks: [{ title: 'one', notes: [{ text: 'x' }] }] }
  t.strictSame(await ask(s, { body }), expected)
  t.strictSame(await ask(s, { method: 'GET', q: JSON.stringify(body) }), expected)
  const { status, headers } = await call(s, { body })
  t.equal(status, 200)
  t.match(headers, { 'Content-Type': 'application/json' })
})

t.test('history is read from the records, newest first', async (t) => {
  const s = await stage(t)
  await s.store.commit([A, { t: 'opened', title: 'one' }])
  for (let i = 0; i < 50; i++) await s.store.commit([A, { t: 'noted', id: 'n', text: `${i}` }])
  await s.store.commit([B, { t: 'opened', title: 'two' }], [B, { t: 'closed', notes: [] }])
  await s.store.flush()
  await s.follow()
  const fields = ['kind', 'version']
  const body = [
    {
      edge: 'notebooks',
      node: { navigate: [{ edge: 'history', limit: 2, node: { fields } }] },
    },
  ]
  t.strictSame(await ask(s, { body }), {
    notebooks: [
      {
        history: [
          { kind: 'noted', version: 51 },
          { kind: 'noted', version: 50 },
        ],
        historyHasMore: true,
      },
    ],
  })
  const count = (id: string) => [
    { edge: 'notebookRecords', filter: `notebookId == '${id}'`, count: true },
  ]
  t.strictSame(await ask(s, { body: count(A) }), { notebookRecords: 51 })
  t.strictSame(await ask(s, { body: count(B) }), { notebookRecords: 0 }, 'it was deleted')
})

t.test('refuses what the planner refuses, before anything is run', async (t) => {
  const s = await stage(t)
  t.equal(await refusal(s, { body: [{ edge: 'poems' }] }), '400 INVALID_QUERY')
  const wrong = [{ edge: 'notebooks', filter: 'title = 1' }]
  t.equal(await refusal(s, { body: wrong }), '400 INVALID_FILTER')
  t.equal(await refusal(s, { body: titles, scope: 'graph/note:query' }), '403 FORBIDDEN_NODE')
  t.equal(await refusal(s, { body: titles, scope: 'graph/notebook:query' }), '403 FORBIDDEN_FIELD')
  t.equal(await refusal(s, { method: 'GET' }), '400 INVALID_PARAMETERS')
  t.equal(await refusal(s, { method: 'GET', q: '[{' }), '400 MALFORMED_REQUEST')
  t.equal(s.ran, 0)
})

t.test('plans are found again by text, never across permissions or through time', async (t) => {
  const s = await stage(t)
  await s.store.commit([A, { t: 'opened', title: 'one' }])
  await s.follow()
  t.strictSame(await ask(s, { body: titles }), { notebooks: [{ title: 'one' }] })
  t.strictSame(await ask(s, { body: titles }), { notebooks: [{ title: 'one' }] })
  t.equal(await refusal(s, { body: titles, scope: 'graph/notebook:query' }), '403 FORBIDDEN_FIELD')
  const timed = [{ edge: 'notebooks', filter: `now < 1970-01-02T00:00:00Z`, count: true }]
  t.strictSame(await ask(s, { body: timed }), { notebooks: 1 })
  s.clock.advance(48 * 3_600_000)
  t.strictSame(await ask(s, { body: timed }), { notebooks: 0 })
})

t.test('a token is waited for, and its write is then seen', async (t) => {
  const s = await stage(t)
  const position = await s.store.commit([A, { t: 'opened', title: 'one' }])
  s.progress.setHead(position.shard, position.offset)
  const answer = ask(s, { body: titles, token: s.tokens.encode([position]) })
  await new Promise((r) => setImmediate(r))
  t.equal(s.watch.waiting, 1)
  t.equal(s.ran, 0)
  await s.follow()
  t.strictSame(await answer, { notebooks: [{ title: 'one' }] })
  t.equal(s.watch.waiting, 0)
})

t.test('history is waited for as well: it comes from other rows than the index', async (t) => {
  const s = await stage(t)
  const position = await s.store.commit([A, { t: 'opened', title: 'one' }])
  await s.follow()
  const body = [{ edge: 'notebookRecords', filter: `notebookId == '${A}'`, count: true }]
  t.strictSame(await ask(s, { body }), { notebookRecords: 0 })
  const answer = ask(s, { body, token: s.tokens.encode([position]) })
  await s.store.flush()
  await s.clock.run()
  t.strictSame(await answer, { notebookRecords: 1 })
})

t.test(
  '503 INDEX_BEHIND when the index does not come, at once when there is no time',
  async (t) => {
    const s = await stage(t)
    const position = await s.store.commit([A, { t: 'opened', title: 'one' }])
    s.progress.setHead(position.shard, position.offset)
    const token = s.tokens.encode([position])
    let ended = false
    const late = refusal(s, { body: titles, token }).finally(() => (ended = true))
    // It waits for the schema that its token names first.
    await new Promise((r) => setImmediate(r))
    s.clock.advance(4_999)
    await new Promise((r) => setImmediate(r))
    t.equal(ended, false)
    s.clock.advance(1)
    t.equal(await late, '503 INDEX_BEHIND')
    const hasty = refusal(s, { body: titles, token, budgetMs: 10 })
    await new Promise((r) => setImmediate(r))
    s.clock.advance(10)
    t.equal(await hasty, '503 INDEX_BEHIND')
    t.equal(s.watch.waiting, 0)
    t.strictSame(await ask(s, { body: titles }), { notebooks: [] }, 'without a token it may lag')
  },
)

t.test('a token that was never handed out is refused', async (t) => {
  const s = await stage(t)
  const ahead = s.tokens.encode([{ shard: 0, offset: 1 }])
  t.equal(await refusal(s, { body: titles, token: ahead }), '400 INVALID_PARAMETERS')
  t.equal(await refusal(s, { body: titles, token: 'x' }), '400 INVALID_PARAMETERS')
})

t.test('a shard without graph nodes is not waited for', async (t) => {
  const s = await stage(t)
  const token = s.tokens.encode([{ shard: -1, offset: 7 }])
  t.strictSame(await ask(s, { body: titles, token }), { notebooks: [] })
})

t.test('while the index is filled anew there are no answers with holes', async (t) => {
  const s = await stage(t)
  s.progress.ready = false
  t.equal(await refusal(s, { body: titles }), '503 INDEX_BEHIND')
})

t.test('a query whose time is over is not run', async (t) => {
  const s = await stage(t)
  t.equal(await refusal(s, { body: titles, budgetMs: 0 }), '503 UNAVAILABLE')
  await t.rejects(call(s, { body: titles, budgetMs: 0 }), { message: /was not run/ })
})

t.test('meta shows what the token covers', async (t) => {
  const s = await stage(t)
  const path = '/resources/graph/meta'
  const all = (await ask(s, { method: 'GET', path })) as { sets: { name: string }[] }
  t.strictSame(all.sets.map(({ name }) => name).sort(), ['notebookRecords', 'notebooks', 'notes'])
  const some = await ask(s, { method: 'GET', path, scope: 'graph/note:query graph/note:field' })
  t.match(some, { sets: [{ name: 'notes', node: 'note' }] })
})
