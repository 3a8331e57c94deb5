// When effects leave an outbox, and in which order: behind appends whose outcome nobody knows, past
// actors that take nothing, and as if each had been taken in the order of the log. Source: PROTOCOL
// 3.6 "Outbox".

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../../config/limits.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { WireReply } from '../../../protocol/message.ts'
import { encodeEntry, joinEntries } from '../../../protocol/entry/entry.ts'
import type { Entry } from '../../../protocol/entry/entry.ts'
import { TestClock, seeded } from '../../testing/harness.ts'
import { Outbox } from './outbox.ts'
import type { OutboxHost } from './outbox.ts'
import { relayOlder } from '../recovery/recovery.ts'
import { AWAY, NOBODY, Relay, answered, effect, targetOf } from '../testing/relay.ts'
import type { Sent } from '../testing/relay.ts'

const FULL: WireReply = { outcome: 'refused', error: errorItem('STORAGE_FULL', '') }
const UNKNOWN: WireReply = { outcome: 'unknown', error: errorItem('OUTCOME_UNKNOWN', '') }

t.test('an actor is noted in an append whose outcome nobody knows, and it is in', async (t) => {
  const relay = new Relay()
  relay.has(effect('K'), effect('L'))
  relay.open.shift()!.respond(answered('k'))
  relay.gate.take()
  relay.gate.failWaiters(UNKNOWN)
  t.equal(relay.gate.hasOpen, false, 'nothing else is noted')
  relay.commit()
  t.same(relay.sent, ['K', '#k', 'L'])
  await relay.clock.advance(LIMITS.sharding.relayRetryMsMax)
  t.same(relay.sent, ['K', '#k', 'L'], 'the next one is asked for once')
  relay.answer('L', answered('l'))
  relay.answer('#k', answered('k'))
  relay.answer('#l', answered('l'))
  t.equal(relay.outbox.size, 0)
  t.equal(relay.outbox.relayed, relay.gate.head)
})

t.test('it is not in after all: the key is asked for again', async (t) => {
  const relay = new Relay()
  relay.has(effect('K'))
  relay.open.shift()!.respond(answered('k'))
  relay.gate.take()
  relay.gate.failWaiters(UNKNOWN)
  await relay.clock.advance(LIMITS.sharding.relayRetryMsMax)
  t.same(relay.sent, ['K'], 'not before that is known')
  relay.gate.drop({ outcome: 'moved', shard: 0 })
  await relay.clock.advance(LIMITS.sharding.relayRetryMsMax)
  relay.answer('K', answered('other'))
  relay.answer('#other', answered('other'))
  t.same(relay.sent, ['K', 'K', '#other'])
  t.equal(relay.outbox.size, 0)
})

t.test('nothing is noted in a sealed shard: the key is asked for again behind it', async (t) => {
  const relay = new Relay()
  relay.has(effect('N'))
  const { newest } = relay.gate
  relay.state = 'sealed'
  relay.answer('N', answered('a'))
  t.equal(relay.gate.newest, newest)
  relay.state = 'serving'
  await relay.clock.advance(LIMITS.sharding.relayRetryMsMax)
  relay.answer('N', answered('a'))
  t.equal(relay.gate.newest, newest + 1)
  relay.answer('#a', answered('a'))
  t.equal(relay.outbox.size, 0)
})

t.test('the disk was full for what was noted: the key is asked for again', async (t) => {
  const relay = new Relay()
  relay.has(effect('K'), effect('#a'))
  relay.open.shift()!.respond(answered('k'))
  relay.gate.take()
  relay.gate.drop(FULL)
  await relay.clock.advance(LIMITS.sharding.relayRetryMsMax)
  t.same(relay.sent, ['K', 'K'])
  for (const to of ['K', '#k', '#a']) relay.answer(to, answered('k'))
  t.equal(relay.outbox.size, 0)
})

t.test('nobody knows whether it was taken: it goes again, before all behind it', async (t) => {
  const relay = new Relay()
  relay.has(effect('#a', '1'), effect('#a', '2'), effect('K'))
  for (const to of ['#a', 'K']) relay.answer(to, UNKNOWN)
  t.equal(relay.outbox.relayed, 0)
  await relay.clock.advance(LIMITS.sharding.relayRetryMsMax)
  t.same(relay.sent, ['#a', 'K', '#a', 'K'])
  t.same(relay.open[0]!.envelope.relay, [0, 1, 0])
  for (const to of ['#a', '#a', 'K', '#k']) relay.answer(to, answered('k'))
  t.equal(relay.outbox.size, 0)
})

t.test('of two actors that the log has for one effect the first one counts', async (t) => {
  const before = new Relay()
  before.has(effect('K'))
  before.answer('K', answered('k'))
  const [sent, noted] = [before.log.get(1)!, before.log.get(2)!]
  const again = { ...noted, p: 'other' }
  const older = new Relay(false)
  for (const [i, entry] of [sent, noted, again].entries()) older.outbox.committed(entry, i + 1)
  older.outbox.sees(3)
  t.same(older.sent, ['#k'])
})

t.test('what is read of before says who an effect by key went to, too', async (t) => {
  const before = new Relay()
  before.has(effect('K'))
  before.answer('K', answered('k'))
  t.equal(before.outbox.relayed, 0, 'it is not taken')
  const rows = Array.from(before.log, ([offset, entry]) => {
    const body = joinEntries([encodeEntry({ ...entry, r: [] })])
    return { shard: 0, epoch: 1, offset, count: 1, commitId: '', body }
  })
  const read = async (_: number, after: number) => rows.filter(({ offset }) => offset > after)
  const next = new Relay(false)
  const journal = { log: { read }, identity: { generation: 'g' } }
  const context = { journal, clock: next.clock, log: { warn: t.fail } }
  const shard = { number: 0, state: 'serving', context, outbox: next.outbox }
  await relayOlder(shard as unknown as Parameters<typeof relayOlder>[0], 0, rows.length)
  next.outbox.sees(rows.length)
  t.same(next.sent, ['#k'], 'the key may be another actor’s by now')
})

t.test('an actor that takes nothing holds back only what may be for it', async (t) => {
  const relay = new Relay()
  relay.has(effect('#stuck'), effect('NEW', '1'), effect('#free'), effect('F'), effect('#stuck'))
  relay.answer('#stuck', AWAY)
  relay.answer('NEW', NOBODY)
  relay.answer('#free', answered('free'))
  relay.answer('F', answered('free'))
  relay.answer('#free', answered('free'))
  relay.has(effect('NEW', '2'))
  relay.answer('NEW', NOBODY)
  relay.has(effect('#free'))
  relay.answer('#free', answered('free'))
  const left = () => relay.open.map(targetOf)
  t.same(left(), [], 'nothing else for the one')
  const before = relay.sent.length
  for (let s = 0; s < 60; s++) {
    await relay.clock.advance(1_000)
    for (const to of left()) relay.answer(to, to === 'NEW' ? NOBODY : AWAY)
  }
  const asked = relay.sent.slice(before)
  t.ok(asked.length < 50, `${asked.length} envelopes in a minute`)
  t.same([...new Set(asked)].toSorted(), ['#stuck', 'NEW'])
  await relay.clock.advance(LIMITS.sharding.relayRetryMsMax)
  relay.answer('#stuck', answered('stuck'))
  // Asked before that one was taken, which may have given it the number.
  relay.answer('NEW', NOBODY)
  await relay.clock.advance(LIMITS.sharding.relayRetryMsMax)
  relay.answer('NEW', answered('stuck'))
  const came: string[] = []
  while (relay.open.length > 0) {
    const [sent] = relay.open
    if (targetOf(sent!) === '#stuck') came.push(sent!.envelope.relay!.slice(1).join('/'))
    relay.answer(targetOf(sent!), answered('stuck'))
  }
  t.same(came, ['1/1', '1/4', '3/0'], 'in the order of the log')
  t.same([left(), relay.outbox.size], [[], 0])
})

t.test('nobody has it, and all that came before is taken: so it is', async (t) => {
  const relay = new Relay()
  relay.has(effect('#a'), effect('NOBODY'), effect('#b'))
  relay.answer('NOBODY', NOBODY)
  relay.answer('#b', answered('b'))
  relay.answer('#a', answered('a'))
  t.equal(relay.outbox.relayed, 0)
  // What has gone past it does not count.
  relay.has(effect('#b'))
  await relay.clock.advance(LIMITS.sharding.relayRetryMsMax)
  relay.answer('NOBODY', NOBODY)
  t.equal(relay.outbox.relayed, 1)
  relay.answer('#b', answered('b'))
  t.equal(relay.outbox.size, 0)
})

t.test('what stays may give a number to its actor, too', async (t) => {
  const relay = new Relay()
  relay.has(effect('#a'), effect('NOBODY'), effect('#a'))
  relay.answer('NOBODY', NOBODY)
  relay.answer('#a', answered('a'))
  relay.has(effect('GIVEN'))
  relay.answer('GIVEN', NOBODY)
  await relay.clock.advance(LIMITS.sharding.relayRetryMsMax)
  relay.answer('NOBODY', NOBODY)
  relay.answer('#a', answered('a'))
  relay.answer('GIVEN', NOBODY)
  await relay.clock.advance(LIMITS.sharding.relayRetryMsMax)
  relay.answer('GIVEN', answered('a'))
  relay.answer('#a', answered('a'))
  t.same([relay.open, relay.outbox.size], [[], 0])
})

interface Plan {
  readonly to: string
  /** Its ledger gets its number by it. */
  readonly gives: boolean
}

/** What each ledger may be known by. */
const NUMBERS = { a: 'A', b: 'B', c: 'C' } as Readonly<Record<string, string>>

/** Ledgers that remember the places of what they took, as PROTOCOL 3.6 has it. */
class Targets {
  readonly tokens = new Map<string, string[]>()
  readonly numbers = new Map([['C', 'c']])
  readonly #places = new Map<string, number>()

  take(id: string, place: number, token: string, gives: boolean): void {
    if (place <= (this.#places.get(id) ?? 0)) return
    this.#places.set(id, place)
    this.tokens.set(id, [...(this.tokens.get(id) ?? []), token])
    if (gives) this.numbers.set(NUMBERS[id]!, id)
  }
}

const plan: fc.Arbitrary<Plan> = fc.oneof(
  fc.record({ to: fc.constantFrom('#a', '#b', '#c'), gives: fc.boolean() }),
  fc.record({ to: fc.constantFrom('A', 'B', 'C', 'D'), gives: fc.constant(false) }),
)

/** What a target, or a key's shard, says to an envelope. */
function replyOf({ envelope }: Sent, plans: readonly Plan[], targets: Targets): WireReply {
  const { to, relay, messages } = envelope
  const offset = relay![1]
  if ('key' in to) {
    const id = targets.numbers.get(to.key)
    return id === undefined ? NOBODY : answered(id)
  }
  const { token } = messages[0]!.body as { token: string }
  targets.take(to.id, offset, token, plans[Number(token)]!.gives)
  return answered(to.id)
}

t.test('whatever takes long, it ends as if one by one had been taken', async () => {
  const property = fc.asyncProperty(
    fc.array(plan, { minLength: 1, maxLength: 12 }),
    fc.nat(),
    async (plans, seed) => {
      const ought = new Targets()
      for (const [i, { to, gives }] of plans.entries()) {
        const id = to.startsWith('#') ? to.slice(1) : ought.numbers.get(to)
        if (id !== undefined) ought.take(id, i + 1, `${i}`, gives)
      }
      const [relay, is, chance] = [new Relay(), new Targets(), seeded(seed)]
      let next = 0
      // Read at once and heard of later, as on a wire.
      const heard: (() => void)[] = []
      for (let steps = 0; next < plans.length || relay.outbox.size > 0; steps++) {
        if (steps > 2_000) throw new Error('effects stay in an outbox')
        if (next < plans.length && chance() < 0.5) {
          relay.has(effect(plans[next]!.to, `${next}`))
          next++
        }
        const isStuck = steps < 100 && chance() < 0.9
        const at = relay.open.findIndex((sent) => targetOf(sent) !== '#a' || !isStuck)
        if (at >= 0) {
          const [sent] = relay.open.splice(at, 1)
          // Nobody knows of some that were taken, and of some that were not.
          const isTaken = chance() < 0.9
          const said = isTaken ? replyOf(sent!, plans, is) : UNKNOWN
          const reply = chance() < 0.1 ? (isTaken ? UNKNOWN : AWAY) : said
          heard.push(() => sent!.respond(reply))
        }
        if (chance() < 0.5) heard.splice(Math.floor(chance() * heard.length), 1)[0]?.()
        if (relay.gate.hasOpen && chance() < 0.1) relay.gate.drop(FULL)
        else if (relay.gate.hasOpen) relay.commit()
        if (chance() < 0.2) await relay.clock.advance(100)
      }
      const of = ({ tokens }: Targets): object => Object.fromEntries([...tokens].toSorted())
      return JSON.stringify(of(is)) === JSON.stringify(of(ought))
    },
  )
  await fc.assert(property, { numRuns: 200 })
})

t.test('what is handed in later, of before, is not relayed because what came meanwhile is', (t) => {
  const context = { send: () => undefined, behaviours: new Map(), clock: new TestClock() }
  const outbox = new Outbox({ number: 0, state: 'serving', context } as unknown as OutboxHost, 5, 2)
  const entry = { e: [effect('#a', '1')], n: 1, b: 'x' } as unknown as Entry
  outbox.sees(5)
  outbox.committed(entry, 6)
  t.equal(outbox.relayed, 2, 'what is still being read may be anything')
  outbox.older([{ entry, offset: 4 }])
  t.equal(outbox.relayed, 3)
  t.equal(outbox.size, 2)
  t.end()
})

t.test('each that is refused waits for its own failures, not for those before it', async (t) => {
  for (const [to, taken] of [
    ['#a', answered('a')],
    ['K', NOBODY],
  ] as const) {
    const relay = new Relay()
    relay.has(effect(to, '1'), effect(to, '2'))
    for (let failures = 0; failures < 5; failures++) {
      relay.answer(to, AWAY)
      await relay.clock.advance(LIMITS.sharding.relayRetryMsMax)
    }
    relay.answer(to, taken)
    const { length } = relay.sent
    relay.answer(to, AWAY)
    await relay.clock.advance(50)
    t.equal(relay.sent.length, length + 1, `${to}: soon again`)
  }
})
