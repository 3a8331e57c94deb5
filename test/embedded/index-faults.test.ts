// The file of the graph index lost or spoilt between two starts, and locked by another process
// while the node runs: it is made again from the journal and answers as before. Source:
// ARCHITECTURE 2 ("losing the index loses nothing"), CONTRACT 0 "Read your writes", PROTOCOL 3.13.

import t from 'tap'
import { readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { refused } from '../harness/answers.ts'
import { startNode } from '../harness/node-process.ts'
import type { NodeProcess } from '../harness/node-process.ts'
import { WHOLE_ORDER, apply, smallOrder } from '../harness/orders.ts'

const FILE = 'graph.sqlite'
const ORDERS = 60

/** Everything the graph has, in one answer. */
const EVERYTHING = [
  { edge: 'orders', node: WHOLE_ORDER, limit: 1000 },
  { edge: 'deliveries', count: true },
  { edge: 'orderLines', orderBy: 'orderLineId', node: { fields: ['orderLineId', 'quantity'] } },
]

async function fill(node: NodeProcess): Promise<unknown> {
  const answers = []
  for (let i = 0; i < ORDERS; i++) {
    const { orderId, orderLineId, deliveryId } = await smallOrder(node, { orderNumber: `I${i}` })
    let last = await node.order(orderId, [
      apply(
        { type: 'setOrderLineQuantity', orderLineId, quantity: i + 1 },
        { type: 'addActivityLog', messageTemplate: `note ${i}` },
        ...(i % 3 === 0
          ? [{ type: 'releaseShippingToInvoicing', deliveryId }, { type: 'invoice' }]
          : []),
      ),
    ])
    if (i % 10 === 9)
      last = await node.order(orderId, [{ type: i % 20 === 9 ? 'delete' : 'getCheckpoints' }])
    answers.push(last)
  }
  const mark = await smallOrder(node)
  const last = await node.order(mark.orderId, [apply({ type: 'addTag', key: 'last' })])
  // An answer's token covers the shard of its order alone.
  for (const answer of answers) await node.graph([{ edge: 'orders', count: true }], answer)
  return node.graph(EVERYTHING, last)
}

const SPOILT: readonly (readonly [what: string, spoil: (file: string) => void])[] = [
  ['deleted', (file) => ['', '-wal', '-shm'].forEach((end) => rmSync(file + end, { force: true }))],
  ['cut to nothing', (file) => truncateSync(file, 0)],
  ['cut in the middle', (file) => truncateSync(file, Math.floor(statSync(file).size / 2))],
  ['garbage', (file) => writeFileSync(file, Buffer.alloc(100_000, 'garbage '))],
  ['garbage behind its first page', (file) => spoilFrom(file, 8192)],
  [
    'without its log',
    (file) => ['-wal', '-shm'].forEach((end) => rmSync(file + end, { force: true })),
  ],
]

function spoilFrom(file: string, at: number): void {
  const bytes = readFileSync(file)
  bytes.fill(0xa5, at)
  writeFileSync(file, bytes)
}

t.test('an index that is lost or spoilt is made again', async (t) => {
  const node = await startNode(t)
  const before = await fill(node)
  for (const [i, [what, spoil]] of SPOILT.entries()) {
    // Gone in good order, and killed.
    if (i % 2 === 0) await node.stop()
    else await node.kill()
    spoil(join(node.dir, FILE))
    await node.start()
    t.strictSame(await node.graph(EVERYTHING), before, what)
    const order = await smallOrder(node, { orderNumber: `AFTER-${i}` })
    const gone = await node.order(order.orderId, [{ type: 'delete' }])
    t.strictSame(await node.graph(EVERYTHING, gone), before, `${what}: and it follows what is new`)
  }
})

t.test('an index that hangs is 503 to those who wait for it, and to nobody else', async (t) => {
  const node = await startNode(t)
  const { orderId } = await smallOrder(node)
  await node.graph(EVERYTHING, await node.order(orderId, [apply({ type: 'addTag', key: 'a' })]))
  const lock = new DatabaseSync(join(node.dir, FILE))
  t.teardown(() => lock.close())
  lock.exec('BEGIN IMMEDIATE')
  const wrote = await node.order(orderId, [apply({ type: 'addTag', key: 'b' })])
  t.equal(wrote.status, 200, 'writes go on')
  const filter = `orderId == '${orderId}'`
  const body = [{ edge: 'orders', filter, node: { fields: ['tags'] } }]
  t.match(await node.graph(body), { orders: [{ tags: ['a'] }] }, 'so do questions without a token')
  const headers = { 'X-Consistency': String(wrote.headers['x-consistency']) }
  // Ticks, not the clock: where the machine itself stands still, both do.
  let ticks = 0
  const ticking = setInterval(() => ticks++, 100)
  const behind = await node.ask('/resources/graph', { body, headers })
  clearInterval(ticking)
  refused(t, behind, 'INDEX_BEHIND', /within 5000 ms; the write is safe: ask again/)
  t.match(behind.headers['retry-after'], /^\d+$/)
  t.ok(ticks > 20 && ticks < 80, `waited ${ticks} ticks of 100 ms`)
  lock.exec('ROLLBACK')
  t.strictSame(await node.graph(body, wrote), { orders: [{ tags: ['a', 'b'] }] }, 'it catches up')
})
