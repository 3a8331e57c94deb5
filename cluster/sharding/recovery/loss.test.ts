// Where an operator has accepted the loss of a shard's newest entries its log, and the numbers and
// versions of its actors, go on higher, so that none is given out twice (PROTOCOL 3.16).

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { LOSS_JUMP, decodeEntry } from '../../../protocol/entry/entry.ts'
import { Scene, code } from '../testing/scene.ts'

/** A shard with two actors, of which the second was made last, and another owner behind a loss. */
async function behindLoss(isFlushed: boolean) {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const earlier = await scene.made()
  const last = await scene.made()
  if (isFlushed) await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  else scene.journal.hooks.beforeWrite = () => 'unknown'
  await scene.run(scene.ask(last, { say: [['append', { token: 'second' }]] }))
  if (isFlushed) await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const offset = scene.shard.gate.head
  const resumedAt = offset + LOSS_JUMP
  const { identity, shards } = scene.journal.state
  Object.assign(identity, { losses: [{ shard: 0, offset, resumedAt }] })
  shards.get(0)!.head = resumedAt
  await scene.restart()
  scene.journal.hooks.beforeWrite = undefined
  return { scene, resumedAt, ids: [earlier, last] }
}

for (const isFlushed of [true, false]) {
  const where = isFlushed ? 'with nothing to replay' : 'behind a tail'
  t.test(`the flush offset follows the log over what was lost, ${where}`, async (t) => {
    const { scene, resumedAt } = await behindLoss(isFlushed)
    await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
    t.equal(scene.shard.flusher.flushed, resumedAt)
    t.equal(await scene.journal.derived.consumer(0, 'flush'), resumedAt)
  })

  t.test(`whoever may have lost something jumps, the last one too, ${where}`, async (t) => {
    const { scene, resumedAt, ids } = await behindLoss(isFlushed)
    const append = async (id: string, token: string) =>
      t.equal(code(await scene.run(scene.ask(id, { say: [['append', { token }]] }))), 'success')
    for (const id of ids) await append(id, 'on')
    await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
    for (const id of ids) {
      const range = { order: 'ascending', after: 0, bytesMax: 9e9 } as const
      const rows = await scene.journal.derived.entries(id, range)
      const before = rows.filter(({ offset }) => offset <= resumedAt - LOSS_JUMP)
      const [next] = rows.slice(before.length)
      const { n, v, r } = decodeEntry(before.at(-1)!.body)
      t.match(decodeEntry(next!.body), { n: n + 1 + LOSS_JUMP, v: v + r.length + LOSS_JUMP })
    }
    await scene.restart()
    for (const id of ids) await append(id, 'and on')
    t.same(await scene.tokens(ids[1]!), ['first', 'second', 'on', 'and on'], 'it jumps once')
  })
}

t.test('who was only refused something since has jumped all the same', async (t) => {
  const { scene, ids } = await behindLoss(true)
  const [id] = ids
  const refused = scene.ask(id!, { say: [['append', { token: 'no', unless: 'first' }]] })
  t.equal(code(await scene.run(refused)), 'INVALID_STATE')
  await scene.restart()
  const append = scene.ask(id!, { say: [['append', { token: 'on' }]] })
  t.equal(code(await scene.run(append)), 'success')
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const range = { order: 'ascending', after: 0, bytesMax: 9e9 } as const
  const rows = await scene.journal.derived.entries(id!, range)
  t.equal(decodeEntry(rows.at(-1)!.body).v, 2 + LOSS_JUMP, 'no version is given out twice')
  await scene.restart()
  t.same(await scene.tokens(id!), ['first', 'on'])
})
