// Three days pass on a node that has refusals among its orders' changes: what may expire does, and
// every change that was acknowledged is still there, before and after a restart. Source: PROTOCOL
// 3.12.

import t from 'tap'
import type { Test } from 'tap'
import { NodeProcess } from '../harness/node-process.ts'
import { apply, create } from '../harness/orders.ts'
import { tick } from '../harness/patience.ts'
import { LEAP_VARIABLE, LIMITS_VARIABLE } from '../harness/lowered-limits.ts'

t.setTimeout(120_000)

/** Two of them are more than a refusal's life, one is less. */
const LEAP_MS = 30 * 3_600_000
const EVERY_MS = 50
/** Derived rows are durable, the log is trimmed and rows that are over have gone by then. */
const UPKEEP_MS = 12 * EVERY_MS
const ORDERS = 30
const REFUSED = { type: 'deleteDelivery', deliveryId: '018f2b3c-4d5e-7abc-8def-0123456789ab' }

const LIMITS = {
  'sharding.trimEveryMs': EVERY_MS,
  'storage.expireEveryMs': EVERY_MS,
  'sharding.flushStoredMs': EVERY_MS,
  'sharding.sweepEveryMs': EVERY_MS,
  'sharding.feedRetentionBytes': 0,
}

/** Changes and refusals of one order, as the refusals' places differ from order to order. */
async function live(node: NodeProcess, id: string, order: number): Promise<string[]> {
  const tags: string[] = []
  for (let i = 0; i < 8; i++) {
    const isRefused = (order * 7 + i * 5) % 3 !== 0
    const key = `t${i}`
    const body = [apply({ type: 'addTag', key }, ...(isRefused ? [REFUSED] : []))]
    const headers = { 'Idempotency-Key': `${id}-${i}` }
    const { status, text } = await node.order(id, body, headers)
    if (status !== (isRefused ? 422 : 200)) throw new Error(`${status} ${text}`)
    if (!isRefused) tags.push(key)
  }
  return tags
}

async function timePasses(node: NodeProcess): Promise<void> {
  await tick(UPKEEP_MS)
  process.kill(node.pid, 'SIGUSR2')
  await node.ready() // with a token of the new time
  // Something is written under the new time, as it would be at any moment of it.
  await node.order('new', [create({})])
  await tick(UPKEEP_MS)
}

async function checkTags(
  t: Pick<Test, 'same'>,
  node: NodeProcess,
  made: ReadonlyMap<string, readonly string[]>,
): Promise<void> {
  const lost: string[] = []
  for (const [number, tags] of made) {
    const { text } = await node.order(number, [{ type: 'query', body: { fields: ['tags'] } }])
    const missing = tags.filter((tag) => !text.includes(`"${tag}"`))
    if (missing.length > 0) lost.push(`${number}: ${missing.join()} of ${text.slice(0, 200)}`)
  }
  t.same(lost, [])
}

t.test('three days later every acknowledged change is there', async (t) => {
  const node = new NodeProcess({
    [LEAP_VARIABLE]: String(LEAP_MS),
    [LIMITS_VARIABLE]: JSON.stringify(LIMITS),
  })
  t.teardown(() => node.clear())
  await node.start()
  const idOf = (i: number): string => `0190a1b2-0000-4000-8000-${String(i).padStart(12, '0')}`
  // Of some, requests are refused before they come to be: of these the older ones go alone.
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < ORDERS; i += 3) await node.order(idOf(i), [apply(REFUSED)])
    await timePasses(node)
  }
  const made = new Map<string, string[]>()
  for (let i = 0; i < ORDERS; i++) {
    const number = `LIFE-${i}`
    const id = idOf(i)
    const { status } = await node.order(id, [create({ orderNumber: number })])
    t.equal(status, 200)
    made.set(number, await live(node, number, i))
  }
  for (let i = 0; i < 3; i++) await timePasses(node)
  await node.stop()
  await node.start()
  await checkTags(t, node, made)
  for (const [number, tags] of made) tags.push(...(await addOne(node, number)))
  for (let i = 0; i < 3; i++) await timePasses(node)
  await node.kill()
  await node.start()
  await checkTags(t, node, made)
})

/** New changes go on. */
async function addOne(node: NodeProcess, number: string): Promise<string[]> {
  const { status, text } = await node.order(number, [apply({ type: 'addTag', key: 'later' })])
  if (status !== 200) throw new Error(`${number}: ${status} ${text}`)
  return ['later']
}
