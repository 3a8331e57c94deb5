// A real node of the bench's own, ended in both ways: what it acknowledged is there again, and its
// processes' CPU is counted together.

import t from 'tap'
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { benchOrder, createMessages } from '../orders.ts'
import { diskUsage } from './disk-usage.ts'
import { Installation } from './installation.ts'
import { OwnNode } from './own-node.ts'

/** A node starts three times; each does so in a second where nothing else runs. */
const MS_MAX = 120_000

t.setTimeout(MS_MAX)

t.test('a node that is stopped and killed has its orders again', { timeout: MS_MAX }, async (t) => {
  const installation = await Installation.start('own-node-test')
  t.teardown(() => installation.stop())
  await installation.post('/resources/actors/order/new', createMessages(benchOrder(1)))
  t.equal(await installation.ordersReach(1, 20_000), 1)
  await installation.indexCaughtUp(20_000)
  let cpuMs = installation.usage()!.cpuMs
  for (const ending of ['stopped', 'killed'] as const) {
    const downtime = await installation.restart(ending)
    t.match(downtime, { ending, endedMs: Number, readyMs: Number })
    t.equal(await installation.ordersReach(1, 20_000), 1)
    t.ok(installation.usage()!.cpuMs > cpuMs)
    cpuMs = installation.usage()!.cpuMs
  }
  const disk = installation.disk()!
  t.ok(disk.log > 0 && disk.graph > 0)
})

t.test('what it wrote is removed with it', async (t) => {
  const node = await OwnNode.start('own-node-test')
  t.not(diskUsage(node.dataDir), null)
  await node.remove()
  t.equal(node.usage(), null)
  t.notOk(existsSync(dirname(node.dataDir)))
})
