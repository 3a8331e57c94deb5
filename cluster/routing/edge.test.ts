// The edge by itself: what it sends, when it sends again, and when it says that nothing was done.

import t from 'tap'
import { errorItem } from '../../protocol/errors.ts'
import type { Envelope, Reply, WireReply } from '../../protocol/message.ts'
import { TestClock } from '../testing/harness.ts'
import { ledger } from '../testing/ledger.ts'
import { Edge } from './edge.ts'
import type { Route } from './routes.ts'

interface Sent {
  readonly to: string
  readonly envelope: Envelope
  readonly respond: (reply: WireReply) => void
}

const ID = '00000000-0000-7000-8000-000000000001'

function makeEdge() {
  const clock = new TestClock()
  const sent: Sent[] = []
  const world = {
    clock,
    sent,
    owner: { incarnation: 'a', epoch: 1 } as Route | null,
    isCutOff: false,
    learnt: [] as Route[],
    learntOf: [] as number[],
    edge: null as unknown as Edge,
    ask(budgetMs = 10_000) {
      const asked = { reply: null as Reply | null }
      void world.edge
        .ask({
          type: 'ledger',
          id: ID,
          messages: [{ type: 'append', body: { token: 'x' } }],
          idempotencyKey: 'k',
          bodyHash: 'h',
          by: 'tester',
          preview: false,
          budgetMs,
          trace: '',
        })
        .then((reply) => (asked.reply = reply))
      return asked
    },
  }
  world.edge = new Edge({
    behaviours: new Map([['ledger', ledger]]),
    shards: 4,
    newUuid: () => ID,
    gather: () => null,
    clock,
    route: () => world.owner,
    isCutOff: () => world.isCutOff,
    send: (to, _shard, envelope, respond) => {
      sent.push({ to: to.incarnation, envelope, respond })
    },
    deliversOnce: () => false,
    learn: (shard, route) => {
      world.learnt.push(route)
      world.learntOf.push(shard)
      world.owner = route
    },
  })
  return world
}

const answered: WireReply = {
  outcome: 'answered',
  actorId: ID,
  keys: [],
  results: [{ type: 'append', success: true, data: 1 }],
  position: { shard: 0, offset: 1 },
}
const busy: WireReply = { outcome: 'refused', error: errorItem('TOO_BUSY', 'later') }

function codeOf(reply: Reply | null): string {
  if (reply === null) return 'waiting'
  return reply.outcome === 'answered' ? 'answered' : reply.error.code
}

function textOf(reply: Reply | null): string {
  return reply === null || reply.outcome === 'answered' ? '' : reply.error.message
}

t.test('goes to another owner at once, to the same one a bit later', async (t) => {
  const { sent, ask, clock } = makeEdge()
  const asked = ask()
  sent[0]!.respond({ outcome: 'moved', shard: 0, owner: { incarnation: 'b', epoch: 2 } })
  t.equal(sent[1]!.to, 'b')
  t.equal(sent[1]!.envelope.copy, 1)
  sent[1]!.respond({ outcome: 'moved', shard: 0 })
  t.equal(sent.length, 2)
  await clock.advance(150)
  t.equal(sent.length, 3)
  t.same(sent[2]!.envelope.messageId, sent[0]!.envelope.messageId)
  t.ok(sent[2]!.envelope.budgetMs < 10_000)
  sent[2]!.respond(answered)
  await clock.advance(0)
  t.equal(codeOf(asked.reply), 'answered')
})

t.test('moved tells of the shard that it names, wherever the request has gone since', async (t) => {
  const { sent, ask, learntOf } = makeEdge()
  ask()
  sent[0]!.respond({ outcome: 'moved', shard: 2, owner: { incarnation: 'b', epoch: 7 } })
  sent[1]!.respond({ outcome: 'moved', shard: 3, owner: { incarnation: 'c', epoch: 8 } })
  t.same(learntOf, [2, 3])
})

t.test('silence: a copy after a second, then ever later; the first answer wins', async (t) => {
  const { sent, ask, clock } = makeEdge()
  const asked = ask(30_000)
  await clock.advance(900)
  t.equal(sent.length, 1)
  await clock.advance(200)
  t.equal(sent.length, 2)
  await clock.advance(1_700)
  t.equal(sent.length, 2)
  await clock.advance(300)
  t.equal(sent.length, 3)
  // Five seconds is the longest that a lost copy costs.
  await clock.advance(15_000)
  t.equal(sent.length, 6)
  sent[0]!.respond(answered)
  sent[1]!.respond(busy)
  await clock.advance(0)
  t.equal(codeOf(asked.reply), 'answered')
})

t.test('moved while another copy is under way: that one may still be answered', async (t) => {
  const { sent, ask, clock } = makeEdge()
  ask(30_000)
  await clock.advance(1_100)
  sent[0]!.respond({ outcome: 'moved', shard: 0, owner: { incarnation: 'b', epoch: 2 } })
  t.equal(sent.length, 2)
  await clock.advance(150)
  t.same(
    sent.slice(2).map(({ to }) => to),
    ['b'],
    'a bit later',
  )
})

t.test('how long an owner takes is measured by the copy that it answers', async (t) => {
  const { sent, ask, clock } = makeEdge()
  for (let i = 0; i < 130; i++) {
    ask(30_000)
    await clock.advance(1_100)
    sent.at(-1)!.respond(answered)
  }
  t.equal(sent.length, 260)
  ask(30_000)
  await clock.advance(1_100)
  t.equal(sent.length, 262, 'the copies that were lost say nothing of it')
})

t.test('a refusal waits for the other copies', async (t) => {
  const { sent, ask, clock } = makeEdge()
  const asked = ask(30_000)
  await clock.advance(2_100)
  sent[1]!.respond(busy)
  await clock.advance(0)
  t.equal(codeOf(asked.reply), 'waiting', 'the first copy may still run')
  sent[0]!.respond(answered)
  await clock.advance(0)
  t.equal(codeOf(asked.reply), 'answered')
})

t.test('a death: asks the next owner, and counts; nothing is said for the dead one', async (t) => {
  const world = makeEdge()
  const { sent, ask, clock, edge } = world
  const asked = ask(30_000)
  await clock.advance(2_100)
  sent[1]!.respond(busy)
  world.owner = null
  edge.died('a')
  await clock.advance(100)
  t.equal(codeOf(asked.reply), 'waiting', 'the dead one may have committed the first copy')
  world.owner = { incarnation: 'b', epoch: 2 }
  await clock.advance(150)
  t.match(sent.at(-1), { to: 'b', envelope: { crashes: 1 } })
  sent.at(-1)!.respond(busy)
  await clock.advance(0)
  t.equal(codeOf(asked.reply), 'waiting', 'who has no room has not looked')
  const before = sent.length
  await clock.advance(300)
  t.equal(sent.length, before + 1)
  sent.at(-1)!.respond({ outcome: 'refused', error: errorItem('NOT_FOUND', 'no such key') })
  await clock.advance(0)
  t.equal(codeOf(asked.reply), 'NOT_FOUND', 'the new owner has read the log to its end')
})

t.test('a death, and owners without room until the end: nobody knows', async (t) => {
  const { sent, ask, clock, edge } = makeEdge()
  const asked = ask(1_000)
  edge.died('a')
  for (let at = 0; at < 1_100; at += 100) {
    sent.at(-1)!.respond(busy)
    await clock.advance(100)
  }
  t.equal(codeOf(asked.reply), 'OUTCOME_UNKNOWN')
})

t.test('who was asked after a death has looked up to what may be tried again', async (t) => {
  const done = { type: 'append', success: true, data: 1 } as const
  const away = { type: 'append', success: false, errors: [errorItem('UNAVAILABLE', 'no')] } as const
  for (const [results, said] of [
    [[done, away], 'answered'],
    [[away], 'answered'],
    [[away, away], 'waiting'],
  ] as const) {
    const { sent, ask, clock, edge } = makeEdge()
    const asked = ask()
    edge.died('a')
    sent.at(-1)!.respond({ ...answered, results })
    await clock.advance(0)
    t.equal(codeOf(asked.reply), said, `${results.length} messages`)
  }
})

t.test('a part that was refused waits for the other copies, as a whole that was', async (t) => {
  const unavailable = { type: 'append', success: false, errors: [errorItem('UNAVAILABLE', 'no')] }
  const partly = { ...answered, results: [unavailable] } as WireReply
  const { sent, ask, clock } = makeEdge()
  const asked = ask(30_000)
  await clock.advance(2_100)
  sent[1]!.respond(partly)
  await clock.advance(0)
  t.equal(codeOf(asked.reply), 'waiting', 'the first copy may still run')
  sent[0]!.respond(answered)
  await clock.advance(0)
  t.same(asked.reply, answered)

  const alone = makeEdge()
  const other = alone.ask(30_000)
  alone.sent[0]!.respond(partly)
  await alone.clock.advance(0)
  t.same(other.reply, partly)
})

t.test('of two answers in part the newer says where the actor is', async (t) => {
  const undone = { type: 'append', success: false, errors: [errorItem('UNAVAILABLE', 'no')] }
  const done = { type: 'append', success: true, data: 1 }
  const answer = (offset: number | null, results: unknown[]): WireReply =>
    ({
      ...answered,
      keys: [`at ${offset}`],
      results,
      position: offset === null ? null : { shard: 0, offset },
    }) as WireReply
  const newest = answer(9, [undone, undone])
  for (const older of [answer(5, [done, undone]), answer(null, [done, undone])]) {
    for (const replies of [
      [older, newest],
      [newest, older],
    ]) {
      const { sent, ask, clock } = makeEdge()
      const asked = ask(30_000)
      await clock.advance(2_100)
      for (const [i, reply] of replies.entries()) sent[i]!.respond(reply)
      await clock.advance(0)
      t.same(asked.reply, { ...newest, results: [done, undone] })
    }
  }
})

t.test('budget over: unknown while a copy is open or was with a dead member', async (t) => {
  const open = makeEdge()
  const first = open.ask(1_000)
  await open.clock.advance(1_100)
  t.equal(codeOf(first.reply), 'OUTCOME_UNKNOWN')

  const dead = makeEdge()
  const second = dead.ask(1_000)
  dead.owner = null
  dead.edge.died('a')
  await dead.clock.advance(1_100)
  t.equal(codeOf(second.reply), 'OUTCOME_UNKNOWN')

  const nobody = makeEdge()
  nobody.owner = null
  const third = nobody.ask(1_000)
  await nobody.clock.advance(1_100)
  t.equal(codeOf(third.reply), 'UNAVAILABLE')

  const refused = makeEdge()
  const fourth = refused.ask(1_000)
  refused.sent[0]!.respond({ outcome: 'moved', shard: 0 })
  refused.owner = null
  await refused.clock.advance(1_100)
  t.equal(codeOf(fourth.reply), 'UNAVAILABLE')
})

t.test('an owner that stepped down with a copy begun: the next one must say', async (t) => {
  const { sent, ask, clock } = makeEdge()
  const asked = ask(30_000)
  await clock.advance(2_100)
  const owner = { incarnation: 'b', epoch: 2 }
  sent[0]!.respond({ outcome: 'moved', shard: 0, owner, taken: true })
  sent[1]!.respond(busy)
  t.equal(sent.length, 3, 'the refusal of the older copy is not the last word')
  sent[2]!.respond(answered)
  await clock.advance(0)
  t.equal(codeOf(asked.reply), 'answered')

  const late = makeEdge()
  const other = late.ask(1_000)
  late.owner = null
  late.sent[0]!.respond({ outcome: 'moved', shard: 0, taken: true })
  await late.clock.advance(1_100)
  t.equal(codeOf(other.reply), 'OUTCOME_UNKNOWN')
})

t.test(
  'without the wire: 503 within a second; a stream that is missing is tried again',
  async (t) => {
    const away = makeEdge()
    const asked = away.ask()
    away.sent[0]!.respond({ outcome: 'unsent', away: true })
    for (let at = 0; at < 950; at += 50) {
      await away.clock.advance(50)
      const last = away.sent.at(-1)!
      last.respond({ outcome: 'unsent', away: true })
    }
    await away.clock.advance(0)
    t.equal(codeOf(asked.reply), 'UNAVAILABLE')
    t.match(textOf(asked.reply), /^the wire .* is down; nothing was done/)

    const missing = makeEdge()
    const other = missing.ask()
    missing.sent[0]!.respond({ outcome: 'unsent' })
    await missing.clock.advance(300)
    t.equal(missing.sent.length, 2)
    missing.sent[1]!.respond(answered)
    await missing.clock.advance(0)
    t.equal(codeOf(other.reply), 'answered')
  },
)

t.test('no owner: 503 when its time is over, and whether that is for want of a wire', async (t) => {
  for (const [isCutOff, why] of [
    [true, /^the wire .* is down; nothing was done/],
    [false, /^no member serves this shard/],
  ] as const) {
    const world = makeEdge()
    Object.assign(world, { isCutOff, owner: null })
    const asked = world.ask(1_000)
    await world.clock.advance(900)
    t.equal(codeOf(asked.reply), 'waiting')
    await world.clock.advance(200)
    t.equal(codeOf(asked.reply), 'UNAVAILABLE')
    t.match(textOf(asked.reply), why)
  }
})

t.test('a wire that came back gets every open copy again', async (t) => {
  const { sent, ask, edge, clock } = makeEdge()
  const asked = ask()
  edge.resend()
  t.equal(sent.length, 2)
  sent[1]!.respond(answered)
  await clock.advance(0)
  t.equal(codeOf(asked.reply), 'answered')
  edge.resend()
  t.equal(sent.length, 2)
})

t.test('the end of an incarnation: unknown for what was sent', async (t) => {
  const { sent, ask, edge, clock } = makeEdge()
  const asked = ask()
  t.equal(sent.length, 1)
  edge.abandon()
  await clock.advance(0)
  t.equal(codeOf(asked.reply), 'OUTCOME_UNKNOWN')
  t.equal(edge.pending, 0)
})
