// Answers to what was refused under an idempotency key: they name each message as it was sent, and
// show whose actor it is to nobody who may do nothing with it. The stations over a member with its
// journal in memory. Source: CONTRACT 0 "Idempotency".

import t from 'tap'
import { append, codes, idOf, open, post, start } from './testing/posting.ts'

t.test('what was refused is named as it was sent, also when its answer was kept', async (t) => {
  let world = await start()
  const id = await open(world)
  const body = [append('a'), { type: 'renumber', body: { number: 'N' } }, { type: 'unheard' }]
  for (const isBulk of [false, true]) {
    const sent = { id, body, may: ['append', 'unheard'], key: `k-${isBulk}`, isBulk }
    for (let times = 0; times < 2; times++) {
      const answer = await post(world, sent)
      t.same(codes(answer), ['done', 'UNAUTHORIZED_MESSAGE', 'INVALID_MESSAGE_BODY'])
      t.same(
        answer.results.map(({ type }) => type),
        ['append', 'renumber', 'unheard'],
      )
      world = await world.restart()
    }
  }
})

t.test('another body under a key shows the actor to those alone who may ask it', async (t) => {
  const world = await start()
  const id = await open(world)
  for (const isBulk of [false, true]) {
    const key = `k-${isBulk}`
    const sent = { id, key, isBulk }
    await post(world, { ...sent, body: [append('a')], may: ['append'] })
    const other = { ...sent, body: [append('b')] }
    const known = await post(world, { ...other, may: ['append'] })
    t.same(codes(known), ['IDEMPOTENCY_MISMATCH'])
    t.equal(idOf(known), id)
    const stranger = await post(world, { ...other, may: ['renumber'] })
    t.same(codes(stranger), ['IDEMPOTENCY_MISMATCH'])
    t.equal(stranger.results[0]!.type, 'append')
    t.same(stranger.paths, [])
  }
})
