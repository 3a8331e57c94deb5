// The edge's books: how many requests are in flight in which shard, which copies count as lost, and
// that each caller is told once, and never that nothing was done while a copy may have run.

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../config/limits.ts'
import { errorItem } from '../../protocol/errors.ts'
import { placeOfActor, shardOf } from '../../protocol/ids.ts'
import type { Reply, WireReply } from '../../protocol/message.ts'
import { SHARDS, answered, busy, idIn, makeEdge, noKey } from './testing/edge-world.ts'
import type { Request, World } from './testing/edge-world.ts'

/** What is asked for in that shard is taken until the bound is reached, and no further. */
async function roomIn(world: World, shard: number): Promise<number> {
  for (let taken = 0; taken <= LIMITS.routing.shardInFlightMax; taken++) {
    const { copies } = world.ask(idIn(shard), { budgetMs: 1e6 })
    if (copies.length === 0) return taken
  }
  return Infinity
}

type Step =
  | { readonly do: 'ask'; readonly shard: number; readonly byKey: boolean }
  | { readonly do: 'reply'; readonly at: number; readonly what: string }
  | { readonly do: 'die' | 'move' | 'resend' | 'lose' }
  | { readonly do: 'wait'; readonly ms: number }

const REPLIES: Readonly<Record<string, WireReply>> = {
  answered,
  busy,
  noKey,
  unknown: { outcome: 'unknown', error: errorItem('OUTCOME_UNKNOWN', 'nobody knows') },
  moved: { outcome: 'moved', shard: 0 },
  taken: { outcome: 'moved', shard: 0, taken: true },
  unsent: { outcome: 'unsent' },
  away: { outcome: 'unsent', away: true },
  see: { outcome: 'see', actorId: idIn(1) },
}

const PLAIN = ['die', 'move', 'resend', 'lose'] as const
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('ask' as const),
      shard: fc.nat(SHARDS - 1),
      byKey: fc.boolean(),
    }),
  },
  {
    weight: 7,
    arbitrary: fc.record({
      do: fc.constant('reply' as const),
      at: fc.nat(40),
      what: fc.constantFrom(...Object.keys(REPLIES)),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom(...PLAIN) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(1_500) }) },
)

/** Nothing was done: true only when no copy can run, and who may have read the log has said so. */
function mayRefuse({ copies, lostBefore }: Request): boolean {
  return copies.every(({ isOpen }) => !isOpen) && lostBefore === 0
}

function run(world: World, step: Step, lives: { count: number }): void {
  const { requests, edge } = world
  const all = [...requests.values()]
  if (step.do === 'ask') world.ask(step.byKey ? `K-${step.shard}` : idIn(step.shard))
  else if (step.do === 'reply') {
    const open = all.flatMap((request) =>
      request.copies.flatMap((copy, i) => (copy.isOpen ? [{ request, copy, i }] : [])),
    )
    if (open.length === 0) return
    const { request, copy, i } = open[step.at % open.length]!
    const reply = REPLIES[step.what]!
    copy.isOpen = false
    if (step.what === 'taken') request.lostBefore = request.copies.length
    if (step.what === 'noKey' && i >= request.lostBefore) request.lostBefore = 0
    copy.respond(reply)
  } else if (step.do === 'die') {
    const died = world.owner?.incarnation ?? 'a'
    world.owner = { incarnation: `incarnation ${++lives.count}`, epoch: lives.count + 1 }
    for (const request of all) {
      const lost = request.copies.filter((copy) => copy.isOpen && copy.to === died)
      for (const copy of lost) copy.isOpen = false
      if (lost.length === 0 || request.replies.length > 0) continue
      request.lostBefore = request.copies.length
      request.crashes++
    }
    edge.died(died)
  } else if (step.do === 'move') {
    world.owner = { incarnation: `incarnation ${++lives.count}`, epoch: lives.count + 1 }
  } else if (step.do === 'lose') world.owner = null
  else if (step.do === 'resend') edge.resend()
}

t.test('whatever happens each is told once, and the books are right', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 8, maxLength: 40, size: 'max' }),
      async (steps) => {
        const world = makeEdge()
        const lives = { count: 1 }
        const judged = new Set<Request>()
        for (const step of steps) {
          run(world, step, lives)
          await world.clock.advance(step.do === 'wait' ? step.ms : 0)
          for (const request of world.requests.values()) {
            const { copies, replies, askedMs } = request
            if (replies.length > 1) throw new Error('told twice')
            for (const [i, { envelope }] of copies.entries()) {
              if (envelope.copy !== i) throw new Error('copies are numbered from 0')
            }
            const last = copies.at(-1)
            if (last?.isOpen && replies.length === 0 && last.envelope.crashes > request.crashes) {
              throw new Error('more deaths than there were')
            }
            const tookMs = world.clock.monotonicMs() - askedMs
            if (replies.length === 0 && tookMs > 10_100) throw new Error('past its budget')
            if (replies.length === 0 || judged.has(request)) continue
            judged.add(request)
            const [reply] = replies
            if (reply!.outcome === 'refused' && !mayRefuse(request)) {
              throw new Error(`"nothing was done" while it may have been: ${request.trace}`)
            }
          }
        }
        const waiting = [...world.requests.values()].filter(({ replies }) => replies.length === 0)
        if (world.edge.pending !== waiting.length) return false
        await world.clock.advance(11_000)
        return world.edge.pending === 0
      },
    ),
    { numRuns: 80 },
  )
  t.pass()
})

t.test('a shard has room for a thousand, counted where each request is now', async (t) => {
  const world = makeEdge()
  const asked = Array.from({ length: 6 }, () => world.ask(idIn(0)))
  for (const [i, what] of ['answered', 'noKey', 'unknown'].entries()) {
    asked[i]!.copies[0]!.respond(REPLIES[what]!)
  }
  const byKey = ['K-1', 'K-2', 'K-3'].map((key) => world.ask(key))
  for (const { copies } of byKey) copies[0]!.respond({ outcome: 'see', actorId: idIn(1) })
  for (const { copies } of byKey) {
    t.match(copies[1], { shard: 1, envelope: { to: { type: 'ledger', id: idIn(1) } } })
  }
  byKey[0]!.copies[1]!.respond(answered)
  t.equal(await roomIn(world, 0), LIMITS.routing.shardInFlightMax - 3)
  t.equal(await roomIn(world, 1), LIMITS.routing.shardInFlightMax - 2)
  await world.clock.advance(0)
  const refused = [...world.requests.values()].filter(({ replies }) => {
    const [reply] = replies
    return reply?.outcome === 'refused' && reply.error.code === 'TOO_BUSY'
  })
  t.equal(refused.length, 2)
  world.edge.abandon()
  t.equal(world.edge.pending, 0)
  t.equal(await roomIn(world, 0), LIMITS.routing.shardInFlightMax, 'and nothing is left of them')
})

t.test('what the runtime sends is not bounded as callers are, but counted', async (t) => {
  const world = makeEdge()
  const one = world.ask(idIn(0))
  t.equal(await roomIn(world, 0), LIMITS.routing.shardInFlightMax - 1)
  const envelope = { ...one.copies[0]!.envelope, budgetMs: 1_000 }
  let reply: Reply | null = null
  world.edge.send(envelope, (said) => (reply = said))
  t.equal(one.copies.length, 2)
  one.copies[1]!.respond(answered)
  t.same(reply, answered)
})

t.test('where the key led is not asked for again', async (t) => {
  const world = makeEdge()
  const request = world.ask('K-1')
  t.match(request.copies[0]!.envelope.to, { key: 'K-1' })
  world.edge.resend()
  request.copies[0]!.respond({ outcome: 'see', actorId: idIn(1) })
  t.equal(request.copies.length, 3)
  request.copies[1]!.respond({ outcome: 'see', actorId: idIn(0) })
  request.copies[2]!.respond({ outcome: 'moved', shard: 1 })
  await world.clock.advance(100)
  const last = request.copies.at(-1)!
  t.same(last.envelope.to, { type: 'ledger', id: idIn(1) })
  t.equal(last.shard, shardOf(placeOfActor(idIn(1)), SHARDS))
})

t.test('where it led, heard again, sends nothing before its time', async (t) => {
  const world = makeEdge()
  const { copies } = world.ask('K-1')
  world.edge.resend()
  copies[0]!.respond({ outcome: 'see', actorId: idIn(1) })
  copies[2]!.respond({ outcome: 'moved', shard: 1 })
  copies[1]!.respond({ outcome: 'see', actorId: idIn(1) })
  t.equal(copies.length, 3)
  await world.clock.advance(100)
  t.equal(copies.length, 4)
})

t.test('nor is a refusal of before a death the last word when it is heard again', async (t) => {
  const world = makeEdge()
  const { copies, replies } = world.ask('K-1')
  world.edge.resend()
  copies[0]!.respond({ outcome: 'see', actorId: idIn(1) })
  copies[2]!.respond(busy)
  world.edge.resend()
  world.owner = { incarnation: 'b', epoch: 2 }
  world.edge.resend()
  t.same(
    copies.map(({ to }) => to),
    ['a', 'a', 'a', 'a', 'b'],
  )
  world.edge.died('b')
  copies[3]!.respond(busy)
  copies[1]!.respond({ outcome: 'see', actorId: idIn(1) })
  await world.clock.advance(0)
  t.same(replies, [], 'the one that died may have done it')
  t.equal(copies.length, 6)
})

t.test('a death counts for each request once, and only where a copy was open there', async (t) => {
  const world = makeEdge()
  const [open, closed] = [world.ask(idIn(0)), world.ask(idIn(0))]
  world.edge.resend()
  closed.copies[0]!.respond({ outcome: 'moved', shard: 0 })
  closed.copies[1]!.respond({ outcome: 'moved', shard: 0 })
  world.owner = { incarnation: 'b', epoch: 2 }
  world.edge.died('c')
  t.equal(open.copies.length, 2)
  world.edge.died('a')
  t.match(open.copies[2], { to: 'b', envelope: { crashes: 1 } }, 'two copies, one death')
  await world.clock.advance(100)
  t.match(closed.copies[2], { to: 'b', envelope: { crashes: 0 } })
  world.edge.died('a')
  t.equal(open.copies.length, 3)
})

t.test('a death with a copy open elsewhere: that one is waited for', async (t) => {
  const world = makeEdge()
  const request = world.ask(idIn(0))
  world.owner = { incarnation: 'b', epoch: 2 }
  world.edge.resend()
  world.edge.died('a')
  t.equal(request.copies.length, 2)
  request.copies[1]!.respond(answered)
  request.copies[0]!.respond(busy)
  await world.clock.advance(0)
  t.same(request.replies, [answered])
})

t.test('who was asked before a death can not say that nothing was done', async (t) => {
  const world = makeEdge()
  const request = world.ask(idIn(0))
  world.owner = { incarnation: 'b', epoch: 2 }
  world.edge.resend()
  world.edge.died('a')
  request.copies[1]!.respond(noKey)
  await world.clock.advance(0)
  t.same(request.replies, [], 'the copy of before may be in the log since')
  t.equal(request.copies.length, 3, 'an owner is asked that has read all of it')
  request.copies[2]!.respond(answered)
  await world.clock.advance(0)
  t.same(request.replies, [answered])
})

t.test('again after a reconnect goes what a wire may have lost, and is open', async (t) => {
  const world = makeEdge()
  const lost = world.ask(idIn(0))
  const closed = world.ask(idIn(0))
  closed.copies[0]!.respond({ outcome: 'moved', shard: 0 })
  world.owner = { incarnation: 'here', epoch: 2 }
  world.once.add('here')
  const inside = world.ask(idIn(0))
  world.edge.resend()
  t.same(
    [lost, closed, inside].map(({ copies }) => copies.length),
    [2, 1, 1],
  )
})

t.test('an id made here is not looked for, in the first copy and in this process', async (t) => {
  const world = makeEdge()
  const away = world.ask('new', { open: true })
  t.notOk('fresh' in away.copies[0]!.envelope)
  world.once.add('a')
  const here = world.ask('new', { open: true })
  t.match(here.copies[0]!.envelope, { fresh: true, copy: 0 })
  here.copies[0]!.respond({ outcome: 'moved', shard: here.copies[0]!.shard })
  await world.clock.advance(100)
  t.notOk('fresh' in here.copies[1]!.envelope, 'somebody may have run it')
  t.same(here.copies[1]!.envelope.to, here.copies[0]!.envelope.to)
})

t.test('without the wire: counted from when no copy left, anew after one has', async (t) => {
  for (const between of [
    { outcome: 'moved', shard: 0 },
    { outcome: 'unsent' },
  ] satisfies WireReply[]) {
    const world = makeEdge()
    const request = world.ask(idIn(0), { budgetMs: 20_000 })
    const reply = (said: WireReply): void => request.copies.at(-1)!.respond(said)
    reply({ outcome: 'unsent', away: true })
    await world.clock.advance(LIMITS.routing.retryMs + 50)
    t.equal(request.copies.length, 2)
    await world.clock.advance(LIMITS.routing.wireAwayMs)
    reply(between)
    await world.clock.advance(LIMITS.routing.retryMs + 50)
    reply({ outcome: 'unsent', away: true })
    await world.clock.advance(LIMITS.routing.retryMs + 50)
    t.same(request.replies, [], 'the wire was there in between')
    t.ok(request.copies.length > 3)
    for (let i = 0; i < 4; i++) {
      reply({ outcome: 'unsent', away: true })
      await world.clock.advance(LIMITS.routing.retryMs + 50)
    }
    t.match(request.replies, [{ outcome: 'refused', error: { code: 'UNAVAILABLE' } }])
  }
})

t.test(
  'without the wire for long, after a death: nobody knows, and it is not refused',
  async (t) => {
    const world = makeEdge()
    const request = world.ask(idIn(0), { budgetMs: 5_000 })
    world.owner = { incarnation: 'b', epoch: 2 }
    world.edge.died('a')
    for (let ms = 0; ms < 3 * LIMITS.routing.wireAwayMs; ms += LIMITS.routing.retryMs) {
      request.copies.at(-1)!.respond({ outcome: 'unsent', away: true })
      await world.clock.advance(LIMITS.routing.retryMs + 50)
    }
    t.same(request.replies, [], 'the one that died may have done it')
    await world.clock.advance(5_000)
    t.match(request.replies, [{ outcome: 'unknown', error: { code: 'OUTCOME_UNKNOWN' } }])
    t.equal(world.edge.inFlight.size, 0)
  },
)

t.test('each copy has what is left of the budget, by the clock that only goes on', async (t) => {
  const world = makeEdge()
  const request = world.ask(idIn(0), { budgetMs: 5_000 })
  world.clock.stepWall(-3_600_000)
  await world.clock.advance(1_000)
  world.clock.stepWall(7_200_000)
  await world.clock.advance(2_000)
  t.same(
    request.copies.map(({ envelope }) => envelope.budgetMs),
    [5_000, 4_000, 2_000],
  )
  await world.clock.advance(1_999)
  t.same(request.replies, [])
  await world.clock.advance(51)
  t.match(request.replies, [{ outcome: 'unknown', error: { code: 'OUTCOME_UNKNOWN' } }])
  request.copies[0]!.respond(answered)
  await world.clock.advance(0)
  t.equal(request.replies.length, 1, 'later replies are dropped')
})

t.test(
  'the end of an incarnation: unknown for what may run, refused for what can not',
  async (t) => {
    const world = makeEdge()
    const codes: string[] = []
    const note = (request: Request): void => {
      const [reply] = request.replies
      codes.push(reply!.outcome === 'answered' ? 'answered' : reply!.error.code)
    }
    const open = world.ask(idIn(0))
    const moved = world.ask(idIn(0))
    moved.copies[0]!.respond({ outcome: 'moved', shard: 0 })
    const taken = world.ask(idIn(0))
    taken.copies[0]!.respond({ outcome: 'moved', shard: 0, taken: true })
    world.owner = null
    const nowhere = world.ask(idIn(0))
    world.edge.abandon()
    await world.clock.advance(0)
    for (const request of [open, moved, taken, nowhere]) note(request)
    t.same(codes, ['OUTCOME_UNKNOWN', 'UNAVAILABLE', 'OUTCOME_UNKNOWN', 'UNAVAILABLE'])
  },
)
