// `query` messages on one actor's own nodes.

import t from 'tap'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import { encodeEntry } from '../../protocol/entry/entry.ts'
import { RequestError } from '../../protocol/errors.ts'
import { actorIdOf } from '../../cluster/feed/testing/feed-store.ts'
import { type Notebook, notebookBehaviour } from '../../cluster/feed/testing/notebook.ts'
import type { Behaviour } from '../../protocol/behaviour.ts'
import { actorQuery } from './actor-query.ts'
import { LiveSchema } from './live-schema.ts'

const behaviour = notebookBehaviour({ fold: true, project: true })
const A = actorIdOf(1, 0)
const records = [
  { t: 'opened', title: 'one' },
  { t: 'noted', id: 'n', text: 'x' },
  { t: 'noted', id: 'm', text: 'y' },
]
const meta = { actorId: A, version: 1, timeMs: 0, by: 'b', messageId: 'm' }
const stateOf = (of: readonly object[]): Notebook =>
  of.reduce<Notebook | null>((s, r) => behaviour.evolve(s, r as never, meta), null)!
const state = stateOf(records)

const entries = records.map((record, v) => ({
  body: encodeEntry({
    y: 'notebook',
    p: A,
    v,
    n: v + 1,
    r: [record],
    m: 'm',
    l: 0,
    a: { type: 't', success: true },
    t: 0,
    c: 0,
    b: 'b',
  }),
}))

/** Page by page. */
async function* pagesOf(all: readonly { readonly body: Uint8Array }[], size: number) {
  for (let i = 0; i < all.length; i += size) yield all.slice(i, i + size)
}

let nowMs = 0
const query = actorQuery({
  schema: new LiveSchema(behaviour.nodeTypes),
  filterFields: 'any',
  nowMs: () => 0,
  monotonicMs: () => nowMs,
})

function ask(node: unknown, of: Partial<Parameters<typeof query>[0]> = {}): unknown {
  const own = behaviour as Behaviour
  return query({
    behaviour: own,
    state,
    before: null,
    actorId: A,
    node,
    aces: [['*:*']],
    entries: () => pagesOf(entries, 2),
    ...of,
  })
}

t.test('fields and nested nodes, from the state at hand', async (t) => {
  const node = {
    fields: ['title', 'size'],
    navigate: [{ edge: 'notes', orderBy: 'text desc', node: { fields: ['text'] } }],
  }
  t.strictSame(ask(node), { title: 'one', size: 2, notes: [{ text: 'y' }, { text: 'x' }] })
  const semiJoin = { navigate: [{ edge: 'notes', filter: `text == 'z'`, require: 'some' }] }
  t.equal(ask(semiJoin), null, 'a semi-join keeps the node out')
})

t.test('history, newest first, whatever pages the entries come in', async (t) => {
  const node = {
    fields: ['title'],
    navigate: [{ edge: 'history', limit: 2, node: { fields: ['version', 'kind'] } }],
  }
  const expected = {
    title: 'one',
    history: [
      { version: 3, kind: 'noted' },
      { version: 2, kind: 'noted' },
    ],
    historyHasMore: true,
  }
  for (const size of [1, 2, 9]) {
    t.strictSame(await ask(node, { entries: () => pagesOf(entries, size) }), expected)
  }
})

t.test('a history that is too long to be looked through is refused', async (t) => {
  t.teardown(overrideLimits({ 'graph.actorHistoryBytesMax': 300 }))
  let read = 0
  async function* many() {
    for (; read < 1_000; read++) yield entries
  }
  const node = { navigate: [{ edge: 'history', limit: 2, node: { fields: ['kind'] } }] }
  const asked = ask(node, { entries: many }) as Promise<unknown>
  await t.rejects(asked, { message: /too long for a query message/ })
  t.ok(read < 10, `${read} pages`)
})

t.test('entries are not read when no history is asked for', async (t) => {
  const unread = (): never => {
    throw new Error('read')
  }
  t.strictSame(ask({ fields: ['title'] }, { entries: unread }), { title: 'one' })
})

function refusal(run: () => unknown): string {
  try {
    run()
    return 'none'
  } catch (error) {
    return error instanceof RequestError ? error.errors[0]!.code : String(error)
  }
}

t.test("mistakes are the planner's; an actor without nodes has nothing to show", async (t) => {
  t.equal(
    refusal(() => ask({ fields: ['nothing'] })),
    'INVALID_QUERY',
  )
  t.equal(
    refusal(() => ask([])),
    'INVALID_QUERY',
  )
  t.equal(
    refusal(() => ask(undefined)),
    'INVALID_QUERY',
  )
  const bare = { ...behaviour, nodeTypes: [] } as Behaviour
  t.equal(
    refusal(() => ask({}, { behaviour: bare })),
    'INVALID_STATE',
  )
})

t.test('it answers what the graph would answer the same caller, no more', async (t) => {
  const told = (node: unknown, ...aces: string[][]): string => refusal(() => ask(node, { aces }))
  const title = { fields: ['title'] }
  t.equal(told(title), 'FORBIDDEN_NODE', 'nobody has said what the caller may see')
  t.equal(told(title, ['actors/notebook:query']), 'FORBIDDEN_NODE')
  t.equal(told(title, ['graph/notebook:query']), 'FORBIDDEN_FIELD')
  t.equal(told(title, ['graph/notebook:query', 'graph/notebook:field:title']), 'none')
  t.equal(told(title, ['graph/notebook:*'], ['graph/notebook:query']), 'FORBIDDEN_FIELD', 'each')
  t.equal(told(title, ['graph/notebook:*'], ['*:*']), 'none')
  t.equal(told(title, [`graph/notebook/${A}:query`, 'graph:field']), 'none')
  const other = actorIdOf(1, 1)
  t.equal(told(title, [`graph/notebook/${other}:query`, 'graph:field']), 'FORBIDDEN_NODE')
  const notes = { navigate: [{ edge: 'notes', count: true }] }
  t.equal(told(notes, ['graph/notebook:query']), 'FORBIDDEN_NODE')
  t.equal(told(notes, ['graph/notebook:query', 'graph/note:query']), 'none')
  const sorted = { navigate: [{ edge: 'notes', orderBy: 'text', node: { fields: ['noteId'] } }] }
  t.equal(told(sorted, ['graph:query', 'graph/note:field:noteId']), 'FORBIDDEN_FIELD')
})

t.test('attributes: what is not seen stays hidden, before the request as after it', async (t) => {
  const aces = [['title@graph/notebook:query', 'text@graph/note:query', 'graph:field']]
  const seen = (title: string, texts: string[], before: unknown = null): unknown => {
    const node = { fields: ['title'], navigate: [{ edge: 'notes', node: { fields: ['text'] } }] }
    return ask(node, { aces, attributes: { title: [title], text: texts }, before })
  }
  const told = (run: () => unknown): string => refusal(run)
  t.same(seen('one', ['x']), { title: 'one', notes: [{ text: 'x' }] })
  t.equal(
    told(() => seen('two', ['x'])),
    'FORBIDDEN_NODE',
  )
  t.equal(
    told(() => ask({ fields: ['title'] }, { aces })),
    'FORBIDDEN_NODE',
    'without attributes',
  )
  const [opened, n, m] = records
  const renamed = stateOf([{ ...opened, title: 'two' }, n!, m!])
  t.equal(
    told(() => seen('one', ['x'], renamed)),
    'FORBIDDEN_NODE',
    'a preview has changed it',
  )
  const rewritten = stateOf([opened!, { ...n, text: 'was x' }, m!])
  t.same(seen('one', ['x', 'y'], rewritten), { title: 'one', notes: [{ text: 'y' }] })
  const added = stateOf([opened!, n!])
  t.same(seen('one', ['x', 'y'], added), { title: 'one', notes: [{ text: 'x' }, { text: 'y' }] })
})

t.test('it may not hold up the thread', async (t) => {
  const slow = {
    ...behaviour,
    project: (s: Notebook, ref: { node: string; id: string }) => {
      nowMs += 400
      return behaviour.project(s, ref)
    },
  } as Behaviour
  const node = { navigate: [{ edge: 'notes', node: { fields: ['text'] } }] }
  t.equal(
    refusal(() => ask(node, { behaviour: slow })),
    'UNAVAILABLE',
  )
})
