// A second node on the directory of a running one: it is refused with a sentence that says who has
// it, and the first one goes on as if nothing had happened; so are the commands that write there.
// Source: PROTOCOL 3.16.

import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { freePort } from '../../tools/engines/server-process.mjs'
import { NodeProcess, startNode } from '../harness/node-process.ts'
import { Load, checkKept } from '../harness/load.ts'
import { until } from '../harness/patience.ts'

const REPAIR = fileURLToPath(new URL('../../cli/verify-log.ts', import.meta.url))

/** What a command prints, and the code that it ends with. */
function run(args: readonly string[]): Promise<{ code: number; said: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, (_error, out, err) => {
      resolve({ code: child.exitCode ?? -1, said: out + err })
    })
  })
}

t.test('a second node on the same directory', async (t) => {
  const first = await startNode(t)
  const load = new Load(first, 'first')
  await until('there is a load', () => load.acknowledged.length > 200)

  const second = new NodeProcess({}, first.dir)
  t.teardown(() => second.kill())
  second.launch()
  await until('the second one ends', () => !second.isUp)
  t.not(second.exitCode, 0, 'it says so by its exit code')
  t.match(second.output, `is in use by process ${first.pid} (a node at http`, 'and by a sentence')

  const repair = await run([REPAIR, '--data', first.dir, '--repair'])
  t.equal(repair.code, 1)
  t.match(repair.said, `is in use by process ${first.pid}`)

  const before = load.acknowledged.length
  await until('the first one goes on', () => load.acknowledged.length > before + 200)
  t.ok(first.isUp)
  await load.stop()
  await checkKept(t, first, [load])
  await first.stop()
  await first.start()
  const { orders } = await first.graph<{ orders: number }>([{ edge: 'orders', count: true }])
  t.ok(orders >= load.acknowledged.length, `${orders} for ${load.acknowledged.length}`)
})

t.test('a second node on the same port has no directory', async (t) => {
  const first = await startNode(t)
  const second = new NodeProcess({ KONTOR_HTTP_PORT: String(first.port) })
  t.teardown(() => second.clear())
  second.launch()
  t.not(await second.ended(), 0)
  t.match(second.output, /can't listen on .*: the port is taken/)
  t.strictSame(readdirSync(second.dir), [], 'it took nothing before it had the port')
  t.equal((await first.send('/health/ready')).status, 200)
})

t.test('a node that starts listens, and stops when it is told', async (t) => {
  const port = await freePort()
  // It waits for an engine that never comes.
  const node = new NodeProcess({
    KONTOR_HTTP_PORT: String(port),
    KONTOR_LOG_LEVEL: 'info',
    KONTOR_STORAGE_DRIVER: 'cluster',
    KONTOR_MEMBER_ID: 'a',
    KONTOR_CASSANDRA_CONTACT_POINTS: '127.0.0.1:1',
    KONTOR_CASSANDRA_DATACENTER: 'none',
    KONTOR_REDIS_URL: 'redis://127.0.0.1:1',
    KONTOR_ELASTICSEARCH_URL: 'http://127.0.0.1:1',
  })
  t.teardown(() => node.clear())
  node.launch()
  node.port = port
  const seen = async (path: string): Promise<number | undefined> =>
    (await node.send(path).catch(() => null))?.status
  await until('it listens', async () => !node.isUp || (await seen('/health/live')) === 200)
  t.ok(node.isUp, node.output)
  t.equal(await seen('/health/ready'), 503)
  t.equal(await seen('/resources/graph'), 503)
  process.kill(node.pid, 'SIGTERM')
  t.equal(await node.ended(), 0, node.output)
  t.match(node.output, /stopping while it starts/)
})
