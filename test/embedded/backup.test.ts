// Backups of a node under load: every order that was acknowledged before one began is in it, the
// next one copies only what is new, one that is killed is finished by the next, and a node started
// on a copy has the orders, whatever became of the first. Source: PROTOCOL 3.16.

import { spawn } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { atOnce } from '../harness/at-once.ts'
import { Load } from '../harness/load.ts'
import { NodeProcess } from '../harness/node-process.ts'
import { Patience, tick } from '../harness/patience.ts'
import { query } from '../harness/orders.ts'
import { LIMITS_VARIABLE } from '../harness/lowered-limits.ts'

const BACKUP = join(import.meta.dirname, '..', '..', 'cli', 'backup.ts')
const ROUNDS = 3
const WAIT_MS = 60_000

function folder(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-backup-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

interface Ran {
  readonly code: number | null
  readonly said: string
}

function backup(from: string, to: string, killAfterMs?: number): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const args = [BACKUP, '--data', from, '--to', to]
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(killAfterMs !== undefined && { timeout: killAfterMs, killSignal: 'SIGKILL' as const }),
    })
    let said = ''
    child.stdout.on('data', (text) => (said += String(text)))
    child.stderr.on('data', (text) => (said += String(text)))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, said }))
  })
}

/** Starts a node on a copy of the backup and asks it for each of the orders. */
async function checkRestored(t: Test, dir: string, numbers: readonly string[]): Promise<void> {
  const copy = folder(t)
  cpSync(dir, copy, { recursive: true })
  const node = new NodeProcess({}, copy)
  t.teardown(() => node.clear())
  await node.start()
  const missing: string[] = []
  await atOnce(numbers, async (number) => {
    const answer = await node.order(number, [query('orderNumber')])
    if (answer.status !== 200) missing.push(number)
  })
  t.strictSame(missing, [], `${numbers.length} were acknowledged before it began`)
  const patience = new Patience(WAIT_MS)
  for (;;) {
    const { orders } = await node.graph<{ orders: number }>([{ edge: 'orders', count: true }])
    if (orders >= numbers.length) break
    if (patience.isOver()) throw new Error(`the graph has ${orders} of ${numbers.length}`)
    await tick()
  }
  t.equal(await node.stop(), 0)
}

async function until(load: Load, orders: number): Promise<void> {
  const patience = new Patience(WAIT_MS)
  while (load.acknowledged.length < orders && !patience.isOver()) await tick()
}

t.setTimeout(240_000)

t.test('backups of a node under load, a kill, and a node on each of them', async (t) => {
  // So that it goes on to a next file in the middle of it.
  const limits = JSON.stringify({ 'segmentLog.fileBytes': [256 * 1024] })
  const node = new NodeProcess({ [LIMITS_VARIABLE]: limits })
  t.teardown(() => node.clear())
  await node.start()
  const to = folder(t)
  const load = new Load(node, 'B')
  const kept: { dir: string; acknowledged: string[] }[] = []
  let filesBefore = 1
  for (let round = 1; round <= ROUNDS; round++) {
    await until(load, 300 * round)
    // The first ones are killed, wherever they are.
    await backup(node.dir, to, 150 + 100 * round)
    const acknowledged = [...load.acknowledged]
    const { code, said } = await backup(node.dir, to)
    t.equal(code, 0, said)
    const [, files, fresh] = /: (\d+) files .* new are (\d+) of them/.exec(said)!.map(Number)
    t.ok(fresh! <= files! - filesBefore + 1, 'the file that was open, and those behind it')
    filesBefore = files!
    const dir = folder(t)
    cpSync(to, dir, { recursive: true })
    kept.push({ dir, acknowledged })
  }
  await node.kill()
  await load.stop()
  const { code, said } = await backup(node.dir, to)
  t.equal(code, 0, said)
  kept.push({ dir: to, acknowledged: load.acknowledged })
  for (const { dir, acknowledged } of kept) await checkRestored(t, dir, acknowledged)

  // And on from there: what was cut off at the kill is cut in the next one, too.
  await node.start()
  const next = new Load(node, 'C')
  await until(next, 100)
  await node.stop()
  await next.ended()
  const last = await backup(node.dir, to)
  t.equal(last.code, 0, last.said)
  await checkRestored(t, to, [...load.acknowledged, ...next.acknowledged])
})
