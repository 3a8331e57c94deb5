// Starts that end on their way while they take places from the log: the next one goes on from
// there, over what was given up too. Source: PROTOCOL 3.16.

import { join } from 'node:path'
import t from 'tap'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { readManifest } from '../../segment-log/manifest.ts'
import { NodeDisk } from '../../segment-log/node-disk.ts'
import { ShardHeads } from '../../segment-log/shard-heads.ts'
import { catchUp } from './catch-up.ts'
import { openEnvironment } from '../../lmdb/environment.ts'
import { readIdentity } from './identity.ts'
import { LOG_FOLDER, openEmbeddedJournal } from './journal.ts'
import { damageOf, filledStore, flipText, smallSegments } from '../testing/damaged-store.ts'
import { journalOptions } from '../testing/journal-options.ts'
import { shardsOf } from '../store-shards.ts'

t.setTimeout(120_000)

t.test('a start goes on from wherever the one before it ended', async (t) => {
  t.teardown(overrideLimits({ 'embedded.catchUpGroups': 1 }))
  const { dir, groups } = await filledStore(t, { starts: 1, segmentBytes: 65_536 })
  // Behind it are groups of its shard, which are given up with it, and of the other one.
  const lost = groups[5]!
  flipText(dir, lost.text, 3)
  const { message } = await damageOf(smallSegments(dir))
  const [, shard, offset] = /--accept-loss (\d+):(\d+)/.exec(message)!.map(Number)
  const acceptLoss = [{ shard: shard!, offset: offset! }]
  const journal = await openEmbeddedJournal({ ...smallSegments(dir), acceptLoss })
  const identity = readIdentity(dir)!
  const statuses = await Promise.all(
    [...shardsOf(identity)].map(async (one) => [one, await journal.log.status(one)] as const),
  )
  await journal.close()
  const disk = new NodeDisk(join(dir, LOG_FOLDER))
  const { last, end } = readManifest(disk, identity.log)!
  const until = { file: last, position: end! }

  /** What the data file has after a start that ended behind so many steps, and the next one. */
  const rowsBehind = async (steps: number) => {
    const env = openEnvironment(journalOptions(t).dir, false)
    let done = 0
    const limited = { left: () => (done++ < steps ? Infinity : 0) }
    const options = { env, disk, identity, until, heads: new ShardHeads(statuses) }
    const ended = await catchUp({ ...options, room: limited }).catch((error: unknown) => error)
    if (ended !== undefined) {
      t.match(ended, { message: /bytes are left on the disk/ })
      await catchUp({ ...options, room: { left: () => Infinity } })
    }
    const tables = [env.log, env.heads, env.meta].map((table) =>
      [...table.getRange({})].map(({ key, value }) =>
        [key, value].map((bytes) => Buffer.from(bytes).toString('hex')).join(' '),
      ),
    )
    await env.root.close()
    return { tables, done }
  }
  const whole = await rowsBehind(Infinity)
  t.ok(whole.tables[0]!.length > 10)
  t.ok(whole.done > 10, `${whole.done} steps`)
  for (let steps = 0; steps < whole.done; steps++) {
    const { tables } = await rowsBehind(steps)
    t.same(tables, whole.tables, `ended behind ${steps} steps`)
  }
})
