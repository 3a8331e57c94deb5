// An embedded store becomes a cluster's: every order shows the same, every request that was
// answered before is answered the same again, numbers stay taken. Source: PROTOCOL 3.12, 4.2
// (F37).

import t from 'tap'
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { apply, create, smallOrder, wholeOrder } from '../harness/orders.ts'
import { NodeProcess } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { until } from '../harness/patience.ts'
import { sharedEngines } from './harness/engines.ts'

const CLI = join(import.meta.dirname, '..', '..', 'cli')
const ORDERS = 40

interface Request {
  readonly path: string
  readonly body: unknown
  readonly key: string
}

function send(node: NodeProcess, { path, body, key }: Request): Promise<Answer> {
  return node.ask(path, { body, headers: { 'Idempotency-Key': key }, timeoutMs: 30_000 })
}

function said({ status, text }: Answer): string {
  return `${status} ${text.replace(/,"requestId":"[^"]*"/, '')}`
}

/** Creates by number, without one, refused ones; commands, and one that changes nothing. */
function requests(): Request[] {
  const all: Request[] = []
  const add = (path: string, body: unknown) => all.push({ path, body, key: randomUUID() })
  for (let i = 0; i < 8; i++) {
    add('/resources/actors/order/new', [create({ orderNumber: `KEPT-${i}` })])
    add('/resources/actors/order/new', [create({})])
    add(`/resources/actors/order/KEPT-${i}`, [apply({ type: 'addTag', key: `t${i}` })])
    const gone = { type: 'deleteDelivery', deliveryId: randomUUID() }
    add(`/resources/actors/order/KEPT-${i}`, [apply({ type: 'addTag', key: 'no' }, gone)])
    add('/resources/actors/order/new', [create({ orderNumber: `KEPT-${i}` })])
  }
  return all
}

function run(
  script: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ code: number | string; text: string }> {
  return new Promise((resolve) => {
    const all = { PATH: process.env['PATH'] ?? '', ...env }
    const options = { env: all, timeout: 120_000 }
    execFile(process.execPath, [join(CLI, script), ...args], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? 'killed'), text: stdout + stderr })
    })
  })
}

const engines = await sharedEngines()
const skip = 'skipped' in engines ? engines.skipped : false
t.test('an embedded store becomes a cluster', { skip, timeout: 240_000 }, async (t) => {
  if ('skipped' in engines) return
  const keyspace = `t${randomUUID().replaceAll('-', '')}`
  const settings = {
    KONTOR_STORAGE_DRIVER: 'cluster',
    KONTOR_CASSANDRA_CONTACT_POINTS: `127.0.0.1:${engines.cassandra.port}`,
    KONTOR_CASSANDRA_KEYSPACE: keyspace,
    KONTOR_CASSANDRA_DATACENTER: 'datacenter1',
    KONTOR_ELASTICSEARCH_URL: `http://127.0.0.1:${engines.elasticsearch.port}`,
    KONTOR_ELASTICSEARCH_PREFIX: `${keyspace}-`,
    KONTOR_REDIS_URL: `redis://127.0.0.1:${engines.redis.port}`,
  }
  const before = new NodeProcess({ KONTOR_SHARDS: '8' })
  t.teardown(() => before.clear())
  await before.start()
  const sent = requests()
  const first: string[] = []
  for (const request of sent) first.push(said(await send(before, request)))
  t.ok(
    first.some((text) => text.startsWith('200')) && first.some((text) => !text.startsWith('200')),
  )
  const orders: string[] = []
  for (let i = 0; i < ORDERS; i++) orders.push((await smallOrder(before)).orderId)
  const entry = '/resources/registry/moved/here'
  const put = await before.ask(entry, { body: { a: 1 } })
  t.ok(put.status < 300, put.text)
  const value = (await before.ask(entry)).json()
  const shown = await Promise.all(orders.map((id) => wholeOrder(before, id)))
  // What was acknowledged last is in the log alone.
  await before.kill()

  const wrong = await run('move.ts', ['--data', before.dir], {})
  t.equal(wrong.code, 78, 'without settings')
  t.match(wrong.text, /KONTOR_CASSANDRA_CONTACT_POINTS: not set/)
  const none = await run('move.ts', ['--data', join(before.dir, 'none'), '--x'], settings)
  t.equal(none.code, 64)
  const moved = await run('move.ts', ['--data', before.dir], settings)
  t.equal(moved.code, 0, moved.text)
  t.match(moved.text, /derived rows and \d+ groups with \d+ entries are in the keyspace/)
  const again = await run('move.ts', ['--data', before.dir], settings)
  t.equal(again.code, 1)
  t.match(again.text, /its store was moved to the keyspace \w+ at /)

  before.launch()
  t.not(await before.ended(), 0, 'no node starts on what was moved')
  t.match(before.output, /its store was moved to the keyspace \w+ at /)

  const after = new NodeProcess({ ...settings, KONTOR_MEMBER_ID: 'a' })
  t.teardown(() => after.clear())
  await after.start()
  for (const [i, request] of sent.entries()) {
    t.equal(said(await send(after, request)), first[i], `${request.path} once more`)
  }
  for (const [i, id] of orders.entries()) t.same(await wholeOrder(after, id), shown[i])
  t.same((await after.ask(entry)).json(), value)
  const taken = await after.order('new', [create({ orderNumber: 'KEPT-3' })])
  t.equal(taken.status, 409, 'a number stays taken')
  const fresh = await smallOrder(after)
  t.ok(fresh.orderId, 'and business goes on')
  await until('all orders are in the graph', async () => {
    const node = { fields: ['orderNumber'] }
    const answer = await after.ask('/resources/graph', {
      body: [{ edge: 'orders', limit: 1_000, node }],
    })
    if (answer.status !== 200) return false
    return answer.json<{ orders: readonly unknown[] }>().orders.length === ORDERS + 17
  })
  t.equal(await after.stop(), 0)
  const verified = await run('verify-log.ts', [], settings)
  t.equal(verified.code, 0, verified.text)
})
