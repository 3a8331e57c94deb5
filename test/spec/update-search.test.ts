// `npm run update-search` against a node, embedded or of a cluster: a configured search index is
// waited for, one is made anew, and what it says and returns is right. Source: specification
// "Graph", CONTRACT 1.1 "Search indexes".

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { onCluster } from '../harness/driver.ts'
import { SECRET, startNode } from '../harness/node-process.ts'
import { smallOrder } from '../harness/orders.ts'

const PROGRAM = join(import.meta.dirname, '../../cli/update-search.ts')
const node = await startNode(t)
const url = `http://127.0.0.1:${node.port}`

interface Ended {
  readonly code: number
  readonly out: string
  readonly errors: string
}

async function update(...args: string[]): Promise<Ended> {
  const child = spawn(process.execPath, ['--no-warnings', PROGRAM, '--url', url, ...args], {
    env: { PATH: process.env['PATH'] ?? '', KONTOR_BOOTSTRAP_SECRET: SECRET },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, errors] = ['', '']
  child.stdout.on('data', (bytes: Buffer) => void (out += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => void (errors += bytes.toString()))
  const [code] = (await once(child, 'close')) as [number]
  return { code, out, errors }
}

t.test('what is configured is waited for, and an index is made anew', async (t) => {
  await smallOrder(node)
  const key = '/resources/registry/system/graph/order/search'
  const wrote = await node.ask(key, { body: { fields: [{ field: 'tags' }] } })
  t.equal(wrote.status, 200, wrote.text)
  t.match(await update('order'), { code: 0, out: /^Search of order is up to date: \d+\.\d s\.\n$/ })
  const made = await update('order', '--rebuild')
  t.match(made, { code: 0, out: /up to date/, errors: /^running: \d+ %, \d+ s/ })
  t.match(await update('order', '--status'), { code: 0, out: /is not being updated/ })
  t.match(await update('order', '--no-wait'), { code: 0, out: /is being updated/ })
  const body = { rebuild: true }
  const again = await node.ask('/resources/graph/search/order', { body })
  // Of a cluster each member counts its own minute.
  if (!onCluster) t.match(again, { status: 429, text: /RATE_LIMITED.*made anew just now/ })
})

t.test('what is wrong is said, with a code', async (t) => {
  t.match(await update(), { code: 2, errors: /name one node type.*usage: npm run update-search/s })
  t.match(await update('order', 'delivery'), { code: 2, errors: /name one node type/ })
  t.match(await update('order', '--what'), { code: 2, errors: /--what/ })
  const both = await update('order', '--status', '--rebuild')
  t.match(both, { code: 2, errors: /leave out --rebuild/ })
  t.match(await update('--help'), { code: 0, out: /^usage: npm run update-search/ })
  t.match(await update('ordr'), { code: 1, errors: /404.*did you mean order/ })
})
