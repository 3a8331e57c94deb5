// kill -9 while the graph index is made anew: the fill is gone on with, or begun anew, until it is
// done, and nothing is missing; who waits for it by `npm run rebuild-index` waits on. Source:
// PROTOCOL 3.13.5.

import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { freePort } from '../../tools/engines/server-process.mjs'
import { NodeProcess, SECRET } from '../harness/node-process.ts'
import { create, smallOrderCommands } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'

const PROGRAM = join(import.meta.dirname, '../../cli/rebuild-index.ts')
const ORDERS = 600
const PATH = '/resources/cluster/index'

interface Progress {
  readonly state: string
  readonly done: number
  readonly total: number
}

interface Everything {
  readonly orders: number
  readonly orderLines: number
  readonly dear: number
}

const EVERYTHING = [
  { edge: 'orders', count: true },
  { edge: 'orderLines', count: true },
  { edge: 'orders', alias: 'dear', count: true, filter: 'orderTotal == 25' },
]

async function fill(node: NodeProcess, name: string, count: number): Promise<void> {
  const lines = Array.from({ length: count }, (_, i) => {
    const commands = smallOrderCommands(randomUUID(), randomUUID())
    return { id: 'new', messages: [create({ orderNumber: `${name}-${i}` }, ...commands)] }
  })
  const answer = await node.bulk(lines)
  if (answer.status !== 200 || answer.text.includes('"success":false')) throw new Error(answer.text)
}

const progress = async (node: NodeProcess): Promise<Progress> => (await node.ask(PATH)).json()

/** When a fill is cut off. */
const MOMENTS: readonly (readonly [what: string, is: (progress: Progress) => boolean])[] = [
  ['as it begins', () => true],
  ['as it takes over', ({ state }) => state === 'taking-over'],
]

t.test('a fill that is cut off', { timeout: 120_000 }, async (t) => {
  const node = new NodeProcess({ KONTOR_HTTP_PORT: String(await freePort()) })
  t.teardown(() => node.clear())
  await node.start()
  await fill(node, 'K', ORDERS)
  let orders = ORDERS
  let amid = 0
  for (const [what, isNow] of MOMENTS) {
    const args = ['--no-warnings', PROGRAM, '--url', `http://127.0.0.1:${node.port}`, '--status']
    t.equal((await node.ask(PATH, { method: 'POST' })).status, 202)
    let seen = await progress(node)
    await until(what, async () => {
      if (isNow(seen) || seen.state === 'idle') return true
      seen = await progress(node)
      return false
    })
    await node.kill()
    const files = readdirSync(node.dir).filter((name) => /^graph.*\.sqlite$/.test(name))
    t.comment(`${what}: ${JSON.stringify(seen)}, ${files.join(' ')}`)
    if (seen.state !== 'idle') {
      amid++
      t.ok(files.length > 1, 'what was promised is on disk')
    }
    const env = { KONTOR_BOOTSTRAP_SECRET: SECRET, PATH: process.env['PATH'] }
    const waits = spawn(process.execPath, args, { env, stdio: 'ignore' })
    t.teardown(() => waits.kill('SIGKILL'))
    const ended = once(waits, 'exit')
    await node.start()
    await fill(node, what.replaceAll(' ', '-'), 5)
    orders += 5
    t.strictSame(await ended, [0, null], 'who waits for it is told')
    t.equal((await progress(node)).state, 'idle')
    let answer: Everything | null = null
    await until('all are there', async () => {
      answer = await node.graph<Everything>(EVERYTHING)
      return answer.orders === orders
    })
    t.strictSame(answer, { orders, orderLines: orders, dear: orders }, what)
  }
  t.ok(amid > 0, `${amid} of ${MOMENTS.length} were cut off amid a fill`)
})
