// When the edge asks again, what it goes on waiting for meanwhile, and what it has kept when nobody
// is left to ask. Source: PROTOCOL 3.6 "Edge".

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { errorItem } from '../../protocol/errors.ts'
import type { MessageResult, Reply, WireReply } from '../../protocol/message.ts'
import { answered, busy, idIn, makeEdge, noKey } from './testing/edge-world.ts'

const TICK_MS = 50
const away: WireReply = { outcome: 'unsent', away: true }
const done: MessageResult = { type: 'append', success: true, data: 1 }
const later: MessageResult = {
  type: 'append',
  success: false,
  errors: [errorItem('UNAVAILABLE', 'the shard of a key is away')],
}

function said(...results: MessageResult[]): Reply & { readonly outcome: 'answered' } {
  const position = { shard: 0, offset: 1 }
  return { outcome: 'answered', actorId: idIn(0), keys: [], results, position }
}

t.test('who has moved, and who could not be reached, is asked again after a while', async (t) => {
  for (const [reply, waitMs] of [
    [{ outcome: 'moved', shard: 0 }, TICK_MS],
    [{ outcome: 'unsent' }, LIMITS.routing.retryMs],
  ] satisfies [WireReply, number][]) {
    const { clock, ask } = makeEdge()
    const { copies } = ask(idIn(0))
    await clock.advance(20)
    copies[0]!.respond(reply)
    await clock.advance(waitMs - 1)
    t.equal(copies.length, 1, 'not before its time')
    await clock.advance(TICK_MS + 1)
    t.equal(copies.length, 2)
  }
})

t.test('how long a silence is normal is learnt from the answers', async (t) => {
  const world = makeEdge()
  const slowMs = LIMITS.routing.retryMs * 4
  for (let i = 0; i < 128; i++) {
    const { copies } = world.ask(idIn(0))
    await world.clock.advance(slowMs)
    copies[0]!.respond(answered)
  }
  const { copies } = world.ask(idIn(0))
  await world.clock.advance(4 * slowMs - TICK_MS)
  t.equal(copies.length, 1)
  await world.clock.advance(2 * TICK_MS)
  t.equal(copies.length, 2)
})

t.test('one timer for all that wait, and none when nobody does', async (t) => {
  const world = makeEdge()
  const asked = Array.from({ length: 5 }, () => world.ask(idIn(0)))
  t.equal(world.clock.timers, 1)
  await world.clock.advance(3 * TICK_MS)
  t.equal(world.clock.timers, 1)
  for (const { copies } of asked) copies[0]!.respond(answered)
  await world.clock.advance(2 * TICK_MS)
  t.equal(world.clock.timers, 0)
})

t.test('without the wire for long, while a copy is with its owner: it is waited for', async (t) => {
  const world = makeEdge()
  const { copies, replies } = world.ask(idIn(0))
  world.edge.resend()
  const [first] = copies
  for (let ms = 0; ms < 3 * LIMITS.routing.wireAwayMs; ms += LIMITS.routing.retryMs) {
    copies.at(-1)!.respond(away)
    await world.clock.advance(LIMITS.routing.retryMs + TICK_MS)
  }
  t.same(replies, [], 'it may be done yet')
  first!.respond(answered)
  await world.clock.advance(0)
  t.same(replies, [answered])
})

t.test('what copies have recorded between them is all of it: no third one is asked', async (t) => {
  const world = makeEdge()
  const { copies, replies } = world.ask(idIn(0))
  world.edge.resend()
  world.edge.resend()
  copies[0]!.respond(said(later, done))
  copies[1]!.respond(said(done, later))
  await world.clock.advance(0)
  t.same(replies, [said(done, done)])
})

t.test('the last word of a request that can be asked of nobody any more', async (t) => {
  for (const [first, wanted] of [
    [said(done, later), { outcome: 'answered', results: [done, later] }],
    [busy, { outcome: 'refused', error: { code: 'TOO_BUSY' } }],
    [noKey, { outcome: 'refused', error: { code: 'UNAVAILABLE' } }],
  ] as const) {
    const world = makeEdge()
    const { copies, replies } = world.ask(idIn(0), { budgetMs: 1_000 })
    world.edge.resend()
    copies[0]!.respond(first)
    await world.clock.advance(0)
    t.same(replies, [], 'the other copy is waited for')
    world.owner = null
    copies[1]!.respond({ outcome: 'unsent' })
    await world.clock.advance(1_100)
    t.match(replies, [wanted])
  }
})

t.test('a key that leads to where the request is, heard late', async (t) => {
  const see: WireReply = { outcome: 'see', actorId: idIn(1) }
  const world = makeEdge()
  const [open, kept] = [world.ask('K-1'), world.ask('K-1')]
  world.edge.resend()
  for (const { copies } of [open, kept]) copies[0]!.respond(see)
  open.copies[1]!.respond(see)
  t.equal(open.copies.length, 3, 'the actor has been asked already')
  kept.copies[2]!.respond(busy)
  await world.clock.advance(0)
  t.same(kept.replies, [], 'the copy of before is waited for')
  kept.copies[1]!.respond(see)
  await world.clock.advance(0)
  t.same(kept.replies, [busy], 'it did nothing: what was kept holds')
  t.equal(kept.copies.length, 3)
})
