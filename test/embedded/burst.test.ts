// A burst goes before the graph while nobody reads it: it is seen to, a reader ends it, and in the
// end the graph has every order. Source: ARCHITECTURE 8 "a burst may leave the index behind".

import t from 'tap'
import { randomUUID } from 'node:crypto'
import { startNode } from '../harness/node-process.ts'
import { until } from '../harness/patience.ts'
import { create, smallOrderCommands } from '../harness/orders.ts'

/** Orders in one request of bulk, and such requests at a time: some are under way at any time. */
const MANY = 1_000
const AT_A_TIME = 8
/** The index has the lowest priority: beside other busy processes it takes its time. */
const DEADLINE_MS = 120_000

const COUNT = [{ edge: 'orders', count: true }]

t.test('a burst goes before the graph until somebody reads it', async (t) => {
  const node = await startNode(t)
  let made = 0
  const over = new AbortController()
  const lines = Array.from({ length: MANY }, () => {
    const commands = smallOrderCommands(randomUUID(), randomUUID())
    return { id: 'new', messages: [create({}, ...commands)] }
  })
  const work = async (): Promise<void> => {
    while (!over.signal.aborted) {
      made += MANY
      t.notMatch((await node.bulk(lines)).text, /"errors":\[/)
    }
  }
  const workers = Array.from({ length: AT_A_TIME }, work)
  const isHeld = async (): Promise<boolean> => (await node.metric('kontor_index_held')) === 1
  await until('the index is held', isHeld, DEADLINE_MS)
  const seen = await node.graph<{ orders: number }>(COUNT)
  t.equal(await isHeld(), false, 'a reader ends it')
  t.ok(seen.orders <= made)
  over.abort()
  await Promise.all(workers)
  const isThere = async (): Promise<boolean> =>
    (await node.metric('kontor_index_lag_entries')) === 0
  await until('the graph has caught up', isThere, DEADLINE_MS)
  t.strictSame(await node.graph(COUNT), { orders: made }, 'everything in the end')
})
