// The stage of tests of the graph and its routes: the journal's and the index's twins, the threads'
// logic without threads, and the Operation table in front.

import type { Test } from 'tap'
import { Acl, OWNER_ACL, parseScope } from '../../../protocol/ace.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { Projector } from '../../../cluster/feed/projector.ts'
import {
  FeedStore,
  actorIdOf,
  decodeTestSnapshot,
} from '../../../cluster/feed/testing/feed-store.ts'
import { type Notebook, notebookBehaviour } from '../../../cluster/feed/testing/notebook.ts'
import { MemoryGraphIndex } from '../../../storage/memory/search.ts'
import type { Operation, OperationRequest, OperationResponse } from '../../http/operation.ts'
import { type ConsistencyTokens, consistencyTokens } from '../consistency.ts'
import { cursorSeal } from '../cursors.ts'
import { Graph, type PlanRunner } from '../graph.ts'
import { GraphQl } from '../graphql/loader.ts'
import { graphqlRoutes } from '../graphql/routes.ts'
import { derivedHistory } from '../history.ts'
import { LiveSchema, type SchemaVersion } from '../live-schema.ts'
import { IndexLoop } from '../../indexing/embedded/index-loop.ts'
import { ProgressWatch } from '../../indexing/embedded/index-watch.ts'
import { PlanServer } from '../plans/plan-server.ts'
import { graphRoutes } from '../routes.ts'
import { SharedProgress } from '../../indexing/embedded/shared-progress.ts'
import { ManualClock } from '../../indexing/testing/manual-clock.ts'
import { SOMEBODY } from '../../access/testing/sessions.ts'

export const A = actorIdOf(1, 0)
export const B = actorIdOf(2, 1)

export interface Stage {
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

export async function stage(t: Test): Promise<Stage> {
  const behaviour = notebookBehaviour({ fold: true, project: true })
  const behaviours = new Map([[behaviour.type, behaviour]])
  const store = new FeedStore(behaviour, { shards: 2, generation: 'g1' })
  const { derived, identity } = store.journal
  const schema = new LiveSchema(behaviour.nodeTypes)
  const history = derivedHistory({ behaviours, derived, decodeSnapshot: decodeTestSnapshot })
  const cursors = cursorSeal(identity.secret)
  const index = new MemoryGraphIndex({
    schema: schema.current.schema,
    history,
    cursors,
    now: () => clock.monotonicMs(),
  })
  const progress = new SharedProgress(2)
  const clock = new ManualClock()
  const watch = new ProgressWatch({
    progress: () => progress,
    clock,
    follows: (shard) => shard >= 0,
    flushed: async (shard) => (await derived.consumer(shard, 'flush')) ?? 0,
  })
  const loop = follower(t, { behaviour, store, index, progress, clock, watch })
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
    runner: { run: runner(made, server) },
    index: watch,
    tokens,
    cursors,
    nowMs: () => clock.nowMs(),
    monotonicMs: () => clock.monotonicMs(),
  })
  while (!progress.ready) await new Promise((r) => setImmediate(r))
  return Object.assign(made, {
    operations: [...graphRoutes(graph), ...graphqlRoutes(new GraphQl(graph))],
  })
}

interface FollowerParts {
  readonly behaviour: Behaviour<Notebook>
  readonly store: FeedStore
  readonly index: MemoryGraphIndex
  readonly progress: SharedProgress
  readonly clock: ManualClock
  readonly watch: ProgressWatch
}

/** Follows the store into the index, as the index's thread does, until the test is over. */
function follower(t: Test, parts: FollowerParts): IndexLoop {
  const { behaviour, store, index, progress, clock, watch } = parts
  const { derived, log } = store.journal
  const projector = new Projector({
    behaviours: new Map([[behaviour.type, behaviour as Behaviour]]),
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
  return loop
}

/** Runs plans as a reader thread does, at once. */
function runner(made: Stage, server: PlanServer): PlanRunner['run'] {
  const { clock } = made
  return async (plan, deadlineMs, generation) => {
    made.ran++
    made.beforeTurn()
    const sent = {
      id: 1,
      plan: plan.json,
      explains: plan.explains === true,
      endsAtMs: clock.monotonicMs() + deadlineMs,
      generation: generation(),
      mayStop: false,
      round: 0,
    }
    const answer = server.answer(sent)
    if ('json' in answer) return answer.json
    if (!('errors' in answer)) throw new Error(JSON.stringify(answer))
    const { code, message, details } = answer.errors[0]!
    throw new RequestError(code as 'UNAVAILABLE', message, details)
  }
}

interface Call {
  readonly method?: 'GET' | 'POST'
  readonly path?: string
  readonly body?: unknown
  readonly q?: string
  /** Parameters of the URL. */
  readonly url?: Readonly<Record<string, string>>
  readonly token?: string
  readonly accept?: string
  readonly scope?: string
  readonly budgetMs?: number
}

export async function call(s: Stage, of: Call): Promise<OperationResponse> {
  const { method = 'POST', path = '/resources/graph', body, q, token = '' } = of
  const operation = s.operations.find((o) => o.method === method && o.path === path)!
  const scope = of.scope === undefined ? null : parseScope(of.scope)
  const acl = scope !== null && scope.ok ? new Acl(scope.aces) : OWNER_ACL
  const headers: Readonly<Record<string, string>> = {
    'x-consistency': token,
    'content-type': body === undefined ? '' : 'application/json',
    accept: of.accept ?? '',
  }
  const request: OperationRequest = {
    identity: { ...SOMEBODY, id: 'client', sessionId: 's', acl },
    isKnown: true,
    params: {},
    query: new URLSearchParams({ ...of.url, ...(q === undefined ? {} : { q }) }),
    header: (name) => headers[name] ?? '',
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
export async function ask(s: Stage, of: Call): Promise<unknown> {
  const response = await call(s, of)
  if (response.raw === undefined) return response.body
  return JSON.parse(response.raw as string)
}

/** Code of the refusal, and its status. */
export async function refusal(s: Stage, of: Call): Promise<string> {
  try {
    await call(s, of)
    return 'none'
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return `${error.status} ${error.errors[0]!.code}`
  }
}
