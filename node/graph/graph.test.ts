// The graph and its routes through the Operation table, on the journal's and the index's twins: the
// threads are left out, their logic is not.

import t, { type Test } from 'tap'
import { Acl, OWNER_ACL, parseScope } from '../../protocol/ace.ts'
import { RequestError } from '../../protocol/errors.ts'
import { LIMITS } from '../../config/limits.ts'
import { Projector } from '../../cluster/feed/projector.ts'
import { FeedStore, actorIdOf, decodeTestSnapshot } from '../../cluster/feed/testing/feed-store.ts'
import { notebookBehaviour } from '../../cluster/feed/testing/notebook.ts'
import { MemoryGraphIndex } from '../../storage/memory/search.ts'
import type { Operation, OperationRequest, OperationResponse } from '../http/operation.ts'
import { type ConsistencyTokens, consistencyTokens } from './consistency.ts'
import { Graph } from './graph.ts'
import { derivedHistory } from './history.ts'
import { LiveSchema, type SchemaVersion } from './live-schema.ts'
import { IndexLoop } from '../indexing/embedded/index-loop.ts'
import { ProgressWatch } from '../indexing/embedded/index-watch.ts'
import { PlanServer } from './plans/plan-server.ts'
import { graphRoutes } from './routes.ts'
import { SharedProgress } from '../indexing/embedded/shared-progress.ts'
import { ManualClock } from '../indexing/testing/manual-clock.ts'

const A = actorIdOf(1, 0)
const B = actorIdOf(2, 1)

interface Stage {
  readonly store: FeedStore
  readonly clock: ManualClock
  readonly progress: SharedProgress
  readonly operations: readonly Operation[]
  readonly tokens: ConsistencyTokens
  readonly watch: ProgressWatch
  readonly schema: LiveSchema
  /** What the index is said to have been filled for. */
  served: SchemaVersion
  /** Called between the planning of a query and its turn. */
  beforeTurn: () => void
  /** Plans that were run. */
  ran: number
  /** Tells the index of the heads and lets it follow. */
  follow(): Promise<void>
}

async function stage(t: Test): Promise<Stage> {
  const behaviour = notebookBehaviour({ fold: true, project: true })
  const behaviours = new Map([[behaviour.type, behaviour]])
  const store = new FeedStore(behaviour, { shards: 2, generation: 'g1' })
  const { derived, log, identity } = store.journal
  const schema = new LiveSchema(behaviour.nodeTypes)
  const history = derivedHistory({ behaviours, derived, decodeSnapshot: decodeTestSnapshot })
  const index = new MemoryGraphIndex({ schema: schema.current.schema, history })
  const progress = new SharedProgress(2)
  const clock = new ManualClock()
  const watch = new ProgressWatch({
    progress,
    clock,
    follows: (shard) => shard >= 0,
    flushed: async (shard) => (await derived.consumer(shard, 'flush')) ?? 0,
  })
  const projector = new Projector({
    behaviours,
    log,
    derived,
    index,
    decodeSnapshot: decodeTestSnapshot,
    shards: 2,
    park: () => Promise.resolve(),
    unpark: () => Promise.resolve(),
    pause: () => Promise.resolve(),
    clock: () => clock.monotonicMs(),
  })
  const loop = new IndexLoop({
    projector,
    progress,
    generation: 'g1',
    onApplied: () => watch.applied(),
    onFailure: (error) => t.fail(String(error)),
    onBack: () => undefined,
    clock: () => clock.monotonicMs(),
    after: (_ms, run) => {
      const soon = setImmediate(run)
      return () => clearImmediate(soon)
    },
    defer: (run) => setImmediate(run),
  })
  const running = loop.run()
  t.teardown(async () => {
    loop.stop()
    await running
  })
  const server = new PlanServer(index, () => clock.monotonicMs())
  const tokens = consistencyTokens(identity)
  const made: Stage = {
    store,
    clock,
    progress,
    tokens,
    watch,
    schema,
    served: schema.current,
    beforeTurn: () => undefined,
    ran: 0,
    operations: [],
    async follow() {
      for (const [shard, head] of store.heads) progress.setHead(shard, head)
      if (progress.takeAsleep()) loop.wake()
      for (const [shard, head] of store.heads) {
        while (progress.applied(shard) < head) await new Promise((r) => setImmediate(r))
      }
    },
  }
  const graph = new Graph({
    filterFields: 'any',
    schema,
    served: () => made.served,
    runner: {
      async run(plan, deadlineMs, generation) {
        made.ran++
        made.beforeTurn()
        const endsAtMs = clock.monotonicMs() + deadlineMs
        const { json } = plan
        const sent = {
          id: 1,
          plan: json,
          endsAtMs,
          generation: generation(),
          mayStop: false,
          round: 0,
        }
        const answer = server.answer(sent)
        if ('json' in answer) return answer.json
        if (!('errors' in answer)) throw new Error(JSON.stringify(answer))
        const { code, message, details } = answer.errors[0]!
        throw new RequestError(code as 'UNAVAILABLE', message, details)
      },
    },
    index: watch,
    tokens,
    nowMs: () => clock.nowMs(),
    monotonicMs: () => clock.monotonicMs(),
  })
  while (!progress.ready) await new Promise((r) => setImmediate(r))
  return Object.assign(made, { operations: graphRoutes(graph) })
}

interface Call {
  readonly method?: 'GET' | 'POST'
  readonly path?: string
  readonly body?: unknown
  readonly q?: string
  readonly token?: string
  readonly scope?: string
  readonly budgetMs?: number
}

async function call(s: Stage, of: Call): Promise<OperationResponse> {
  const { method = 'POST', path = '/resources/graph', body, q, token = '' } = of
  const operation = s.operations.find((o) => o.method === method && o.path === path)!
  const scope = of.scope === undefined ? null : parseScope(of.scope)
  const acl = scope !== null && scope.ok ? new Acl(scope.aces) : OWNER_ACL
  const request: OperationRequest = {
    identity: { id: 'client', kind: 'client', sessionId: 's', acl },
    isKnown: true,
    params: {},
    query: new URLSearchParams(q === undefined ? {} : { q }),
    header: (name) => (name === 'x-consistency' ? token : ''),
    body,
    bodyFault: null,
    bodyBytes: body === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(body)),
    address: '127.0.0.1',
    requestId: 'r',
    budgetMs: of.budgetMs ?? 30_000,
    aborted: () => false,
  }
  return operation.handle(request)
}

/** The answer's JSON. */
async function ask(s: Stage, of: Call): Promise<unknown> {
  const response = await call(s, of)
  if (response.raw === undefined) return response.body
  return JSON.parse(response.raw as string)
}

/** Code of the refusal, and its status. */
async function refusal(s: Stage, of: Call): Promise<string> {
  try {
    await call(s, of)
    return 'none'
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return `${error.status} ${error.errors[0]!.code}`
  }
}

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
    s.clock.advance(4_999)
    await new Promise((r) => setImmediate(r))
    t.equal(ended, false)
    s.clock.advance(1)
    t.equal(await late, '503 INDEX_BEHIND')
    const hasty = refusal(s, { body: titles, token, budgetMs: 10 })
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

/** The notebook with a field more, or without one. */
function changed(s: Stage, { more, less }: { more?: string; less?: string }): SchemaVersion {
  const [notebook, ...rest] = s.schema.current.types
  const fields = notebook!.fields.filter(({ name }) => name !== less)
  if (more !== undefined) fields.push({ name: more, type: 'text' })
  return s.schema.change([{ ...notebook!, fields }, ...rest])
}

const fieldsOf = async (s: Stage): Promise<string[]> => {
  const meta = await ask(s, { method: 'GET', path: '/resources/graph/meta' })
  const { nodes } = meta as { nodes: { name: string; fields: { name: string }[] }[] }
  return nodes.find(({ name }) => name === 'notebook')!.fields.map(({ name }) => name)
}

t.test(
  'a field that the index has not yet is told to be on its way, and comes with it',
  async (t) => {
    const s = await stage(t)
    await s.store.commit([A, { t: 'opened', title: 'one' }])
    await s.follow()
    const body = [{ edge: 'notebooks', node: { fields: ['title', 'colour'] } }]
    t.equal(await refusal(s, { body }), '400 INVALID_QUERY', 'nobody knows it')
    const next = changed(s, { more: 'colour' })
    t.equal(await refusal(s, { body }), '503 INDEX_BEHIND')
    t.equal(await refusal(s, { body, scope: 'graph/notebook:query' }), '403 FORBIDDEN_FIELD')
    const other = [{ edge: 'notebooks', node: { fields: ['color'] } }]
    t.equal(await refusal(s, { body: other }), '400 INVALID_QUERY', 'no version knows it')
    t.strictSame(await ask(s, { body: titles }), { notebooks: [{ title: 'one' }] })
    t.notOk((await fieldsOf(s)).includes('colour'))
    s.served = next
    t.strictSame(await ask(s, { body }), { notebooks: [{ title: 'one', colour: null }] })
    t.ok((await fieldsOf(s)).includes('colour'))
  },
)

t.test('no plan outlives the version that it was made on', async (t) => {
  const s = await stage(t)
  await s.store.commit([A, { t: 'opened', title: 'one' }])
  await s.follow()
  const q = JSON.stringify([{ edge: 'notebooks', node: { fields: ['size'] } }])
  t.strictSame(await ask(s, { method: 'GET', q }), { notebooks: [{ size: 0 }] })
  s.served = changed(s, { less: 'size' })
  t.equal(await refusal(s, { method: 'GET', q }), '400 INVALID_QUERY')
})

t.test('a plan whose version has gone before its turn is made again, a few times', async (t) => {
  const s = await stage(t)
  await s.store.commit([A, { t: 'opened', title: 'one' }])
  await s.follow()
  s.beforeTurn = () => {
    if (s.ran === 1) s.served = changed(s, { more: 'colour' })
  }
  t.strictSame(await ask(s, { body: titles }), { notebooks: [{ title: 'one' }] })
  t.equal(s.ran, 2)
  const size = [{ edge: 'notebooks', node: { fields: ['size'] } }]
  s.beforeTurn = () => void (s.served = changed(s, { less: 'size' }))
  t.equal(await refusal(s, { body: size }), '400 INVALID_QUERY', 'the next version lacks the field')
  s.ran = 0
  s.beforeTurn = () => void (s.served = changed(s, { more: `c${s.schema.current.number}` }))
  t.equal(await refusal(s, { body: titles }), '503 UNAVAILABLE')
  t.equal(s.ran, LIMITS.graph.planTriesMax)
})
