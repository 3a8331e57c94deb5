// A disk that is full, in earnest (a small file system in memory): writes are refused with 507 and
// nothing is done, reads and the graph go on, and with room again so do writes; what was
// acknowledged is there after a restart. Source: CONTRACT 1.13 (STORAGE_FULL), PROTOCOL 3.16, F21.

import t from 'tap'
import type { Test } from 'tap'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LIMITS } from '../../config/limits.ts'
import { done, refused } from '../harness/answers.ts'
import { NodeProcess } from '../harness/node-process.ts'
import type { Answer } from '../harness/node-process.ts'
import { create, query } from '../harness/orders.ts'
import type { Message } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'

const MiB = 1024 * 1024
/** Taken away at first, and given back. */
const BALLAST_MIB = 96
/** What the store has for its data, beside what it keeps back, until then. */
const ROOM_MIB = 32
const KEPT_BACK_MIB = LIMITS.lmdb.roomBytes / MiB
const DISK_MIB = KEPT_BACK_MIB + ROOM_MIB + BALLAST_MIB

/** A folder on a small disk of its own, or null where none can be made. */
function smallDisk(t: Test): string | null {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-disk-'))
  const options = ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', dir]
  if (spawnSync('mount', options).status !== 0) {
    rmSync(dir, { recursive: true })
    return null
  }
  t.teardown(() => {
    execFileSync('umount', ['--lazy', dir])
    rmSync(dir, { recursive: true })
  })
  return dir
}

/** An order of some 300 KB. */
const large = (orderNumber: string): Message =>
  create(
    { orderNumber },
    ...Array.from({ length: 6 }, (_, i) => ({
      type: 'setDynamicFields',
      fields: { [`k${i}`]: `${orderNumber} `.repeat(3_000) },
    })),
  )

t.test('a full disk', async (t) => {
  const disk = smallDisk(t)
  if (disk === null) {
    if (process.env['CI'] === 'true') t.fail('no small disk can be mounted here')
    t.comment('skipped: only root may mount a small disk')
    return
  }
  const ballast = join(disk, 'ballast')
  writeFileSync(ballast, Buffer.alloc(BALLAST_MIB * MiB, 1))
  const dir = join(disk, 'data')
  mkdirSync(dir)
  const node = new NodeProcess({}, dir)
  t.teardown(() => node.clear())
  await node.start()

  const kept: string[] = []
  const fill = async (name: string, order: (orderNumber: string) => Message): Promise<Answer> => {
    for (let i = 0; i < 2_000; i++) {
      const answer = await node.order('new', [order(`${name}-${i}`)])
      if (answer.status !== 200) return answer
      kept.push(`${name}-${i}`)
    }
    throw new Error('the disk has no end')
  }
  const first = await node.order('new', [create({ orderNumber: 'FIRST' })])
  kept.push('FIRST')
  t.strictSame(await node.graph([{ edge: 'orders', count: true }], first), { orders: 1 })
  const full = await fill('LARGE', large)
  t.ok(kept.length > 10, `${kept.length} large orders found room`)
  refused(t, full, 'STORAGE_FULL', /disk/)
  // What is left between the large ones.
  const small = (orderNumber: string): Message => create({ orderNumber })
  refused(t, await fill('SMALL', small), 'STORAGE_FULL', /disk/)

  await t.test('while it is full', async (t) => {
    for (const [id, message] of [
      ['new', create()],
      [kept[0]!, { type: 'applyCommands', body: { commands: [{ type: 'addTag', key: 'a' }] } }],
    ] as const) {
      refused(t, await node.order(id, [message]), 'STORAGE_FULL', /\w/)
    }
    const registry = await node.ask('/resources/registry/a', { body: 1 })
    refused(t, registry, 'STORAGE_FULL', /\w/)
    const [line] = (await node.bulk([{ id: 'new', messages: [create()] }])).text.split('\n')
    t.match(JSON.parse(line!), { errors: [{ code: 'STORAGE_FULL' }] })
    for (const id of [kept[0]!, kept.at(-1)!]) {
      t.strictSame(done(t, await node.order(id, [query('orderNumber', 'tags')])).data, {
        orderNumber: id,
        tags: [],
      })
    }
    const others = await node.graph([{ edge: 'orders', filter: `tags anyof ['a']`, count: true }])
    t.strictSame(others, { orders: 0 }, 'nothing of the refused was done')
    const filter = `orderNumber == '${kept[0]}'`
    t.strictSame(await node.graph([{ edge: 'orders', filter, count: true }]), { orders: 1 })
    t.equal((await node.send('/health/live')).status, 200)
  })

  rmSync(ballast)
  await until('writes go on', async () => {
    return (await node.order('new', [create({ orderNumber: 'AGAIN' })])).status === 200
  })
  kept.push('AGAIN')
  for (let i = 0; i < 5; i++) {
    const answer = await node.order('new', [large(`MORE-${i}`)])
    done(t, answer)
    kept.push(`MORE-${i}`)
  }
  await everythingIsThere(t, node, kept)
  await node.kill()
  await node.start()
  await everythingIsThere(t, node, kept)
})

/** Every order that was acknowledged, by its actor and in the graph, and no other. */
async function everythingIsThere(t: Test, node: NodeProcess, kept: readonly string[]) {
  for (const number of kept) {
    const { data } = done(t, await node.order(number, [query('orderNumber')]))
    if ((data as { orderNumber: string }).orderNumber !== number) t.fail(number)
  }
  const body = [
    { edge: 'orders', orderBy: 'orderNumber', limit: 1000, node: { fields: ['orderNumber'] } },
  ]
  const wanted = [...kept].sort().map((orderNumber) => ({ orderNumber }))
  const shown = async (): Promise<string> => JSON.stringify(await node.graph(body))
  await until('the graph has all', async () => {
    return (await shown()) === JSON.stringify({ orders: wanted })
  })
  t.equal(await node.metric('kontor_index_parked_actors'), 0)
}
