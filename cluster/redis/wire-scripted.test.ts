// The wire against a Redis that does as it is told: what goes into one entry, what becomes of
// copies whose command was refused, cut off or never sent, and that nothing is left behind of any.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { WireReply } from '../../protocol/message.ts'
import { RecordingInbox, parcelOf } from '../testing/wire-conformance.ts'
import { entryFields, readEntry, WIRE_FORMAT } from './entry.ts'
import type { Item } from './entry.ts'
import {
  soon,
  ME,
  MINE,
  THERE,
  ANSWERED,
  UNSENT,
  AWAY,
  sealed,
  makeWire,
  written,
} from './testing/scripted-wire.ts'

// Everything goes over sockets: a busy machine may take more than tap's half minute.
t.setTimeout(120_000)
t.test('what goes to one member in one tick is one entry, in its order', async (t) => {
  const { redis, wire, send, seen } = await makeWire(t)
  redis.add('in:other', ['v', '0'])
  send('there', 'a')
  send('other', 'x')
  wire.tell(['there', ME, 'other'], { kind: 'stopped' }, ME)
  send('there', 'b')
  t.ok(wire.figures.backlogBytes > 0)
  t.ok(await soon(() => wire.figures.backlogBytes === 0))
  t.same(written(redis, THERE), [{ from: ME, items: ['a', 'stopped', 'b'], noMake: true }])
  t.same(written(redis, 'in:other'), [{ from: ME, items: ['x', 'stopped'], noMake: true }])
  send('there', 'c')
  t.ok(await soon(() => written(redis, THERE).length === 2))
  const last = readEntry(redis.sentTo(THERE, 'xadd').at(-1)!.slice(4))
  const { shard, epoch, envelope } = parcelOf(ME, 'c')
  t.same(last, {
    state: 'read',
    from: ME,
    items: [{ kind: 'parcel', copy: 4, shard, epoch, envelope }],
  })
  t.match(wire.figures, { entries: 3, parcels: 4, unsent: 0, dropped: 0, unanswered: 4 })
  t.same(seen.answers, [])
})

t.test(
  'each incarnation that sends has an entry of its own, in the order of sending',
  async (t) => {
    const { redis, send } = await makeWire(t)
    for (const [trace, from] of ['one', 'one', 'two', 'one'].entries()) {
      send('there', `${trace}`, from)
    }
    t.ok(await soon(() => written(redis, THERE).length === 3))
    t.same(
      written(redis, THERE).map((entry) => (entry as { items: unknown }).items),
      [['0', '1'], ['2'], ['3']],
    )
  },
)

t.test('what an older member can not read is an entry of its own, of its format', async (t) => {
  const { redis, wire, send } = await makeWire(t)
  send('there', 'a')
  wire.send('there', parcelOf(ME, 'b', { places: [0] }), () => undefined)
  wire.tell(['there'], { kind: 'stopped' }, ME)
  send('there', 'c')
  t.ok(await soon(() => written(redis, THERE).length === 3))
  t.same(
    redis.sentTo(THERE, 'xadd').map((command) => command[5]),
    ['1', '2', '1'],
  )
  t.same(
    written(redis, THERE).map((entry) => Object(entry).items),
    [['a'], ['b'], ['stopped', 'c']],
  )
})

t.test('an answer finds its copy once, whoever else answers', async (t) => {
  const { redis, arrive, send, answers, isAtRest } = await makeWire(t)
  send('there', 'a')
  send('there', 'b')
  t.ok(await soon(() => redis.sentTo(THERE, 'xadd').length === 1))
  const reply: Item = { kind: 'reply', copy: 2, reply: ANSWERED }
  arrive([reply, reply, { ...reply, copy: 77 }])
  t.ok(await answers(['b', ANSWERED]))
  arrive([reply, { ...reply, copy: 1 }])
  t.ok(await answers(['b', ANSWERED], ['a', ANSWERED]))
  t.ok(await soon(isAtRest))
})

t.test('a stream that is not there: its copies have not left, others have', async (t) => {
  const { redis, wire, send, answers } = await makeWire(t)
  send('nobody', 'a')
  send('there', 'b')
  send('nobody', 'c')
  t.ok(await answers(['a', UNSENT], ['c', UNSENT]))
  t.notOk(redis.streams.has('in:nobody'), 'only its reader makes it')
  t.match(wire.figures, { unsent: 2, unanswered: 1 })
  t.ok(await soon(() => wire.figures.backlogBytes === 0))
})

t.test('a Redis that refuses: they have not left, and it is told once', async (t) => {
  const { redis, wire, seen, send, answers, isAtRest } = await makeWire(t)
  redis.fate = ([name]) => (name === 'xadd' ? { error: 'OOM as asked' } : 'answered')
  send('there', 'a')
  t.ok(await answers(['a', AWAY]))
  send('there', 'b')
  t.ok(await answers(['a', AWAY], ['b', AWAY]))
  t.ok(isAtRest())
  t.equal(seen.told.filter((text) => text.includes('refuses')).length, 1)
  t.ok(wire.isUp, 'it is there all the same')
  t.equal(seen.reconnects, 0)
})

t.test('a replica is left: the connection is made again, and the edge is told', async (t) => {
  const { redis, seen, send, answers } = await makeWire(t)
  const { connections } = redis
  redis.fate = ([name]) => (name === 'xadd' ? { error: 'READONLY as asked' } : 'answered')
  send('there', 'a')
  t.ok(await answers(['a', AWAY]))
  t.ok(await soon(() => redis.connections > connections && seen.reconnects === 1))
})

t.test('cut off before its answer: it counts as sent, and its answer is heard', async (t) => {
  for (const fate of ['unheard', 'lost'] as const) {
    const { redis, wire, seen, send, arrive, answers, isAtRest } = await makeWire(t)
    redis.fate = ([name, key]) => (name === 'xadd' && key === THERE ? fate : 'answered')
    send('there', 'a')
    t.ok(await soon(() => seen.reconnects === 1), fate)
    t.same(seen.answers, [], 'nobody says that it was not done')
    t.match(wire.figures, { unanswered: 1, unsent: 0, backlogBytes: 0, losses: 1 })
    t.equal(redis.streams.get(THERE)!.entries.length, fate === 'unheard' ? 2 : 1)
    redis.fate = null
    const { length } = redis.sentTo(THERE, 'xadd')
    t.equal(length, 1, 'the client does not send it again by itself')
    arrive([{ kind: 'reply', copy: 1, reply: ANSWERED }])
    t.ok(await answers(['a', ANSWERED]))
    t.ok(isAtRest())
  }
})

t.test('gone before the end of the tick: certainly not sent', async (t) => {
  const { redis, wire, ticks, send, answers, isAtRest } = await makeWire(t)
  ticks.held = []
  send('there', 'a')
  redis.cut()
  t.ok(await soon(() => !wire.isUp))
  const held = ticks.held
  ticks.held = null
  for (const run of held) run()
  t.ok(await answers(['a', AWAY]))
  t.ok(isAtRest())
  t.match(wire.figures, { unsent: 1, entries: 0 })
})

t.test('without Redis: unsent at once, never inside the call; the rest is dropped', async (t) => {
  const { redis, wire, seen, send, answers, inbox } = await makeWire(t)
  await redis.stop()
  t.ok(await soon(() => !wire.isUp))
  send('there', 'a')
  t.same(seen.answers, [], 'the edge is not done with it yet')
  t.ok(await answers(['a', AWAY]))
  wire.tell(['there', ME], { kind: 'stopped' }, ME)
  t.ok(await soon(() => inbox.notices.length === 1), 'itself it hears')
  t.match(wire.figures, { dropped: 1, unsent: 1, backlogBytes: 0, unanswered: 0 })
})

t.test('a destination has room for so many bytes, and again once they are answered', async (t) => {
  const { redis, wire, seen, send, arrive, answers } = await makeWire(t)
  const messages = [{ type: 'create', body: 'x'.repeat(LIMITS.redis.bytesMax) }]
  wire.send('there', parcelOf(ME, 'large', { messages }), () => void seen.answers.push('large'))
  send('there', 'b')
  t.ok(await answers(['b', UNSENT]), 'the wire itself is not away')
  send('nobody', 'c')
  t.ok(await answers(['b', UNSENT], ['c', UNSENT]), 'another one has room')
  t.ok(await soon(() => redis.sentTo(THERE, 'xadd').length === 1))
  arrive([{ kind: 'reply', copy: 1, reply: ANSWERED }])
  t.ok(await answers(['b', UNSENT], ['c', UNSENT], 'large'))
  send('there', 'd')
  t.ok(await soon(() => written(redis, THERE).length === 2))
})

t.test('an incarnation that has ended: nothing of it is kept, and its stream goes', async (t) => {
  const { redis, wire, ticks, send, seen, arrive, inbox } = await makeWire(t)
  send('there', 'a')
  t.ok(await soon(() => wire.figures.backlogBytes === 0))
  ticks.held = []
  send('there', 'b')
  t.match(wire.figures, { unanswered: 2 })
  wire.close('there')
  t.match(wire.figures, { unanswered: 0, backlogBytes: 0 })
  for (const run of ticks.held.splice(0)) run()
  ticks.held = null
  t.ok(await soon(() => !redis.streams.has(THERE)))
  t.equal(redis.sentTo(THERE, 'xadd').length, 1, 'what had not left does not leave')
  t.same(seen.answers, [])
  redis.fate = ([name]) => (name === 'xread' ? 'held' : 'answered')
  t.ok(await soon(() => redis.held.length === 1))
  arrive([{ kind: 'notice', notice: { kind: 'stopped' } }])
  wire.close(ME)
  redis.fate = null
  for (const go of redis.held.splice(0)) go()
  t.ok(await soon(() => !redis.streams.has(MINE)))
  send(ME, 'nobody')
  t.ok(await soon(() => seen.answers.length === 1))
  t.ok(wire.isUp, 'no inbox is missed any more')
  t.same(inbox.notices, [], 'who has ended hears nothing')
})

t.test('what was under way is taken off the budget, and its answer goes back', async (t) => {
  const { redis, wire, arrive, inbox } = await makeWire(t)
  inbox.reply = () => ANSWERED
  const { shard, epoch, envelope } = parcelOf('there', 'test', { budgetMs: 1_000 })
  const parcel: Item = { kind: 'parcel', copy: 41, shard, epoch, envelope }
  for (const ageMs of [5_000, 400]) arrive([parcel], ageMs)
  arrive([{ ...parcel, copy: 42 }])
  t.ok(await soon(() => inbox.parcels.length === 3))
  t.same(
    inbox.parcels.map(({ envelope }) => envelope.budgetMs),
    [0, 600, 1_000],
  )
  t.same(inbox.parcels[2], { shard, epoch, from: 'there', envelope })
  t.ok(await soon(() => written(redis, THERE).flatMap((e) => Object(e).items).length === 3))
  const replies = redis.sentTo(THERE, 'xadd').flatMap((command) => {
    const read = readEntry(command.slice(4))
    return read.state === 'read' ? read.items : []
  })
  t.same(
    replies,
    [41, 41, 42].map((copy) => ({ kind: 'reply', copy, reply: ANSWERED })),
  )
  t.equal(wire.figures.replies, 3)
})

t.test('one message that throws keeps nobody from the others', async (t) => {
  const { arrive, inbox, seen } = await makeWire(t)
  inbox.reply = ({ envelope }) => {
    if (envelope.trace === 'bad') throw new Error('as asked')
    return null
  }
  const item = (trace: string): Item => {
    const { shard, epoch, envelope } = parcelOf('there', trace)
    return { kind: 'parcel', copy: 1, shard, epoch, envelope }
  }
  const notice = { kind: 'owns', shard: 3, epoch: 4 } as const
  arrive([item('bad'), { kind: 'notice', notice }, item('good')])
  t.ok(await soon(() => inbox.parcels.length === 2))
  t.same(inbox.notices, [[notice, 'there']])
  t.equal(seen.told.filter((text) => text.includes('could not be taken')).length, 1)
})

t.test('an entry of a newer Kontor: each of its copies is refused', async (t) => {
  const { redis, inbox, seen } = await makeWire(t)
  const newer = WIRE_FORMAT + 1
  const fields = entryFields('there', [5, 6], [], newer)
  redis.add(MINE, sealed(fields))
  redis.add(MINE, sealed(fields))
  t.ok(await soon(() => written(redis, THERE).flatMap((e) => Object(e).items).length === 4))
  t.same(inbox.parcels, [])
  const { items } = readEntry(redis.sentTo(THERE, 'xadd')[0]!.slice(4)) as never as {
    items: Item[]
  }
  const reply = { outcome: 'refused', error: { code: 'UNAVAILABLE' } }
  t.match(items, [
    { kind: 'reply', copy: 5, reply },
    { kind: 'reply', copy: 6, reply },
  ])
  t.equal(
    seen.told.filter((text) => text.includes(`format ${newer}`)).length,
    1,
    'said once a minute',
  )
})

t.test('up is who can write, and read every inbox; the edge is told once of a loss', async (t) => {
  const { redis, wire, seen } = await makeWire(t)
  t.ok(wire.isUp)
  t.equal(seen.reconnects, 0, 'the first time is no reconnect')
  redis.fate = ([name, key]) => (name === 'pexpire' && key === 'in:next' ? 'held' : 'answered')
  const serving = wire.serve('next', new RecordingInbox())
  t.ok(await soon(() => redis.held.length === 1))
  t.notOk(wire.isUp)
  redis.fate = null
  for (const go of redis.held.splice(0)) go()
  await serving
  t.ok(wire.isUp)
  t.equal(seen.reconnects, 0)
  redis.cut()
  t.ok(await soon(() => !wire.isUp))
  t.ok(await soon(() => wire.isUp))
  t.equal(seen.reconnects, 1, 'of three connections at once')
  const began = performance.now()
  await wire.serve('third', new RecordingInbox())
  t.ok(performance.now() - began < LIMITS.redis.serveMs, 'it waits no longer than it must')
  t.equal(seen.reconnects, 1, 'nothing was lost since')
  t.equal(wire.figures.losses, 3)
})

t.test('an inbox that can not be made holds its member up for a second only', async (t) => {
  const { redis, wire, seen } = await makeWire(t)
  redis.fate = ([name, key]) => (name === 'pexpire' && key === 'in:next' ? 'held' : 'answered')
  const began = performance.now()
  await wire.serve('next', new RecordingInbox())
  const tookMs = performance.now() - began
  t.ok(tookMs >= LIMITS.redis.serveMs - 5, `${tookMs} ms`)
  t.ok(seen.told.some((text) => text.includes('without Redis')))
  for (const go of redis.held.splice(0)) go()
})

t.test('who sends to itself needs no Redis', async (t) => {
  const { redis, inbox, send, answers } = await makeWire(t)
  inbox.reply = () => ANSWERED
  send(ME, 'a')
  t.ok(await answers(['a', ANSWERED]))
  t.equal(redis.sentTo(MINE, 'xadd').length, 1, 'but the one that makes its stream')
})

t.test('an answer that Redis can not take is dropped, and counted', async (t) => {
  const { redis, wire, arrive, inbox } = await makeWire(t)
  const responds: ((reply: WireReply) => void)[] = []
  inbox.receive = (_, respond) => void responds.push(respond)
  const { shard, epoch, envelope } = parcelOf('there')
  arrive([{ kind: 'parcel', copy: 1, shard, epoch, envelope }])
  t.ok(await soon(() => responds.length === 1))
  await redis.stop()
  t.ok(await soon(() => !wire.isUp))
  responds[0]!(ANSWERED)
  t.match(wire.figures, { dropped: 1, replies: 0, backlogBytes: 0 })
})

t.test('stopped: its streams go, and nothing is connected any more', async (t) => {
  const { redis, wire } = await makeWire(t)
  const { connections } = redis
  let isHeld = false
  redis.fate = ([name]) => (name === 'quit' && (isHeld = true) ? 'held' : 'answered')
  const began = performance.now()
  await wire.stop()
  const tookMs = performance.now() - began
  t.ok(isHeld && tookMs >= 990, 'a Redis that says nothing has a second')
  t.notOk(redis.streams.has(MINE))
  redis.cut()
  await new Promise((resolve) => setTimeout(resolve, 60))
  t.equal(redis.connections, connections)
  t.notOk(wire.isUp)
})
