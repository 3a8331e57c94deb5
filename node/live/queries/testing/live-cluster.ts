// Live queries on in-memory twins: members that watch each other over a wire that loses, doubles
// and delays, shards that move, an index that lags, clients that come back to another member. What
// is real is the watching, the queries and their frames. Source: PROTOCOL 3.15, 3.18, 4.2 (F33).

import type { FeedEntry } from '../../../../cluster/feed/log-follower.ts'
import { FeedWatch } from '../../../../cluster/feed/watch/feed-watch.ts'
import type { FeedWatchOptions } from '../../../../cluster/feed/watch/feed-watch.ts'
import type { FedNotice, WatchNotice } from '../../../../cluster/feed/watch/watch-notices.ts'
import { TestClock, settle } from '../../../../cluster/testing/harness.ts'
import { LIMITS } from '../../../../config/limits.ts'
import type { AnyEntry } from '../../../../protocol/entry/entry.ts'
import type { Doc } from '../../../../protocol/graph/evaluate.ts'
import type { NodeType } from '../../../../protocol/graph/node-type.ts'
import { planNavigations } from '../../../../protocol/graph/navigation.ts'
import { FULL_ACCESS } from '../../../../protocol/graph/planning.ts'
import { graphSchema } from '../../../../protocol/graph/schema.ts'
import { MemoryGraphIndex } from '../../../../storage/memory/search.ts'
import type { SchemaVersion } from '../../../graph/live-schema.ts'
import { LiveQueries } from '../live-queries.ts'
import { livePositions } from '../live-positions.ts'
import type { NodeChange, NodeRow } from '../node-changes.ts'
import { queryFrames } from '../query-frames.ts'
import { countingChance } from './counting-chance.ts'
import { LiveClient } from './live-client.ts'
import type { MemberOfClient } from './live-client.ts'

export const SHARDS = 3
const LOG = { debug() {}, info() {}, warn() {}, error() {} }
const STORE = { format: 1, generation: 1, secret: 'secret' } as never

export const TYPES: readonly NodeType[] = [
  {
    name: 'order',
    set: 'orders',
    idField: 'orderId',
    root: true,
    storage: { kind: 'row' },
    fields: [
      { name: 'orderId', type: 'uuid' },
      { name: 'state', type: 'text' },
      { name: 'rank', type: 'number' },
      { name: 'version', type: 'number' },
      { name: 'dynamic', type: 'dynamic' },
    ],
    edges: [],
  },
  {
    name: 'line',
    set: 'lines',
    idField: 'lineId',
    storage: { kind: 'row' },
    fields: [
      { name: 'lineId', type: 'text' },
      { name: 'orderId', type: 'uuid' },
      { name: 'rank', type: 'number' },
      { name: 'version', type: 'number' },
    ],
    edges: [
      {
        ...{ name: 'order', node: 'order', cardinality: 'single' },
        ...{ from: 'orderId', to: 'orderId', sameActor: true },
      },
    ],
  },
]

export function versionOf(number: number, types: readonly NodeType[]): SchemaVersion {
  return { number, types, schema: graphSchema(types) }
}

/** What an actor becomes; null: it is no more. */
export type Becomes = {
  readonly state: string
  readonly rank: number
  readonly line: boolean
} | null

/** What becomes of one notice on its way. */
export type Fate = 'comes' | 'lost' | 'doubled' | 'late'

/** Followers of one member's shards, from the head. */
class Followers {
  readonly heads = new Map<number, number>()
  readonly #offsets = new Map<number, number>()
  #take: ((taken: FeedEntry) => void) | null = null

  begin(options: { readonly take: (taken: FeedEntry) => unknown }) {
    this.#take = (taken) => void options.take(taken)
    for (const [shard, head] of this.heads) this.#offsets.set(shard, head)
    return {
      offset: (shard: number) => this.#offsets.get(shard) ?? null,
      positions: () => this.#offsets.entries(),
    }
  }

  async end(): Promise<void> {
    this.#take = null
    this.#offsets.clear()
  }

  gained(shard: number, head: number): void {
    this.heads.set(shard, head)
    if (this.#take !== null) this.#offsets.set(shard, head)
  }

  lost(shard: number): void {
    this.heads.delete(shard)
    this.#offsets.delete(shard)
  }

  committed(shard: number, offset: number, change: NodeChange): void {
    this.heads.set(shard, offset)
    this.#take?.({ shard, offset, entry: change as unknown as AnyEntry, bytes: 100 })
    if (this.#take !== null) this.#offsets.set(shard, offset)
  }
}

interface LiveMember extends MemberOfClient {
  readonly watch: FeedWatch
  readonly followers: Followers
  readonly queries: LiveQueries
}

export class LiveCluster {
  readonly clock = new TestClock()
  readonly members = new Map<string, LiveMember>()
  readonly clients: LiveClient[] = []
  fate: (notice: WatchNotice | FedNotice, to: string) => Fate = () => 'comes'
  served: SchemaVersion = versionOf(1, TYPES)
  index = new MemoryGraphIndex({ schema: this.served.schema })
  readonly #owners = new Map<number, string>()
  readonly #log: NodeChange[][] = Array.from({ length: SHARDS }, () => [])
  readonly #versions = new Map<string, number>()
  readonly #late: (() => void)[] = []

  constructor(names: readonly string[]) {
    for (const name of names) this.join(name)
    for (let shard = 0; shard < SHARDS; shard++) this.#give(shard, names[shard % names.length]!)
  }

  // --- members and shards -----------------------------------------------------------------

  join(name: string): void {
    const followers = new Followers()
    const watch = new FeedWatch({
      ...{ clock: this.clock, log: LOG },
      followers: followers as unknown as FeedWatchOptions['followers'],
      wire: {
        others: () => [...this.members.keys()].filter((other) => other !== name),
        tell: (to, notice) => {
          const sent = structuredClone(notice)
          for (const one of to) this.#deliver(name, one, sent)
        },
      },
    })
    const queries = new LiveQueries({
      watch,
      changes: { matcher },
      runner: { run: async (plan) => JSON.stringify(this.index.query(plan.plan, 1_000)) },
      index: {
        ...{ unready: () => null, generation: 1, head: () => 0, recorded: () => true },
        reached: (positions, waitMs) => this.#reached(positions, waitMs),
      },
      applied: (shard) => this.index.offsets().get(shard) ?? 0,
      heads: () => Array.from(followers.heads, ([shard, offset]) => ({ shard, offset })),
      ...{ shards: SHARDS, clock: this.clock, served: () => this.served },
    })
    const positions = livePositions(STORE, countingChance())
    const served = (): SchemaVersion => this.served
    const frames = queryFrames({ queries, positions, served, filterFields: 'any' })
    this.members.set(name, { name, watch, followers, queries, frames })
  }

  /** It is gone with its sockets; others have its shards. */
  kill(name: string): void {
    const { watch, queries } = this.members.get(name)!
    this.members.delete(name)
    queries.stop()
    void watch.stop()
    const [heir] = this.members.keys()
    for (const [shard, owner] of this.#owners) if (owner === name) this.#give(shard, heir!)
    for (const client of this.clients) if (client.member?.name === name) client.lost()
  }

  move(shard: number, to: string): void {
    this.members.get(this.#owners.get(shard)!)?.followers.lost(shard)
    this.#give(shard, to)
  }

  ownerOf(shard: number): string {
    return this.#owners.get(shard)!
  }

  #give(shard: number, to: string): void {
    this.#owners.set(shard, to)
    this.members.get(to)!.followers.gained(shard, this.#log[shard]!.length)
  }

  #deliver(from: string, to: string, notice: WatchNotice | FedNotice): void {
    const hear = (): void => this.members.get(to)?.watch.hear(notice, from)
    const what = this.fate(notice, to)
    if (what === 'late') this.#late.push(hear)
    else if (what !== 'lost') hear()
    if (what === 'doubled') hear()
  }

  /** What was held back comes, one after the other. */
  async comeLate(): Promise<void> {
    for (const hear of this.#late.splice(0)) {
      hear()
      await settle()
    }
  }

  // --- what happens -----------------------------------------------------------------------

  /** The actor of this number becomes another; in the index it is so after `indexed`. */
  commit(actor: number, becomes: Becomes, dynamic: Doc = {}): void {
    const shard = actor % SHARDS
    const actorId = idOf(actor)
    const version = (this.#versions.get(actorId) ?? 0) + 1
    this.#versions.set(actorId, version)
    const nodes = becomes === null ? [] : nodesOf(actorId, version, { ...becomes, dynamic })
    const change = { actorId, nodes }
    const offset = this.#log[shard]!.push(change)
    this.members.get(this.#owners.get(shard)!)!.followers.committed(shard, offset, change)
  }

  /** The index has all of this shard. */
  indexed(shard: number): void {
    const done = this.index.offsets().get(shard) ?? 0
    const log = this.#log[shard]!
    for (let offset = done + 1; offset <= log.length; offset++) {
      const { actorId, nodes } = log[offset - 1]!
      const writes = TYPES.map(({ name }) => {
        const found = nodes.find(([type]) => type === name)
        const id = name === 'order' ? actorId : lineOf(actorId)
        return { node: name, actorId, id, version: offset, doc: found?.[2] ?? null }
      })
      this.index.apply(writes, [{ shard, offset }])
    }
  }

  indexedAll(): void {
    for (let shard = 0; shard < SHARDS; shard++) this.indexed(shard)
  }

  /** The schema is another, and the index was filled by it. */
  serve(types: readonly NodeType[]): void {
    this.served = versionOf(this.served.number + 1, types)
    this.index = new MemoryGraphIndex({ schema: this.served.schema })
    this.indexedAll()
  }

  async #reached(
    positions: readonly { readonly shard: number; readonly offset: number }[],
    waitMs: number,
  ): Promise<boolean> {
    const untilMs = this.clock.monotonicMs() + waitMs
    const has = (): boolean =>
      positions.every(({ shard, offset }) => (this.index.offsets().get(shard) ?? 0) >= offset)
    while (!has() && this.clock.monotonicMs() < untilMs) {
      await new Promise<void>((resolve) => void this.clock.after(20, resolve))
    }
    return has()
  }

  // --- clients ----------------------------------------------------------------------------

  open(query: Doc, member: string): LiveClient {
    const client = new LiveClient(query)
    this.clients.push(client)
    client.connect(this.members.get(member)!)
    return client
  }

  /** Nothing is lost any more and all is told: what each client has is what there is. */
  async quiet(): Promise<void> {
    this.fate = () => 'comes'
    await this.comeLate()
    this.indexedAll()
    await this.clock.advance(LIMITS.live.queryReadAgainMs + 1)
    const [first] = this.members.values()
    for (const client of this.clients) {
      client.take()
      if (client.member === null) client.connect(first!)
    }
    await this.clock.advance(3 * LIMITS.feed.watchEveryMs)
  }

  /** The graph's own answer. */
  answer(query: Doc): unknown {
    const { schema } = this.served
    const plan = planNavigations([query], schema, FULL_ACCESS, { nowMs: 0, limits: LIMITS.graph })
    return this.index.query(plan, 1_000)[query['edge'] as string]
  }

  /** K6 of all clients. */
  faults(): string[] {
    return this.clients.flatMap((client) => {
      client.take()
      const [has, is] = [client.view.nodes, this.answer(client.query)]
      const [text, wanted] = [JSON.stringify(has), JSON.stringify(is)]
      const ending = text === wanted ? [] : [`has ${text}, not ${wanted}, ${client.ended}`]
      return [...client.view.problems, ...ending]
    })
  }

  async stop(): Promise<void> {
    for (const { queries, watch } of this.members.values()) {
      queries.stop()
      await watch.stop()
    }
  }
}

export function idOf(actor: number): string {
  return `00000000-0000-7000-8000-${String(actor).padStart(12, '0')}`
}

function nodesOf(
  actorId: string,
  version: number,
  { state, rank, line, dynamic }: NonNullable<Becomes> & { readonly dynamic: Doc },
): NodeRow[] {
  const order: NodeRow = ['order', actorId, { orderId: actorId, state, rank, version, dynamic }]
  const lineId = lineOf(actorId)
  if (!line) return [order]
  return [order, ['line', lineId, { lineId, orderId: actorId, rank, version }]]
}

function matcher(interest: unknown) {
  const { types } = interest as { readonly types: readonly string[] }
  return ({ entry }: FeedEntry): readonly NodeChange[] => {
    const { actorId, nodes } = entry as unknown as NodeChange
    return [{ actorId, nodes: nodes.filter(([type]) => types.includes(type)) }]
  }
}

function lineOf(actorId: string): string {
  return `l${actorId}`
}
