// One caller's heavy graph requests, many at once, and somebody else's light ones beside them: the
// light ones wait for none of the heavy ones. Counted in answers, not in time: how fast the machine
// is has no part in it. Source: PROTOCOL 3.10.

import t from 'tap'
import { onCluster } from '../harness/driver.ts'
import { startNode } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { create } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'

const ORDERS = 2_000
const HEAVY_AT_ONCE = 16
const LIGHT = 12
/** Heavy ones that may end in the time of a light one: as they came, it would be all of them. */
const BESIDE = HEAVY_AT_ONCE / 4

if (onCluster) {
  t.plan(0, 'it is about the threads of an embedded node')
  process.exit(0)
}
const node = await startNode(t)
const lines = Array.from({ length: ORDERS }, (_, i) => {
  const deliveryId = crypto.randomUUID()
  const orderLine = (n: number) => ({
    type: 'createOrderLine',
    deliveryId,
    orderLineId: crypto.randomUUID(),
    productNumber: `P-${i}-${n}`,
    quantity: n,
    unitPrice: 10,
  })
  const delivery = { type: 'createDelivery', deliveryId }
  return { id: 'new', messages: [create({}, delivery, ...[1, 2, 3].map(orderLine))] }
})
const ids = (await node.bulk(lines)).text
  .trim()
  .split('\n')
  .map((line) => (JSON.parse(line) as { id: string }).id)
await until('all of them are in the graph', async () => {
  const { orders } = await node.graph<{ orders: number }>([{ edge: 'orders', count: true }])
  return orders >= ORDERS
})

const NOWHERE = [...'abcdefgh'].map((c) => `productNumber contains '${c}'`).join(' or ')

/** A small body that looks at each line of each order many times. */
function heavy(token: string, n: number): Promise<Answer> {
  const body = Array.from({ length: 15 }, (_, i) => ({
    edge: 'orders',
    alias: `a${i}`,
    count: true,
    filter: `orderTotal > ${n}`,
    node: {
      navigate: [{ edge: 'orderLines', require: 'none', filter: NOWHERE }],
    },
  }))
  return node.ask('/resources/graph', { token, body })
}

function light(token: string, n: number): Promise<Answer> {
  const filter = `orderId == '${ids[n % ids.length]}'`
  const body = [{ edge: 'orders', filter, node: { fields: ['orderId'] } }]
  return node.ask('/resources/graph', { token, body })
}

t.test('light queries wait for none of the heavy ones', async (t) => {
  const [attacker, bystander] = [await node.token(), await node.token()]
  const ended = { heavy: 0, isOver: false }
  const wrong: string[] = []
  const run = async (from: number): Promise<void> => {
    // New texts each time: nothing is known of them but who sends them.
    for (let n = from; !ended.isOver; n += HEAVY_AT_ONCE) {
      const { status, text } = await heavy(attacker, n % 7)
      if (status === 200) ended.heavy++
      // On a slow machine their time is over before they are.
      else if (status !== 503) wrong.push(`${status} ${text}`)
    }
  }
  const running = Array.from({ length: HEAVY_AT_ONCE }, (_, n) => run(n))
  await heavy(attacker, 0)
  const before = ended.heavy
  for (let n = 0; n < LIGHT && ended.heavy - before <= BESIDE * LIGHT; n++) {
    const answer = await light(bystander, n)
    t.equal(answer.status, 200, answer.text.slice(0, 200))
  }
  const beside = ended.heavy - before
  ended.isOver = true
  await Promise.all(running)
  t.ok(beside <= BESIDE * LIGHT, `${beside} heavy ones ended while ${LIGHT} light ones ran`)
  t.strictSame(wrong, [])
})
