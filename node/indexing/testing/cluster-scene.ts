// Members' graph indexes on one journal and one search engine in memory, with notebooks to follow:
// the stage of the tests of the cluster's index. It stands in for the runtime, which gains and
// loses shards, and for Elasticsearch.

import type { ActorRecord, Behaviour } from '../../../protocol/behaviour.ts'
import { LIMITS } from '../../../config/limits.ts'
import { FULL_ACCESS } from '../../../protocol/graph/planning.ts'
import { planNavigations } from '../../../protocol/graph/navigation.ts'
import type { Position } from '../../../protocol/ids.ts'
import { FeedStore, decodeTestSnapshot } from '../../../cluster/feed/testing/feed-store.ts'
import { type Defects, notebookBehaviour } from '../../../cluster/feed/testing/notebook.ts'
import { TestClock, settle } from '../../../cluster/testing/harness.ts'
import { type EngineHooks, MemorySearchEngine } from '../../../storage/memory/search-engine.ts'
import type { SearchEngine } from '../../../storage/elastic/engine.ts'
import { docOf } from '../../../storage/elastic/document.ts'
import { OWN } from '../../../storage/elastic/layout.ts'
import { LiveSchema } from '../../graph/live-schema.ts'
import { type ClusterIndex, startClusterIndex } from '../cluster/cluster-index.ts'

const CALLER = { group: 'client/test', name: 's' }

export interface TestMember {
  readonly index: ClusterIndex
  readonly shards: Set<number>
  readonly lease: { stands: boolean }
  /** Its own; the test changes it. */
  readonly schema: LiveSchema
}

export interface SceneOptions {
  readonly engine?: SearchEngine
  readonly prefix?: string
  readonly shards?: number
  /** Notebooks by default. */
  readonly behaviour?: Behaviour
  /** Types that members know besides. */
  readonly others?: readonly Behaviour[]
}

export class ClusterScene {
  readonly clock = new TestClock()
  readonly defects: Defects = { fold: false, project: false }
  readonly hooks: EngineHooks = {}
  readonly memory = new MemorySearchEngine({
    nowMs: () => this.clock.monotonicMs(),
    hooks: this.hooks,
    gcDeletesMs: 100,
  })
  readonly store: FeedStore
  readonly members: TestMember[] = []
  readonly warnings: string[] = []
  readonly engine: SearchEngine
  readonly prefix: string
  /** The type as members started from now on have it. */
  behaviour: Behaviour
  readonly others: readonly Behaviour[]

  constructor(options: SceneOptions = {}) {
    this.behaviour = options.behaviour ?? notebookBehaviour(this.defects)
    this.others = options.others ?? []
    const store = { shards: options.shards ?? 2, generation: 'g1' }
    this.store = new FeedStore(this.behaviour, store)
    this.engine = options.engine ?? this.memory
    this.prefix = options.prefix ?? 'test-'
  }

  async start(...own: number[]): Promise<TestMember> {
    const { behaviour } = this
    const shards = new Set<number>()
    const lease = { stands: true }
    const schema = new LiveSchema(behaviour.nodeTypes)
    const index = startClusterIndex({
      journal: this.store.journal,
      engine: this.engine,
      prefix: this.prefix,
      schema,
      behaviours: new Map([behaviour, ...this.others].map((type) => [type.type, type])),
      clock: this.clock,
      log: {
        debug: () => undefined,
        info: () => undefined,
        warn: (fields, text) => this.#note(fields, text),
        error: (fields, text) => this.#note(fields, text),
      },
      flushed: () => null,
      serves: (shard) => lease.stands && shards.has(shard),
      decodeSnapshot: decodeTestSnapshot,
    })
    const member: TestMember = { index, shards, lease, schema }
    this.members.push(member)
    await this.gives(member, ...own)
    return member
  }

  #note(fields: object, text: string): void {
    const { err, reason } = fields as { err?: Error; reason?: string }
    this.warnings.push(`${text}: ${err?.message ?? reason ?? ''}`)
  }

  /** The member gains shards; who had them loses them, `late`: only afterwards. */
  async gives(member: TestMember, ...shards: number[]): Promise<void> {
    for (const shard of shards) {
      const before = this.members.find((other) => other.shards.has(shard))
      before?.shards.delete(shard)
      before?.index.lost(shard)
      member.shards.add(shard)
      const epoch = await this.store.claim(shard)
      member.index.gained(shard, epoch, this.store.heads.get(shard) ?? 0)
    }
  }

  /** Commits a group and tells its owner. */
  async commit(...entries: readonly (readonly [string, ...ActorRecord[]])[]): Promise<Position> {
    const at = await this.store.commit(...entries)
    const first = at.offset - entries.length + 1
    const [row] = await this.store.journal.log.read(at.shard, first - 1, 1)
    const owner = this.members.find(({ shards }) => shards.has(at.shard))
    // Only the number of entries is looked at.
    const some = Array.from<never>({ length: entries.length })
    owner?.index.committed(at.shard, some, first, row!.body)
    return at
  }

  /** Time passes until it holds, two minutes at most. */
  async until(holds: () => unknown): Promise<boolean> {
    for (let i = 0; i < 1_200; i++) {
      await settle()
      if (await holds()) return true
      await this.clock.advance(100)
    }
    return false
  }

  /** Awaits what needs time to pass. */
  async during<T>(work: Promise<T> | T): Promise<T> {
    const state = { isOver: false }
    const ended = Promise.resolve(work).finally(() => (state.isOver = true))
    ended.catch(() => undefined)
    for (let i = 0; i < 2_000 && !state.isOver; i++) {
      await settle()
      if (!state.isOver) await this.clock.advance(25)
    }
    return ended
  }

  /** An actor's nodes of a type in the order that the live index has of them, with their places. */
  order(actorId: string, node: string): [number, string][] {
    const places: [number, string][] = []
    for (const { aliases, documents } of this.memory.state.values()) {
      if (!aliases.has(`${this.prefix}${node}`)) continue
      for (const { source } of documents.values()) {
        const own = source[OWN] as { actor: string; id: string; place?: number }
        if (own.actor === actorId && own.place !== undefined) places.push([own.place, own.id])
      }
    }
    return places.toSorted(([a], [b]) => a - b)
  }

  /** What the live indexes hold, as FeedStore.expected() has it; removed nodes left out. */
  docs(): Map<string, unknown> {
    const docs = new Map<string, unknown>()
    for (const { aliases, documents, definition } of this.memory.state.values()) {
      const node = String(definition.meta['node'])
      if (!aliases.has(`${this.prefix}${node}`)) continue
      for (const { source } of documents.values()) {
        const own = source[OWN] as { actor: string; id: string; deleted?: true }
        if (own.deleted !== true) docs.set(`${own.actor} ${node} ${own.id}`, docOf(source))
      }
    }
    return docs
  }

  /** Numbers of the generations that are there. */
  generations(): number[] {
    const numbers = Array.from(this.memory.state.values(), ({ definition }) =>
      Number(definition.meta['generation']),
    )
    return [...new Set(numbers)].toSorted((a, b) => a - b)
  }

  /** How things stand, for who finds them wrong. */
  tell(): string {
    const members = this.members.map(({ index, shards }) => ({
      generation: index.watch.generation,
      applied: Object.fromEntries([...shards].map((shard) => [shard, index.applied(shard)])),
    }))
    const [heads, warnings] = [Object.fromEntries(this.store.heads), this.warnings.slice(-3)]
    return JSON.stringify({ members, heads, generations: this.generations(), warnings })
  }

  /** Every own shard is in the index up to its head. */
  get isCaughtUp(): boolean {
    return this.members.every(({ index, shards }) =>
      [...shards].every((shard) => index.applied(shard) >= (this.store.heads.get(shard) ?? 0)),
    )
  }

  /** A query on a member; rejects as the graph does. */
  async ask({ index }: TestMember, body: unknown): Promise<Record<string, unknown>> {
    const { schema } = index.served
    const options = { nowMs: this.clock.nowMs(), limits: LIMITS.graph }
    const plan = planNavigations(body, schema, FULL_ACCESS, options)
    const ready = { plan, json: '', usesHistory: false }
    const json = await this.during(
      index.runner.run(ready, 5_000, () => index.watch.generation, CALLER),
    )
    return JSON.parse(json) as Record<string, unknown>
  }

  /** Waits on a member for positions, as a request with a token does. */
  async reached({ index }: TestMember, ...positions: Position[]): Promise<boolean> {
    return this.during(index.watch.reached(positions, LIMITS.indexing.consistencyWaitMs))
  }

  async close(): Promise<void> {
    await this.during(Promise.all(this.members.map(({ index }) => index.close())))
  }
}
