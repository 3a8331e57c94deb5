// What other shards have sent an actor it knows by their places for good, also where its snapshot
// alone says so and the marks of these messages have ended long ago (PROTOCOL 3.6 "Outbox").

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import { Scene, code } from './testing/scene.ts'

overrideLimits({ 'sharding.snapshotEntriesMin': 2, 'sharding.snapshotEntryBytesMin': 1 })

t.test('an effect that comes again behind a snapshot has been taken', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const relayed = (offset: number) => {
    const say = [['append', { token: `${offset}` }]] as const
    return scene.run(scene.tell(scene.envelope(id, { say, relay: [3, offset, 0] })))
  }
  t.equal(code(await relayed(7)), 'success')
  await scene.clock.advance(LIMITS.storage.edgeMarkMs * 2)
  t.ok(await scene.journal.derived.snapshot(id))
  await scene.restart()
  t.equal(code(await relayed(7)), 'success', 'its source is told that it was taken')
  t.same(await scene.tokens(id), ['first', '7'])
  t.equal(code(await relayed(8)), 'success')
  t.same(await scene.tokens(id), ['first', '7', '8'])
})
