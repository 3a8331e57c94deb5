// Room that the log gives back: what has had its time is gone, everywhere, and everything else is
// there to the byte, at its offset and with its actor, whatever was rewritten, killed, restarted,
// copied or made anew between. Source: PROTOCOL 3.12 "What expires", 3.16.

import { cpSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { backUp } from '../backup.ts'
import { readIdentity, writeIdentity } from '../journal/identity.ts'
import { EmbeddedDerivedReader, EmbeddedLogReader } from '../journal/read.ts'
import { copyLog } from './copy.ts'
import { LogTail } from '../../segment-log/tail.ts'
import type { Place } from '../../segment-log/frame.ts'
import { segmentDamage } from '../../segment-log/header.ts'
import { NodeDisk } from '../../segment-log/node-disk.ts'
import { PlaceReader } from '../../segment-log/place-reader.ts'
import { SwitchedDisk } from '../testing/switched-disk.ts'
import { DATA_FILE, openEnvironment } from '../../lmdb/environment.ts'
import { LOG_FOLDER, openEmbeddedJournalReader } from '../journal/journal.ts'
import { journalOptions } from '../testing/journal-options.ts'
import {
  findings,
  HOUR_MS,
  EXPIRY_MS,
  restored,
  smallSteps,
  World,
} from '../testing/upkeep-world.ts'

const { erasedEntriesMax } = LIMITS.embedded
const NO_STATUS = { epoch: 0, head: 0, lastCommit: null }
smallSteps(t)
t.setTimeout(600_000)

for (let seed = 1; seed <= 5; seed++) {
  t.test(`what was written is there, and what had its time is gone: seed ${seed}`, async (t) => {
    const world = new World(t, seed)
    if (seed > 3) world.mortals = 0.7
    await world.open()
    const { dir } = world.options
    const backup = join(journalOptions(t).dir, 'backup')
    for (let step = 0; step < 60; step++) {
      const what = world.draw()
      if (what < 0.55) for (let i = 0; i < 12; i++) await world.append(step % 20 < 10 ? 0.8 : 0.1)
      else if (what < 0.7) world.clock += Math.floor(world.draw() * 40) * HOUR_MS
      else if (what < 0.75) await world.giveBack()
      else if (what < 0.8) await world.giveBackWithKills()
      else if (what < 0.85) await world.giveBackInPart()
      else if (what < 0.87) await world.loseDataFile()
      else if (what < 0.91) await world.reopen()
      else if (what < 0.95) {
        await backUp({ from: dir, to: backup, pause: () => turn() })
        await restored(world, backup)
      } else {
        await world.journal.close()
        t.strictSame(await findings(dir), [])
        await world.open()
      }
      await world.check()
    }
    world.clock += 2 * EXPIRY_MS
    await world.reopen()
    await world.giveBack()
    const gone = await world.check()
    t.ok(gone > 50, `${gone} entries are gone`)
    t.ok(world.freed.bytes > 10_000, `${world.freed.bytes} bytes of ${world.freed.files} files`)
    await backUp({ from: dir, to: backup, pause: () => turn() })
    t.ok((await restored(world, backup)) >= gone, 'and from a backup that is made again')
    await world.journal.close()
    t.strictSame(await findings(dir), [])
  })
}

t.test('another thread reads on, whatever it has in hand', async (t) => {
  const world = new World(t, 77)
  await world.open()
  const reader = openEmbeddedJournalReader(world.journal.access)
  for (let i = 0; i < 60; i++) await world.append(0.6)
  await world.check(reader as never)
  world.clock += EXPIRY_MS
  let steps = 0
  const checks: Promise<unknown>[] = []
  world.onPause = () => {
    if (steps++ % 5 === 0) checks.push(world.check(reader as never))
  }
  await world.giveBack()
  world.onPause = () => {}
  t.ok(world.freed.files > 1 && checks.length > 10, `${checks.length} looks`)
  await Promise.all(checks)
  t.equal(await world.check(reader as never), await world.check())
  await reader.close()
  await world.journal.close()
})

t.test('what is cut between the look and the read is looked up again', async (t) => {
  const world = new World(t, 78)
  await world.open()
  for (let i = 0; i < 10; i++) await world.append(0.5)
  const { log: generation } = readIdentity(world.options.dir)!
  await world.journal.close()
  const env = openEnvironment(world.options.dir, true)
  const disk = new NodeDisk(join(world.options.dir, LOG_FOLDER))
  const places = new PlaceReader(disk)
  let [reads, renewed] = [0, 0]
  const cut = {
    read(place: Place): Buffer {
      if (reads++ % 2 === 0) throw segmentDamage(disk, { ...place, what: generation })
      return places.read(place)
    },
  } as PlaceReader
  const source = { env, places: cut, tail: () => new LogTail(), status: () => NO_STATUS }
  const log = new EmbeddedLogReader({ ...source, renew: () => void renewed++ })
  t.equal(log.read(0, 0, 1).length, 1)
  t.equal(renewed, 1)
  const [actorId] = world.written.map((one) => one.actorId)
  const derived = new EmbeddedDerivedReader(env, cut)
  const range = { order: 'ascending', after: 0, bytesMax: 1 } as const
  t.equal(derived.entries(actorId!, range).length, 1)
  places.read = () => {
    throw segmentDamage(disk, { file: 1, position: 0, what: 'it stays wrong' })
  }
  t.throws(() => log.read(0, 0, 1), { name: 'JournalDamage' })
  places.close()
  await env.root.close()
})

t.test('room is given back while a backup is made, at each of its steps', async (t) => {
  const world = new World(t, 31)
  await world.open()
  for (let i = 0; i < 50; i++) await world.append(0.7)
  world.clock += EXPIRY_MS
  await world.reopen()
  const before = journalOptions(t).dir
  cpSync(join(world.options.dir, LOG_FOLDER), before, { recursive: true })
  await world.giveBack()
  await world.journal.close()
  const { dir } = world.options
  let [looks, copies] = [0, 0]
  for (let at = 1; at < 2_000; at++) {
    const source = new SwitchedDisk(before, join(dir, LOG_FOLDER), at)
    const to = journalOptions(t).dir
    await copyLog({
      source,
      identity: () => readIdentity(dir)!,
      folder: join(to, LOG_FOLDER),
      incoming: join(to, 'log.new'),
      keep: (identity) => writeIdentity(to, identity),
      pause: async () => void looks++,
    })
    copies++
    if (at % 20 === 1) t.ok((await restored(world, to)) >= 0)
    t.strictSame(await findings(to), [])
    if (!source.isSwitched) break
  }
  t.ok(copies > 50 && looks > 10, `${copies} backups, ${looks} began again`)
})

t.test('a file with places that are still handed out stays until they are not', async (t) => {
  overrideLimits({ 'lmdb.tailTransactions': 3 })
  t.teardown(() => void overrideLimits({ 'lmdb.tailTransactions': 0 }))
  const world = new World(t, 5, [4_096])
  await world.open()
  for (let i = 0; i < 60; i++) {
    await world.append(0.8)
    world.clock += EXPIRY_MS
    await world.giveBack()
    // Written again, as by an owner that has not heard that it was in.
    for (const one of world.written.slice(-20).filter(({ passesAt }) => passesAt === null)) {
      const epoch = await world.journal.log.epochNow(one.shard)
      await world.journal.derived.write(one.shard, epoch, [{ kind: 'entry', ...one }])
    }
    await world.check()
  }
  t.ok(world.freed.files > 5, `${world.freed.files} files`)
  await world.journal.close()
  t.strictSame(await findings(world.options.dir), [])
})

t.test('weeks of refusals leave a log that does not grow', async (t) => {
  overrideLimits({ 'embedded.erasedEntriesMax': erasedEntriesMax, 'lmdb.turnRowsMax': 250 })
  const world = new World(t, 5, [16_384, 65_536])
  await world.open()
  const weeks: number[] = []
  const data: number[] = []
  for (let day = 0; day < 7 * 6; day++) {
    for (let hour = 0; hour < 24; hour += 12) {
      for (let i = 0; i < 15; i++) await world.append(1)
      world.clock += 12 * HOUR_MS
      await world.giveBack()
    }
    if (day % 7 === 6) {
      weeks.push(world.logBytes())
      data.push(statSync(join(world.options.dir, DATA_FILE)).size)
      await world.reopen()
    }
  }
  await world.check()
  const written = world.written.reduce((sum, { body }) => sum + body.length, 0)
  t.comment(`${weeks.join(', ')} bytes of ${written} written, ${data.join(', ')} of rows`)
  t.ok(weeks.at(-1)! < 1.1 * weeks[1]!, 'the sixth week is as the second')
  t.ok(data.at(-1)! <= 1.1 * data[1]!, 'and its places')
  await world.journal.close()
})
