// Orders through the projector into the search engine's strict mappings: whatever happens in their
// lives, the index holds exactly the nodes of their states, in their order, and refuses none. On
// the twin, and on a real Elasticsearch.

import { deepStrictEqual } from 'node:assert'
import t from 'tap'
import fc from 'fast-check'
import { OrderDriver } from '../../../commerce/order/testing/order-driver.ts'
import { restlessArbitrary } from '../../../commerce/order/testing/random-commands.ts'
import { orderBehaviour } from '../../../commerce/order/order.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { graphSchema } from '../../../protocol/graph/schema.ts'
import { Projector } from '../../../cluster/feed/projector.ts'
import {
  FeedStore,
  actorIdOf,
  decodeTestSnapshot,
} from '../../../cluster/feed/testing/feed-store.ts'
import { ElasticClient } from '../../../storage/elastic/client.ts'
import { docOf } from '../../../storage/elastic/document.ts'
import type { SearchEngine } from '../../../storage/elastic/engine.ts'
import { Generations } from '../../../storage/elastic/generations.ts'
import { layoutOf, OWN } from '../../../storage/elastic/layout.ts'
import { BY_ID } from '../../../storage/elastic/selection.ts'
import { ElasticWriter } from '../../../storage/elastic/writer.ts'
import { MemorySearchEngine } from '../../../storage/memory/search-engine.ts'
import { engine } from '../../harness/engines.ts'

const behaviour = orderBehaviour() as Behaviour
const layout = layoutOf(graphSchema(behaviour.nodeTypes))
const BOUND = { timeoutMs: 60_000 }
t.setTimeout(290_000)

/** One index with a store beside it; actors are new in each run. */
class Followed {
  readonly store = new FeedStore(behaviour, { shards: 2, generation: 'g' })
  readonly #generations: Generations
  readonly #engine: SearchEngine
  readonly #projector: Projector

  constructor(search: SearchEngine, prefix: string) {
    this.#engine = search
    this.#generations = new Generations({ engine: search, prefix, layout, store: 'g' })
    const { log, derived } = this.store.journal
    this.#projector = new Projector({
      behaviours: new Map([['order', behaviour]]),
      log,
      derived,
      index: new ElasticWriter({
        engine: search,
        layout,
        rows: new Set(layout.nodes.keys()),
        writeAliasOf: (name) => this.#generations.writeAliasOf(1, name),
        saveOffsets: () => Promise.resolve(),
        saveFills: () => Promise.resolve(),
        nowMs: () => 0,
        pause: () => Promise.resolve(),
        beforeBulk: () => undefined,
      }),
      decodeSnapshot: decodeTestSnapshot,
      shards: 2,
      park: ({ reason }) => Promise.reject(new Error(reason)),
      unpark: () => Promise.resolve(),
      pause: () => Promise.resolve(),
      clock: () => 0,
      limits: { entries: 3, actors: 1 },
      shared: true,
    })
  }

  async start(): Promise<void> {
    await this.#generations.make(1)
    for (const shard of [0, 1]) await this.#projector.gained(shard, null, 0)
  }

  async follow(): Promise<void> {
    await this.store.flush()
    while ((await this.#projector.step(this.store.heads)).next !== 'idle');
  }

  /** All nodes that are there, and each list's ids in its order. */
  async held(): Promise<{ docs: Map<string, unknown>; lists: Map<string, string[]> }> {
    const docs = new Map<string, unknown>()
    const places = new Map<string, string[]>()
    for (const { name, type, members } of layout.nodes.values()) {
      const index = this.#generations.indexOf(1, name)
      await this.#engine.refresh([index], BOUND)
      const [found] = await this.#engine.search(
        [
          {
            index,
            query: { match_all: {} },
            size: 10_000,
            sort: BY_ID,
            source: [OWN, ...members.map((member) => member.name)],
            counts: false,
          },
        ],
        BOUND,
      )
      for (const { source } of found!.hits) {
        const own = source[OWN] as { actor: string; id: string; place: number; deleted?: true }
        if (own.deleted) continue
        docs.set(`${own.actor} ${type.name} ${own.id}`, docOf(source))
        const list = `${own.actor} ${type.name}`
        places.set(list, places.get(list) ?? [])
        places.get(list)![own.place] = own.id
      }
    }
    return { docs, lists: places }
  }

  async clear(): Promise<void> {
    await this.#generations.drop(1)
  }
}

/** As JSON, without what is missing: null and absent are the same. */
function plain(docs: ReadonlyMap<string, unknown>): Map<string, unknown> {
  const sorted = [...docs].toSorted(([a], [b]) => (a < b ? -1 : 1))
  return new Map(
    sorted.map(([key, doc]) => {
      const members = Object.entries(JSON.parse(JSON.stringify(doc)) as Record<string, unknown>)
      const known = new Set(layout.nodes.get(key.split(' ')[1]!)!.members.map(({ name }) => name))
      const there = members.filter(([name, value]) => value !== null && known.has(name))
      return [key, Object.fromEntries(there.toSorted(([a], [b]) => (a < b ? -1 : 1)))]
    }),
  )
}

const committed = new WeakMap<OrderDriver, number>()

async function commitNew(store: FeedStore, driver: OrderDriver): Promise<void> {
  const fresh = driver.entries.slice(committed.get(driver) ?? 0)
  committed.set(driver, driver.entries.length)
  for (const { records, timeMs } of fresh) {
    store.nowMs = timeMs
    await store.commit([driver.orderId, ...records])
  }
}

let made = 0

async function live(search: SearchEngine, numRuns: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(
      fc.array(restlessArbitrary, { minLength: 1, maxLength: 2 }),
      async (scripts) => {
        const followed = new Followed(search, `orders-${process.pid}-${++made}-`)
        const { store } = followed
        await followed.start()
        const orders = scripts.map((script, i) => {
          const driver = new OrderDriver({ orderId: actorIdOf(i + 1, i % 2) })
          return { driver, script, batches: [script.beginning, ...script.batches] }
        })
        const rounds = Math.max(...orders.map(({ batches }) => batches.length))
        for (let round = 0; round < rounds; round++) {
          for (const { driver, script, batches } of orders) {
            const commands = batches[round]
            if (commands === undefined) continue
            if (round === 0) driver.create(commands, script)
            else driver.apply(...commands)
            if (round % 7 === 6) driver.send('rewind', { checkpointId: driver.checkpoints()[0] })
            await commitNew(store, driver)
          }
          await followed.follow()
        }
        const { docs, lists } = await followed.held()
        const expected = store.expected()
        deepStrictEqual(plain(docs), plain(expected))
        for (const [list, ids] of lists) {
          const own = [...expected.keys()].filter((key) => key.startsWith(`${list} `))
          deepStrictEqual(
            [...ids],
            own.map((key) => key.slice(list.length + 1)),
          )
        }
        await followed.clear()
      },
    ),
    { numRuns },
  )
}

t.test('on the twin', async () => {
  await live(new MemorySearchEngine({ nowMs: () => 0 }), 30)
})

t.test('on Elasticsearch', async (t) => {
  t.setTimeout(280_000)
  const address = await engine('elasticsearch')
  if ('skipped' in address) {
    t.pass(address.skipped, { skip: address.skipped })
    return
  }
  const client = new ElasticClient({ urls: [`http://${address.host}:${address.port}`] })
  t.teardown(() => client.close())
  await live(client, 3)
})
