// Orders through the projector: whatever happens in their lives, the index holds exactly the nodes
// of their states, though only the nodes that records name are ever written.

import { deepStrictEqual } from 'node:assert'
import t from 'tap'
import fc from 'fast-check'
import { OrderDriver } from '../../commerce/order/testing/order-driver.ts'
import { scriptArbitrary } from '../../commerce/order/testing/random-commands.ts'
import { orderBehaviour } from '../../commerce/order/order.ts'
import type { Behaviour } from '../../protocol/behaviour.ts'
import { Projector } from '../../cluster/feed/projector.ts'
import {
  FeedStore,
  PlainIndex,
  actorIdOf,
  decodeTestSnapshot,
} from '../../cluster/feed/testing/feed-store.ts'

const behaviour = orderBehaviour() as Behaviour

function projectorOf(store: FeedStore, index: PlainIndex): Projector {
  const { log, derived } = store.journal
  return new Projector({
    behaviours: new Map([['order', behaviour]]),
    log,
    derived,
    index,
    decodeSnapshot: decodeTestSnapshot,
    shards: 2,
    park: ({ reason }) => Promise.reject(new Error(reason)),
    unpark: () => Promise.resolve(),
    pause: () => Promise.resolve(),
    clock: () => 0,
    limits: { entries: 3, actors: 1 },
  })
}

const committed = new WeakMap<OrderDriver, number>()

/** Commits what the order has done since the last call. */
async function commitNew(store: FeedStore, driver: OrderDriver): Promise<void> {
  const fresh = driver.entries.slice(committed.get(driver) ?? 0)
  committed.set(driver, driver.entries.length)
  for (const { records, timeMs } of fresh) {
    // As the order itself folds them: a rewind brings back times as well.
    store.nowMs = timeMs
    await store.commit([driver.orderId, ...records])
  }
}

/** The documents as JSON has them: what a member without a value is, the index does not say. */
function plain(docs: ReadonlyMap<string, unknown>): Map<string, unknown> {
  return new Map(Array.from(docs, ([key, doc]) => [key, JSON.parse(JSON.stringify(doc))]))
}

t.test('the index holds the nodes of the states', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(scriptArbitrary, { minLength: 1, maxLength: 3 }), async (scripts) => {
      const store = new FeedStore(behaviour, { shards: 2, generation: 'g' })
      const index = new PlainIndex()
      let projector = projectorOf(store, index)
      await projector.start(store.heads, 'g')
      const orders = scripts.map((script, i) => {
        const driver = new OrderDriver({ orderId: actorIdOf(i + 1, i % 2) })
        const { currencyCode, taxIncluded, beginning, batches } = script
        return { driver, batches: [beginning, ...batches], currencyCode, taxIncluded }
      })
      const rounds = Math.max(...orders.map(({ batches }) => batches.length))
      for (let round = 0; round < rounds; round++) {
        for (const { driver, batches, currencyCode, taxIncluded } of orders) {
          const commands = batches[round]
          if (commands === undefined) continue
          if (round === 0) driver.create(commands, { currencyCode, taxIncluded })
          else driver.apply(...commands)
          if (round % 7 === 6) driver.send('rewind', { checkpointId: driver.checkpoints()[0] })
          await commitNew(store, driver)
        }
        await store.flush()
        if (round % 5 === 4) {
          projector = projectorOf(store, index)
          await projector.start(store.heads, 'g')
        }
        while ((await projector.step(store.heads)).next !== 'idle');
        deepStrictEqual(plain(index.docs()), plain(store.expected()))
      }
    }),
    { numRuns: 12 },
  )
})

t.test('a deleted order leaves nothing behind', async (t) => {
  const store = new FeedStore(behaviour, { shards: 2, generation: 'g' })
  const index = new PlainIndex()
  const projector = projectorOf(store, index)
  await projector.start(store.heads, 'g')
  const driver = new OrderDriver({ orderId: actorIdOf(1, 0) })
  const deliveryId = actorIdOf(9, 0)
  const line = { type: 'createOrderLine', deliveryId, productNumber: 'p', quantity: 1 }
  driver.create([
    { type: 'createDelivery', deliveryId },
    { ...line, unitPrice: 1 },
  ])
  const send = async (): Promise<void> => {
    await commitNew(store, driver)
    await projector.step(store.heads)
  }
  await send()
  const nodes = new Set([...index.docs().keys()].map((key) => key.split(' ')[1]))
  t.strictSame(nodes, new Set(['order', 'delivery', 'orderLine']))
  driver.send('delete')
  await send()
  t.equal(index.docs().size, 0)
})
