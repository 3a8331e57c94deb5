// The sample of a first start on a real process: readiness waits for it, it is loaded once, and a
// start that broke off goes on. Source: CONTRACT 0 "Settings" (KONTOR_SAMPLE), README "Start".

import t from 'tap'
import { done } from '../harness/answers.ts'
import { NodeProcess } from '../harness/node-process.ts'
import { query } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'

const SAMPLE = 100

interface Counts {
  readonly orders: number
  readonly orderLines: number
}

const COUNTS = [
  { edge: 'orders', count: true },
  { edge: 'orderLines', count: true },
]

t.test('the sample', async (t) => {
  const node = new NodeProcess({ KONTOR_SAMPLE: 'true' })
  t.teardown(() => node.clear())
  node.launch()
  const seen = new Set<string>()
  await until('the node listens', () => /is up at/.test(node.output))
  node.port = Number(/is up at http:\/\/[^:]+:(\d+)/.exec(node.output)![1])
  await until('it is ready', async () => {
    const { status, text } = await node.send('/health/ready')
    seen.add(`${status} ${/"name":"sample","ok":(\w+)/.exec(text)?.[1]}`)
    return status === 200
  })
  t.ok(seen.has('503 false'), `readiness waits for the sample: ${[...seen].join(', ')}`)
  await until('it says so', () => /Loaded \d+ sample orders/.test(node.output))
  await node.stop()

  await node.start()
  let counts: Counts = { orders: 0, orderLines: 0 }
  await until('the graph has it', async () => {
    counts = await node.graph<Counts>(COUNTS)
    return counts.orders > SAMPLE && counts.orderLines > counts.orders
  })
  t.notMatch(node.output, /Loaded/, 'once')
  const { orders } = await node.graph<{ orders: { orderNumber: string; orderTotal: number }[] }>([
    {
      edge: 'orders',
      orderBy: 'createdAt desc',
      limit: 1,
      node: { fields: ['orderNumber', 'orderTotal'] },
    },
  ])
  const [newest] = orders
  const { data } = done(t, await node.order(newest!.orderNumber, [query('orderTotal')]))
  t.strictSame(data, { orderTotal: newest!.orderTotal })

  // What was deleted is not loaded again.
  const gone = await node.order(newest!.orderNumber, [{ type: 'delete' }])
  done(t, gone)
  const left = await node.graph<Counts>(COUNTS, gone)
  await node.stop()
  await node.start()
  t.strictSame(await node.graph(COUNTS), left)
})

t.test('a first start that is killed in the middle of it', async (t) => {
  const node = new NodeProcess({ KONTOR_SAMPLE: 'true' })
  t.teardown(() => node.clear())
  node.launch()
  await until('the node listens', () => /is up at/.test(node.output))
  await node.kill()
  await node.start()
  const whole = new NodeProcess({ KONTOR_SAMPLE: 'true' })
  t.teardown(() => whole.clear())
  await whole.start()
  const wanted = JSON.stringify(await settled(whole))
  t.equal(JSON.stringify(await settled(node)), wanted, 'goes on where it was')
})

/** Counts once they no longer change. */
async function settled(node: NodeProcess): Promise<Counts> {
  await until('the index has all', async () => {
    const lag = await node.metric('kontor_index_lag_entries')
    return lag === 0 && (await node.graph<Counts>(COUNTS)).orders > SAMPLE
  })
  return node.graph<Counts>(COUNTS)
}
