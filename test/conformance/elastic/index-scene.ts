// A member's graph index on a real Elasticsearch, over a feed in memory. It stands between tests of
// the index and the engine that they choose.

import type { Test } from 'tap'
import type { ActorRecord, Behaviour } from '../../../protocol/behaviour.ts'
import { FULL_ACCESS } from '../../../protocol/graph/planning.ts'
import { planNavigations } from '../../../protocol/graph/navigation.ts'
import { graphSchema } from '../../../protocol/graph/schema.ts'
import { SYSTEM_SHARD, type Position } from '../../../protocol/ids.ts'
import { LIMITS } from '../../../config/limits.ts'
import { systemClock } from '../../../cluster/clock.ts'
import { FeedStore, decodeTestSnapshot } from '../../../cluster/feed/testing/feed-store.ts'
import { notebookBehaviour } from '../../../cluster/feed/testing/notebook.ts'
import { ElasticClient } from '../../../storage/elastic/client.ts'
import { LiveSchema } from '../../../node/graph/live-schema.ts'
import type { EngineAddress } from '../../harness/engines.ts'
import { until } from '../../harness/patience.ts'
import {
  type ClusterIndex,
  startClusterIndex,
} from '../../../node/indexing/cluster/cluster-index.ts'

type Records = readonly (readonly [string, ...ActorRecord[]])[]

const CALLER = { group: 'client/test', name: 's' }

/** Notebooks whose size is no number when their title says so: a mistake of a version. */
function behaviourOf(): Behaviour {
  const own = notebookBehaviour({ fold: false, project: false }) as Behaviour
  return {
    ...own,
    project(state, ref) {
      const node = own.project(state, ref)
      if (node?.doc['title'] !== 'refused') return node
      return { ...node, doc: { ...node.doc, size: 'many' } }
    },
  }
}

export class IndexScene {
  readonly store: FeedStore
  readonly index: ClusterIndex
  readonly warnings: string[] = []
  readonly clock = systemClock()
  readonly prefix: string
  readonly client: ElasticClient
  readonly #behaviour = behaviourOf()

  constructor({ host, port }: EngineAddress, name: string) {
    this.prefix = `${name}-${process.pid}-`
    this.store = new FeedStore(this.#behaviour, { shards: 2, generation: 'g1' })
    const urls = [`http://${host}:${port}`]
    this.client = new ElasticClient({ urls })
    const note = (_: object, text: string): unknown => this.warnings.push(text)
    this.index = startClusterIndex({
      journal: this.store.journal,
      engine: new ElasticClient({ urls }),
      prefix: this.prefix,
      schema: new LiveSchema(this.#behaviour.nodeTypes),
      behaviours: new Map([['notebook', this.#behaviour]]),
      clock: this.clock,
      log: { debug: () => undefined, info: () => undefined, warn: note, error: note },
      flushed: () => null,
      serves: () => true,
      decodeSnapshot: decodeTestSnapshot,
    })
  }

  async start(t: Test): Promise<void> {
    // The system's clock never keeps a process alive.
    const alive = setInterval(() => undefined, 1_000)
    t.teardown(() => this.clear().finally(() => clearInterval(alive)))
    for (const shard of [SYSTEM_SHARD, 0, 1]) {
      this.index.gained(shard, await this.store.claim(shard), 0)
    }
    await this.ready()
  }

  ready(): Promise<void> {
    return until('the index is read', () => this.index.watch.unready() === null, 120_000)
  }

  async commit(...entries: Records): Promise<Position> {
    const at = await this.store.commit(...entries)
    const first = at.offset - entries.length + 1
    const [row] = await this.store.journal.log.read(at.shard, first - 1, 1)
    const some = Array.from<never>({ length: entries.length })
    this.index.committed(at.shard, some, first, row!.body)
    return at
  }

  async reached(...positions: Position[]): Promise<boolean> {
    return this.index.watch.reached(positions, 60_000)
  }

  async titles(): Promise<string> {
    const body = [{ edge: 'notebooks', orderBy: 'title', node: { fields: ['title'] } }]
    const options = { nowMs: this.clock.nowMs(), limits: LIMITS.graph }
    const schema = graphSchema(this.#behaviour.nodeTypes)
    const plan = planNavigations(body, schema, FULL_ACCESS, options)
    const ready = { plan, json: '', usesHistory: false }
    const json = await this.index.runner.run(
      ready,
      30_000,
      () => this.index.watch.generation,
      CALLER,
    )
    const { notebooks } = JSON.parse(json) as { notebooks: { title: string }[] }
    return notebooks.map(({ title }) => title).join(' ')
  }

  async clear(): Promise<void> {
    await this.index.close()
    const bound = { timeoutMs: 60_000 }
    for (const { name } of await this.client.indexes(this.prefix, bound)) {
      await this.client.deleteIndex(name, bound)
    }
    await this.client.close()
  }
}
