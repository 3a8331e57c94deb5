// A data directory that lost something: the start is refused and says what, where and the ways
// back; `--accept-loss` goes on without what is lost, and the graph goes with it. Source: PROTOCOL
// 3.16, README "Operations".

import t from 'tap'
import type { Test } from 'tap'
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { done } from '../harness/answers.ts'
import { NodeProcess, startNode } from '../harness/node-process.ts'
import { create, query } from '../harness/orders.ts'

const DATA_FILE = 'data.mdb'
// A dozen nodes are started, on a machine that may be busy with other tests.
t.setTimeout(120_000)

const EXIT_DATA = 65
const ORDERS = 40

const numberOf = (i: number): string => `DAMAGE-${String(i).padStart(3, '0')}`

async function fill(node: NodeProcess): Promise<void> {
  for (let i = 0; i < ORDERS; i++) {
    done(t, await node.order('new', [create({ orderNumber: numberOf(i) })]))
  }
}

/** What a start on such a directory says; fails when it serves. */
async function refusal(t: Test, node: NodeProcess, args: readonly string[] = []): Promise<string> {
  node.launch(args)
  const code = await node.ended()
  t.equal(code, EXIT_DATA, node.output)
  t.notMatch(node.output, /is up at/)
  return node.output
}

/** A node on a copy of another's directory. */
function copyOf(t: Test, { dir }: NodeProcess): NodeProcess {
  const copy = mkdtempSync(join(tmpdir(), 'kontor-copy-'))
  t.teardown(() => rmSync(copy, { recursive: true, force: true }))
  cpSync(dir, copy, { recursive: true })
  const node = new NodeProcess({}, copy)
  t.teardown(() => node.clear())
  return node
}

/** The segment files, the newest first. */
function segmentsOf({ dir }: NodeProcess): string[] {
  const names = readdirSync(join(dir, 'log')).filter((name) => name.endsWith('.seg'))
  return names
    .sort()
    .reverse()
    .map((name) => join(dir, 'log', name))
}

t.test('a log cut short or gone is refused', async (t) => {
  const node = await startNode(t)
  await fill(node)
  await node.stop()
  for (const cut of [4_096, null]) {
    const copy = copyOf(t, node)
    const file = segmentsOf(copy)[0]!
    if (cut === null) rmSync(file)
    else truncateSync(file, cut)
    const said = await refusal(t, copy)
    t.match(said, file, 'the file')
    t.match(said, /position \d+/, 'the place')
    t.match(said, /Ways? back: .*backup/, 'and the way back')
    if (cut !== null) t.equal(statSync(file).size, cut, 'nothing was changed')
  }
  const copy = copyOf(t, node)
  rmSync(join(copy.dir, 'log'), { recursive: true })
  t.match(await refusal(t, copy), /backup/, 'a log that is gone is no new store')
})

t.test('what is derived from the log is made anew', async (t) => {
  const node = await startNode(t)
  await fill(node)
  const last = await node.order('new', [create()])
  const count = [{ edge: 'orders', count: true }]
  t.strictSame(await node.graph(count, last), { orders: ORDERS + 1 })
  await node.stop()
  const { size } = statSync(join(node.dir, DATA_FILE))
  for (const cut of [null, Math.floor(size / 2)]) {
    const file = join(node.dir, DATA_FILE)
    if (cut === null) rmSync(file)
    else truncateSync(file, cut)
    await node.start()
    for (const i of [0, ORDERS - 1]) done(t, await node.order(numberOf(i), [query('orderNumber')]))
    t.strictSame(await node.graph(count, last), { orders: ORDERS + 1 }, `cut at ${cut}`)
    await node.stop()
  }
})

/** Flips a bit where the text stands in the newest file of the log that has it. */
function flip(node: NodeProcess, text: string): string {
  for (const file of segmentsOf(node)) {
    const bytes = readFileSync(file)
    const place = bytes.indexOf(text)
    if (place < 0) continue
    bytes[place + 3]! ^= 0x04
    writeFileSync(file, bytes)
    return file
  }
  throw new Error(`${text} is in no file of the log`)
}

t.test('a damaged log: refused with its place, then gone on without it', async (t) => {
  const node = await startNode(t)
  await fill(node)
  // Killed at once, so that the log is still needed to go on.
  await node.kill()
  const file = flip(node, numberOf(ORDERS - 1))
  const said = await refusal(t, node)
  const found = /shard (\d+) from offset (\d+) on.*--accept-loss (\d+:\d+)/s.exec(said)
  if (found === null) throw new Error(said)
  const [, shard, offset, loss] = found as unknown as [string, string, string, string]
  t.equal(loss, `${shard}:${Number(offset) - 1}`)
  t.match(said, file)
  t.match(said, /restore the data directory from a backup/)

  const elsewhere = await refusal(t, node, ['--accept-loss', `${shard}:${Number(offset) + 5}`])
  t.match(elsewhere, `--accept-loss ${loss}`, 'only what was named is given up')

  await node.start(['--accept-loss', loss])
  const there: string[] = []
  for (let i = 0; i < ORDERS; i++) {
    const answer = await node.order(numberOf(i), [query('orderNumber')])
    if (answer.status === 200) there.push(numberOf(i))
    else if (answer.status !== 404) t.fail(`${answer.status} ${answer.text}`)
  }
  t.ok(there.length < ORDERS && there.length >= ORDERS - 5, `${there.length} of ${ORDERS}`)
  t.notOk(there.includes(numberOf(ORDERS - 1)), 'what was damaged is gone')
  const graph = [{ edge: 'orders', orderBy: 'orderNumber', node: { fields: ['orderNumber'] } }]
  const shown = there.map((orderNumber) => ({ orderNumber }))
  t.strictSame(await node.graph(graph), { orders: shown }, 'the graph shows what there is')

  const again = await node.order('new', [create({ orderNumber: numberOf(ORDERS - 1) })])
  done(t, again)
  shown.push({ orderNumber: numberOf(ORDERS - 1) })
  t.strictSame(await node.graph(graph, again), { orders: shown }, 'it can be made again')
  await node.stop()
  await node.start()
  t.strictSame(await node.graph(graph, again), { orders: shown }, 'and stays')
})
