// Live queries of one member over a small store in memory: its index is the store itself, its feed
// is told by hand, and clients are lists of frames.

import { executePlan, Budget } from '../../../../protocol/graph/execute.ts'
import { MemoryFinder } from '../../../../protocol/graph/find-in-memory.ts'
import type { Doc } from '../../../../protocol/graph/evaluate.ts'
import { NO_HISTORY } from '../../../../protocol/graph/history.ts'
import type { NodeType } from '../../../../protocol/graph/node-type.ts'
import type { GraphPlan } from '../../../../protocol/graph/plan.ts'
import { graphSchema } from '../../../../protocol/graph/schema.ts'
import { TestClock } from '../../../../cluster/testing/harness.ts'
import type { FedItem } from '../../../../cluster/feed/watch/watch-notices.ts'
import { LIMITS } from '../../../../config/limits.ts'
import type { Acl } from '../../../../protocol/ace.ts'
import type { SchemaVersion } from '../../../graph/live-schema.ts'
import type { CallerAccess } from '../../socket/caller-access.ts'
import type { Connection, FrameType } from '../../socket/frames.ts'
import { livePositions } from '../live-positions.ts'
import { LiveQueries } from '../live-queries.ts'
import { queryFrames } from '../query-frames.ts'
import { SOMEBODY } from '../../../access/testing/sessions.ts'
import { countingChance } from './counting-chance.ts'

export const ITEM: NodeType = {
  name: 'item',
  set: 'items',
  idField: 'itemId',
  root: true,
  storage: { kind: 'row' },
  fields: [
    { name: 'itemId', type: 'uuid', indexed: true },
    { name: 'state', type: 'text' },
    { name: 'rank', type: 'number' },
  ],
  edges: [],
}

const SCHEMA = graphSchema([ITEM])
const SERVED = { number: 1, types: [ITEM], schema: SCHEMA }
export const STORE = { format: 1, generation: 'g', secret: 's', shards: 1 }

export interface Item {
  readonly state: string
  readonly rank: number
}

export function itemId(n: number): string {
  return `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
}

/** What there is, and its feed. */
export class ItemStore {
  readonly items = new Map<string, Doc>()
  /** Which item each offset changed. */
  readonly log: number[] = []

  get offset(): number {
    return this.log.length
  }

  set(n: number, item: Item | null): void {
    const id = itemId(n)
    this.log.push(n)
    if (item === null) this.items.delete(id)
    else this.items.set(id, { itemId: id, ...item })
  }

  /** What the graph answers to a plan, as JSON. */
  ask(plan: GraphPlan): string {
    const rows = Array.from(this.items, ([id, doc]) => ({ actorId: id, id, doc }))
    const budget = new Budget(() => 0, 1_000, LIMITS.graph.resultNodesMax)
    const finder = new MemoryFinder({ rows: () => rows, count: () => 1 }, budget)
    return JSON.stringify(executePlan(plan, { finder, budget, history: NO_HISTORY }))
  }
}

export class LiveMember {
  readonly clock = new TestClock()
  readonly queries: LiveQueries
  readonly frames: readonly FrameType[]
  readonly #store: ItemStore
  #told = 0

  constructor(store: ItemStore, served: () => SchemaVersion = () => SERVED) {
    this.#store = store
    this.#told = store.offset
    const { clock } = this
    const coverage = { to: 0, atMs: 0, number: Number.MAX_SAFE_INTEGER }
    this.queries = new LiveQueries({
      watch: {
        add: () => undefined,
        want: () => {
          this.tell(false)
          return Promise.resolve()
        },
        covered: () => coverage,
      },
      changes: { matcher: () => null },
      runner: { run: async ({ plan }) => Promise.resolve(store.ask(plan)) },
      index: {
        unready: () => null,
        generation: 1,
        head: () => store.offset,
        reached: () => true,
        recorded: () => true,
      },
      applied: () => store.offset,
      heads: () => [],
      shards: 1,
      served,
      clock,
    })
    this.frames = queryFrames({
      queries: this.queries,
      positions: livePositions(STORE, countingChance()),
      served,
      filterFields: 'any',
    })
  }

  /** The feed comes to where the store is; `gap`: what lies between was lost. */
  tell(gap: boolean): void {
    const { offset, log, items } = this.#store
    const from = this.#told
    const changed = gap ? [] : log.slice(from)
    const told = changed.map((n, i): FedItem => {
      const id = itemId(n)
      const doc = items.get(id)
      const nodes = doc === undefined ? [] : [['item', id, doc]]
      return [from + i + 1, { actorId: id, nodes }]
    })
    this.#told = offset
    const number = Number.MAX_SAFE_INTEGER
    this.queries.take({ shard: 0, from, to: offset, items: told, gap, number })
  }
}

/** What a client was sent, and the list that it keeps by it. */
export class FakeClient implements Connection {
  readonly id = 0
  readonly sent: Record<string, unknown>[] = []
  list: unknown[] = []
  bufferedBytes = 0
  access: CallerAccess
  readonly #member: LiveMember
  readonly #closed: (() => void)[] = []
  readonly #drained: (() => void)[] = []
  readonly #accessChanged: (() => void)[] = []

  constructor(member: LiveMember, acl: Acl) {
    this.#member = member
    this.access = this.#accessOf(acl)
  }

  say(frame: { readonly type: string; readonly [member: string]: unknown }): void {
    const row = this.#member.frames.find(({ type }) => type === frame.type)!
    void row.handle(this, frame as never)
  }

  /** Takes all, or nothing from now. */
  takes(takes: boolean): void {
    this.bufferedBytes = takes ? 0 : LIMITS.live.queryHoldBytes
    if (takes) for (const run of this.#drained) run()
  }

  may(acl: Acl): void {
    this.access = this.#accessOf(acl)
    for (const run of this.#accessChanged) run()
  }

  close(): void {
    for (const run of this.#closed) run()
  }

  send(frame: object): boolean {
    return this.sendText(JSON.stringify(frame))
  }

  sendText(text: string): boolean {
    const frame = JSON.parse(text) as Record<string, unknown>
    this.sent.push(frame)
    const { type, index, previousIndex, node, nodes } = frame
    if (nodes !== undefined) this.list = [...(nodes as unknown[])]
    if (type === 'liveQueryRemove') this.list.splice(index as number, 1)
    if (type === 'liveQueryUpdate') this.list.splice(previousIndex as number, 1)
    if (node !== undefined) this.list.splice(index as number, 0, node)
    return true
  }

  sendError(error: unknown): void {
    throw error
  }

  onClose(run: () => void): void {
    this.#closed.push(run)
  }

  onDrained(run: () => void): void {
    this.#drained.push(run)
  }

  #accessOf(acl: Acl): CallerAccess {
    return {
      identity: { ...SOMEBODY, id: 'c', sessionId: 's', acl },
      onChange: (run) => void this.#accessChanged.push(run),
    }
  }
}
