// A burst of orders: the graph follows close behind it, nothing is refused, and in the end it has
// every order. Source: ARCHITECTURE 8.

import t from 'tap'
import { randomUUID } from 'node:crypto'
import { startNode } from '../harness/node-process.ts'
import { until } from '../harness/patience.ts'
import { create, smallOrderCommands } from '../harness/orders.ts'

/** Orders in one request of bulk, and such requests at a time: some are under way at any time. */
const MANY = 1_000
const AT_A_TIME = 8
const ROUNDS = 3
/** The index has the lowest priority: beside other busy processes it takes its time. */
const DEADLINE_MS = 120_000

const COUNT = [{ edge: 'orders', count: true }]

t.test('a burst, and the graph behind it', async (t) => {
  const node = await startNode(t)
  const lines = Array.from({ length: MANY }, () => {
    const commands = smallOrderCommands(randomUUID(), randomUUID())
    return { id: 'new', messages: [create({}, ...commands)] }
  })
  const work = async (): Promise<void> => {
    for (let round = 0; round < ROUNDS; round++) {
      t.notMatch((await node.bulk(lines)).text, /"errors":\[/)
    }
  }
  const workers = Array.from({ length: AT_A_TIME }, work)
  const { orders } = await node.graph<{ orders: number }>(COUNT)
  const made = MANY * AT_A_TIME * ROUNDS
  t.ok(orders <= made)
  await Promise.all(workers)
  const isThere = async (): Promise<boolean> =>
    (await node.metric('kontor_index_lag_entries')) === 0
  await until('the graph has caught up', isThere, DEADLINE_MS)
  t.strictSame(await node.graph(COUNT), { orders: made }, 'everything in the end')
})
