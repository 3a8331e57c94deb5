// `npm run rebuild-index` against a node, embedded or of a cluster: the index is made anew while
// orders are written and read, and what it says and returns is right. Source: CONTRACT 0
// "Operations", PROTOCOL 3.13.5.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import t from 'tap'
import { freePort } from '../../tools/engines/server-process.mjs'
import { SECRET, startNode } from '../harness/node-process.ts'
import { apply, smallOrder } from '../harness/orders.ts'

const PROGRAM = join(import.meta.dirname, '../../cli/rebuild-index.ts')
const ENV = { KONTOR_BOOTSTRAP_SECRET: SECRET }

interface Ended {
  readonly code: number
  readonly out: string
  readonly errors: string
}

async function rebuild(args: readonly string[], env: Record<string, string> = ENV): Promise<Ended> {
  const child = spawn(process.execPath, ['--no-warnings', PROGRAM, ...args], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, errors] = ['', '']
  child.stdout.on('data', (bytes: Buffer) => void (out += bytes.toString()))
  child.stderr.on('data', (bytes: Buffer) => void (errors += bytes.toString()))
  const [code] = (await once(child, 'close')) as [number]
  return { code, out, errors }
}

const node = await startNode(t)
const url = `http://127.0.0.1:${node.port}`

t.test('it is made anew while orders are written and read', async (t) => {
  const first = await smallOrder(node)
  let hasEnded = false
  const running = rebuild(['--url', url]).finally(() => (hasEnded = true))
  let orders = 0
  do {
    const { orderId } = await smallOrder(node)
    const answer = await node.order(orderId, [apply({ type: 'addTag', key: 'seen' })])
    const body = [{ edge: 'orders', filter: `orderId == '${orderId}'`, count: true }]
    t.strictSame(await node.graph(body, answer), { orders: 1 })
    orders++
    // eslint-disable-next-line no-unmodified-loop-condition -- it ends beside the loop
  } while (!hasEnded)
  const { code, out, errors } = await running
  t.equal(code, 0, errors)
  t.match(out, /^The graph index is made anew: \d+\.\d s\.\n$/)
  t.match(errors, /^(filling|taking-over): [\d,]+ of [\d,]+ entries, \d+ %, \d+ s\n/)
  const filter = `orderId == '${first.orderId}'`
  t.strictSame(await node.graph([{ edge: 'orders', filter, count: true }]), { orders: 1 })
  t.comment(`${orders} orders meanwhile`)
  t.match(await rebuild(['--url', url, '--status']), { code: 0, out: /is not being made anew/ })
  t.match(await rebuild(['--url', url, '--no-wait']), { code: 0, out: /is being made anew/ })
  t.match(await rebuild(['--url', url, '--status']), { code: 0 }, 'it is waited for')
})

t.test('what is wrong is said, with a code', async (t) => {
  const wrong = await rebuild(['--url', 'ftp://x', '--retry-seconds', '0', '--client-id', 'x'])
  t.equal(wrong.code, 2)
  t.match(wrong.errors, /--url ftp:.*--retry-seconds 0.*--client-secret both.*usage:/s)
  t.match(await rebuild(['--what']), { code: 2, errors: /--what/ })
  t.match(await rebuild(['--status', '--no-wait']), { code: 2, errors: /leave out --no-wait/ })
  t.match(await rebuild(['--help']), { code: 0, out: /^usage: npm run rebuild-index/ })
  const nobody = await rebuild(['--url', url], { KONTOR_DATA_DIR: t.testdir({}) })
  t.match(nobody, { code: 2, errors: /no credentials.*bootstrap\.json/ })
  const args = ['--url', url, '--client-id', 'bootstrap', '--client-secret', 'not-this-one-at-all']
  t.match(await rebuild(args), { code: 1, errors: /gives no token to client bootstrap: 401/ })
  const away = ['--url', `http://127.0.0.1:${await freePort()}`, '--retry-seconds', '1']
  t.match(await rebuild(away), { code: 1, errors: /ECONNREFUSED.*trying again/ })
})
