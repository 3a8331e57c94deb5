// The wire over a real Redis: what every wire does, and what it does when Redis forgets, cuts, ends
// or fills up.

import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { engine, ownEngine } from '../../harness/engines.ts'
import type { EngineAddress, OwnEngine } from '../../harness/engines.ts'
import { systemClock } from '../../../cluster/clock.ts'
import {
  ask,
  eventually,
  parcelOf,
  RecordingInbox,
  wireConformance,
} from '../../../cluster/testing/wire-conformance.ts'
import type { Wire } from '../../../cluster/wire.ts'
import { WIRE_FORMAT } from '../../../cluster/redis/entry.ts'
import { Seal } from '../../../cluster/redis/seal.ts'
import { redisWire } from '../../../cluster/redis/wire.ts'

const shared = await engine('redis')
const skip = 'skipped' in shared ? shared.skipped : false
const clock = systemClock()
const SECRET = 'of the store'
const seal = new Seal({ secret: SECRET, nowMs: () => clock.nowMs() })

/** An entry as a member would write it. */
const sealed = (inbox: string, ...fields: string[]): string[] => seal.close(`in:${inbox}`, fields)

// Servers start and stop here: more than a busy machine does in tap's half minute.
t.setTimeout(120_000)

/** A wire of one process; `told` keeps what it logs. */
function wireTo(t: Test, { host, port }: EngineAddress, prefix = '') {
  const told: string[] = []
  let reconnects = 0
  const tell = (_: object, text: string): void => void told.push(text)
  const log = { debug: tell, info: tell, warn: tell, error: tell }
  const wire = redisWire({
    urls: [`redis://${host}:${port}`],
    clock,
    secret: SECRET,
    log,
    prefix,
    onReconnect: () => void reconnects++,
  })
  t.teardown(() => wire.stop())
  return {
    wire,
    told,
    get reconnects() {
      return reconnects
    },
  }
}

/** Two processes, each with an inbox. */
async function pair(t: Test, address: EngineAddress) {
  const [a, b] = [wireTo(t, address), wireTo(t, address)]
  const names = { a: randomUUID(), b: randomUUID() }
  const inboxes = { a: new RecordingInbox(), b: new RecordingInbox() }
  await a.wire.serve(names.a, inboxes.a)
  await b.wire.serve(names.b, inboxes.b)
  const client = new Redis({ ...address, lazyConnect: true, retryStrategy: null })
  client.on('error', () => undefined)
  t.teardown(() => client.disconnect())
  await client.connect()
  return { a, b, names, inboxes, client }
}

async function own(t: Test): Promise<OwnEngine> {
  const server = await ownEngine(t, 'redis')
  if ('skipped' in server) throw new Error(server.skipped)
  return server
}

/** Sends again until it is answered, as an edge does; null: not in time. */
async function insist(wire: Wire, to: string, from: string, waitMs = 5_000) {
  const until = performance.now() + waitMs
  while (performance.now() < until) {
    const reply = await ask(wire, to, parcelOf(from), 200)
    if (reply?.outcome === 'answered') return reply
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return null
}

t.test('over Redis', { skip }, async (t) => {
  wireConformance(t, async () => {
    const address = shared as EngineAddress
    const wires = [0, 1].map(() => wireTo(t, address, 'conformance:').wire)
    return {
      wires: [wires[0]!, wires[1]!],
      stop: async () => void (await Promise.all(wires.map((wire) => wire.stop()))),
    }
  })
})

t.test('10,000 parcels there and back', { skip }, async (t) => {
  const { a, b, names, client } = await pair(t, shared as EngineAddress)
  let answered = 0
  for (let i = 0; i < 100; i++) {
    const batch = Array.from({ length: 100 }, () => ask(a.wire, names.b, parcelOf(names.a)))
    const replies = await Promise.all(batch)
    answered += replies.filter((reply) => reply?.outcome === 'answered').length
  }
  t.equal(answered, 10_000)
  t.equal(a.wire.figures.unanswered, 0)
  t.ok(a.wire.figures.entries < 1_000, `${a.wire.figures.entries} entries: many go together`)
  t.equal(b.wire.figures.replies, 10_000)
  const lengths = [names.a, names.b].map((name) => client.xlen(`in:${name}`))
  const empty = async () => (await Promise.all(lengths)).every((length) => length <= 2)
  t.ok(await empty(), 'what was read is gone')
})

t.test('the stream of an incarnation goes with it, whoever closes it', { skip }, async (t) => {
  const { a, b, names, client } = await pair(t, shared as EngineAddress)
  t.equal(await client.exists(`in:${names.a}`, `in:${names.b}`), 2)
  a.wire.close(names.b)
  a.wire.close(names.a)
  let left = 1
  const look = async () => (left = await client.exists(`in:${names.a}`))
  t.ok(
    await eventually(() => {
      void look()
      return left === 0
    }),
  )
  // That of a living one is made again by its reader.
  const next = randomUUID()
  await a.wire.serve(next, new RecordingInbox())
  t.ok(await insist(a.wire, names.b, next), 'b only seemed dead')
  t.ok((await client.pttl(`in:${names.b}`)) > LIMITS.redis.streamMs / 2)
  t.ok(b.wire.isUp)
})

t.test('a full destination takes no more, and takes again', { skip }, async (t) => {
  const { a, names, inboxes } = await pair(t, shared as EngineAddress)
  inboxes.b.reply = null
  const large = (bytes: number) => {
    const messages = [{ type: 'create', body: 'x'.repeat(bytes) }]
    return parcelOf(names.a, 'large', { messages, budgetMs: 1_000 })
  }
  const outcomes: string[] = []
  const send = (bytes: number) =>
    a.wire.send(names.b, large(bytes), ({ outcome }) => outcomes.push(outcome))
  send(LIMITS.redis.bytesMax + 1)
  t.ok(await eventually(() => inboxes.b.parcels.length === 1), 'a larger one goes alone')
  send(1)
  t.ok(await eventually(() => outcomes.length === 1))
  t.strictSame(outcomes, ['unsent'])
  t.ok(await eventually(() => a.wire.figures.unanswered === 0), 'forgotten with its budget')
  send(1)
  t.ok(await eventually(() => inboxes.b.parcels.length === 2))
})

t.test('time in the stream is taken off the budget; too old is dropped', { skip }, async (t) => {
  const { names, inboxes, client } = await pair(t, shared as EngineAddress)
  const [seconds] = await client.time()
  const entry = (ageMs: number, trace: string) => {
    const { shard, epoch, envelope } = parcelOf(names.a, trace)
    const fields = ['v', '1', 'h', JSON.stringify({ from: names.a, copies: [1] })]
    const body = JSON.stringify([['p', 1, shard, epoch, envelope]])
    return client.xadd(
      `in:${names.b}x`,
      `${Number(seconds) * 1_000 - ageMs}-1`,
      ...sealed(names.b, ...fields, 'b', body),
    )
  }
  await entry(LIMITS.redis.entryAgeMs + 10_000, 'old')
  await entry(10_000, 'waited')
  // An old master's stream comes back with what was in it.
  await client.rename(`in:${names.b}x`, `in:${names.b}`)
  t.ok(await eventually(() => inboxes.b.parcels.length === 1))
  const { envelope } = inboxes.b.parcels[0]!
  t.equal(envelope.trace, 'waited')
  t.ok(envelope.budgetMs <= 20_000 && envelope.budgetMs > 15_000, `${envelope.budgetMs} ms left`)
})

t.test('an entry that comes again is taken once', { skip }, async (t) => {
  const { names, inboxes, client } = await pair(t, shared as EngineAddress)
  const [seconds] = await client.time()
  const known = new Map<string, string[]>()
  const add = (id: string) => {
    const { shard, epoch, envelope } = parcelOf(names.a, id)
    const header = JSON.stringify({ from: names.a, copies: [1] })
    const body = JSON.stringify([['p', 1, shard, epoch, envelope]])
    const fields = known.get(id) ?? sealed(names.b, 'v', '1', 'h', header, 'b', body)
    known.set(id, fields)
    return client.xadd(`in:${names.b}`, id, ...fields)
  }
  const [first, second] = [`${Number(seconds) + 1}000-7`, `${Number(seconds) + 1}000-8`]
  await add(first)
  t.ok(await eventually(() => inboxes.b.parcels.length === 1))
  // A failover: what was read is back, with something new behind it.
  await client.del(`in:${names.b}`)
  await add(first)
  await add(second)
  t.ok(await eventually(() => inboxes.b.parcels.at(-1)?.envelope.trace === second))
  t.strictSame(
    inboxes.b.parcels.map(({ envelope }) => envelope.trace),
    [first, second],
  )
})

t.test('what a newer Kontor says is refused, and told once', { skip }, async (t) => {
  const { a, b, names, inboxes, client } = await pair(t, shared as EngineAddress)
  inboxes.b.reply = null
  const answer = ask(a.wire, names.b, parcelOf(names.a))
  t.ok(await eventually(() => inboxes.b.parcels.length === 1))
  const header = JSON.stringify({ from: names.a, copies: [1] })
  const newer = WIRE_FORMAT + 1
  for (let i = 0; i < 3; i++)
    await client.xadd(
      `in:${names.b}`,
      '*',
      ...sealed(names.b, 'v', String(newer), 'h', header, 'b', '?'),
    )
  const reply = await answer
  t.match(reply, {
    outcome: 'refused',
    error: { code: 'UNAVAILABLE', message: new RegExp(`format ${newer}`) },
  })
  t.equal(inboxes.b.parcels.length, 1)
  t.ok(await eventually(() => b.told.some((text) => text.includes(`format ${newer}`))))
  t.equal(b.told.filter((text) => text.includes(`format ${newer}`)).length, 1)
})

t.test('nonsense in a stream harms nobody', { skip }, async (t) => {
  const { a, b, names, client } = await pair(t, shared as EngineAddress)
  const header = JSON.stringify({ from: randomUUID(), copies: [] })
  await client.xadd(`in:${names.b}`, '*', 'what', 'ever')
  await client.xadd(`in:${names.b}`, '*', ...sealed(names.b, 'v', '1', 'h', header, 'b', '[["p"'))
  await client.xadd(
    `in:${names.b}`,
    '*',
    ...sealed(names.b, 'v', '1', 'h', header, 'b', '[["z",1],["r",9,{}],["p"]]'),
  )
  t.equal((await ask(a.wire, names.b, parcelOf(names.a)))?.outcome, 'answered')
  t.ok(b.told.some((text) => text.includes('an entry of an inbox')))
})

t.test('FLUSHALL: the inboxes are made again, and the edge is told', { skip }, async (t) => {
  const { a, names, client } = await pair(t, await own(t))
  t.ok(await insist(a.wire, names.b, names.a))
  for (let i = 1; i <= 3; i++) {
    await client.flushall()
    t.ok(await insist(a.wire, names.b, names.a, 3_000), `answered after flush ${i}`)
    t.ok(await eventually(() => a.reconnects === i), `the edge resends: ${a.reconnects}`)
  }
})

t.test('CLIENT KILL: connections are made again', { skip }, async (t) => {
  const { a, b, names, client } = await pair(t, await own(t))
  t.ok(await insist(a.wire, names.b, names.a))
  for (let i = 0; i < 5; i++) {
    await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    t.ok(await insist(a.wire, names.b, names.a, 3_000))
  }
  t.ok(await eventually(() => a.reconnects > 0 && b.reconnects > 0))
  t.ok(a.wire.isUp && b.wire.isUp)
})

t.test('Redis away: copies are unsent at once, and all comes back', { skip }, async (t) => {
  const server = await own(t)
  const { a, b, names } = await pair(t, server)
  t.ok(await insist(a.wire, names.b, names.a))
  await server.stop()
  t.ok(await eventually(() => !a.wire.isUp))
  t.strictSame(await ask(a.wire, names.b, parcelOf(names.a), 500), {
    outcome: 'unsent',
    away: true,
  })
  t.match(await ask(a.wire, names.a, parcelOf(names.a)), { outcome: 'answered' }, 'itself it hears')
  a.wire.tell([names.b], { kind: 'stopped' }, names.a)
  t.equal(a.wire.figures.dropped, 1)
  t.equal(a.wire.figures.unanswered, 0, 'nothing piles up')
  await server.start()
  t.ok(await insist(a.wire, names.b, names.a, 5_000))
  t.ok(await eventually(() => a.reconnects === 1 && b.reconnects === 1))
})

t.test('a member starts without Redis, and is heard once it is there', { skip }, async (t) => {
  const server = await own(t)
  await server.stop()
  const { wire, told } = wireTo(t, server)
  const inbox = new RecordingInbox()
  const name = randomUUID()
  await wire.serve(name, inbox)
  t.notOk(wire.isUp)
  t.ok(told.some((text) => text.includes('without Redis')))
  await server.start()
  t.ok(await eventually(() => wire.isUp))
  const other = wireTo(t, server).wire
  const from = randomUUID()
  await other.serve(from, new RecordingInbox())
  t.ok(await insist(other, name, from))
})

t.test('Redis full: unsent at once, and on again when there is room', { skip }, async (t) => {
  const { a, names, client } = await pair(t, await own(t))
  t.ok(await insist(a.wire, names.b, names.a))
  await client.config('SET', 'maxmemory', '1')
  t.match(await ask(a.wire, names.b, parcelOf(names.a), 1_000), { outcome: 'unsent', away: true })
  t.ok(a.told.some((text) => text.includes('refuses')))
  await client.config('SET', 'maxmemory', '0')
  t.ok(await insist(a.wire, names.b, names.a))
})

t.test('Redis stands still: it counts as away, and is found again', { skip }, async (t) => {
  const server = await own(t)
  const { a, names } = await pair(t, server)
  t.ok(await insist(a.wire, names.b, names.a))
  server.freeze()
  a.wire.send(names.b, parcelOf(names.a), () => undefined)
  const bothLost = () => a.wire.figures.losses === 2
  t.ok(await eventually(bothLost, LIMITS.redis.silentMs * 2))
  t.match(await ask(a.wire, names.b, parcelOf(names.a), 500), { outcome: 'unsent', away: true })
  server.thaw()
  t.ok(await insist(a.wire, names.b, names.a, 10_000))
})

t.test('what Redis has not taken yet is bounded', { skip }, async (t) => {
  const server = await own(t)
  const { a, names } = await pair(t, server)
  t.ok(await insist(a.wire, names.b, names.a))
  server.freeze()
  const messages = [{ type: 'create', body: 'x'.repeat(LIMITS.redis.bytesMax) }]
  const count = LIMITS.redis.backlogBytesMax / LIMITS.redis.bytesMax + 2
  const outcomes: string[] = []
  for (let i = 0; i < count; i++) {
    const parcel = parcelOf(names.a, 'large', { messages, budgetMs: 60_000 })
    a.wire.send(randomUUID(), parcel, ({ outcome }) => outcomes.push(outcome))
  }
  a.wire.tell([names.b], { kind: 'stopped' }, names.a)
  t.ok(await eventually(() => outcomes.length > 0))
  t.strictSame(outcomes, ['unsent', 'unsent'], 'past the bound, at once')
  t.equal(a.wire.figures.dropped, 1)
  server.thaw()
  t.ok(await insist(a.wire, names.b, names.a, 20_000), 'it is taken, or lost with its connection')
})

t.test('a replica is no place to write: the other address is tried', { skip }, async (t) => {
  const [first, second] = [await own(t), await own(t)]
  const replica = new Redis({ host: first.host, port: first.port })
  t.teardown(() => replica.disconnect())
  await replica.replicaof(second.host, second.port)
  // It would wait for its replica.
  t.teardown(() => second.kill())
  const told: string[] = []
  const tell = (_: object, text: string): void => void told.push(text)
  const urls = [first, second].map(({ host, port }) => `redis://${host}:${port}`)
  const log = { debug: tell, info: tell, warn: tell, error: tell }
  const wire = redisWire({ urls, clock, secret: SECRET, log })
  t.teardown(() => wire.stop())
  const name = randomUUID()
  await wire.serve(name, new RecordingInbox())
  t.ok(await eventually(() => wire.isUp))
  const other = wireTo(t, second).wire
  const from = randomUUID()
  await other.serve(from, new RecordingInbox())
  t.ok(await insist(other, name, from))
})

t.test('what no member has sealed is not taken, and told once', { skip }, async (t) => {
  const { a, b, names, inboxes, client } = await pair(t, shared as EngineAddress)
  // Another member: entries of `a` by a second hand would be older than its own, or newer.
  const forged = JSON.stringify([['p', 1, 0, 0, parcelOf(names.a).envelope]])
  const header = JSON.stringify({ from: randomUUID(), copies: [1] })
  const plain = ['v', '1', 'h', header, 'b', forged]
  const other = new Seal({ secret: 'of another store', nowMs: () => clock.nowMs() })
  for (const fields of [plain, other.close(`in:${names.b}`, plain), sealed(names.a, ...plain)]) {
    await client.xadd(`in:${names.b}`, '*', ...fields)
  }
  const genuine = sealed(names.b, ...plain)
  for (let i = 0; i < 3; i++) await client.xadd(`in:${names.b}`, '*', ...genuine)
  t.ok(await eventually(() => inboxes.b.parcels.length > 0))
  // Behind all of them.
  await ask(a.wire, names.b, parcelOf(names.a))
  t.equal(inboxes.b.parcels.length, 2, 'the genuine one, once, and what came after it')
  t.equal(b.told.filter((text) => text.includes('is not taken')).length, 1)
})
