// Times of an actor's entries never fall, whatever the wall clock of its owner does: by them a
// checkpoint is named and an actor's past is shown. Nor does the clock of a shard, by which marks
// end, from one owner to the next (PROTOCOL 3.0, 3.6).

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import { decodeEntry, splitEntries } from '../../protocol/entry/entry.ts'
import { Scene, code, data } from './testing/scene.ts'

t.test('what is done, refused or given up while the clock is set back', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  scene.clock.nowMs = () => 5
  const refused = { token: 'b', unless: 'a' }
  t.equal(code(await scene.run(scene.ask(id, { say: [['append', { token: 'a' }]] }))), 'success')
  t.equal(code(await scene.run(scene.ask(id, { say: [['append', refused]] }))), 'INVALID_STATE')
  const killing = {
    say: [['append', { token: 'c' }]] as const,
    crashes: LIMITS.sharding.crashesMax,
  }
  t.equal(code(await scene.run(scene.ask(id, killing))), 'POISONED')
  const rows = await scene.journal.log.read(0, 0, 9e9)
  const times = rows.flatMap((row) => splitEntries(row.body).map((one) => decodeEntry(one).t))
  t.equal(times.length, 4)
  t.ok(times[0]! > 5)
  t.same(new Set(times).size, 1, 'each is that of the entry before')
})

t.test('... and behind a snapshot, at the next owner', async (t) => {
  overrideLimits({ 'sharding.snapshotEntriesMin': 2, 'sharding.snapshotEntryBytesMin': 1 })
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const append = (token: string) => scene.run(scene.ask(id, { say: [['append', { token }]] }))
  await append('a')
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  t.ok(await scene.journal.derived.snapshot(id))
  await scene.restart()
  scene.clock.nowMs = () => 5
  t.equal(data(await append('b')), 3)
  const [first, , last] = (await scene.journal.log.read(0, 0, 9e9)).map((row) => {
    return decodeEntry(splitEntries(row.body)[0]!).t
  })
  t.ok(last! >= first!)
})

t.test('the clock of a shard goes on from the newest entry of its tail', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.clock.advance(3_600_000)
  scene.journal.hooks.beforeWrite = () => 'unknown'
  await scene.run(scene.ask(id, { say: [['append', { token: 'a' }]] }))
  t.ok(scene.shard.clockMs() >= 3_600_000)
  const next = await scene.restart()
  t.ok(next.clockMs() >= 3_600_000, `${next.clockMs()} ms`)
})
