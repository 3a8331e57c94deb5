// Messages that kill: alone from the second death on, given up at the third, listed, replayed
// (PROTOCOL 3.11).

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { placeOfKey, shardOf } from '../../../protocol/ids.ts'
import type { WireReply } from '../../../protocol/message.ts'
import { settle } from '../../testing/harness.ts'
import { entriesOfRow } from '../recovery/log-tail.ts'
import { deadLettersOfAll, replayOf } from './dead-letters.ts'
import { Scene, code, data, latch } from '../testing/scene.ts'

const append = (token: string, more: object = {}): [string, object][] => [
  ['append', { token, ...more }],
]

t.test('given up at the third death: recorded, told, listed, not run', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const asking = { say: append('bad'), key: 'k', crashes: LIMITS.sharding.crashesMax }
  const reply = await scene.run(scene.ask(id, asking))
  t.equal(code(reply), 'POISONED')
  t.match(reply, { results: [{ errors: [{ details: { messageId: 'k' } }] }] })
  t.same(
    await scene.run(scene.ask(id, { ...asking, crashes: 0 })),
    reply,
    'a repeat is told the same',
  )
  const batch: [string, object][] = [...append('one'), ...append('two')]
  await scene.run(scene.ask(id, { say: batch, crashes: LIMITS.sharding.crashesMax }))
  t.same(await scene.tokens(id), ['first'])
  const listed = [
    { messageId: 'k', type: 'ledger', actorId: id, by: 'tester', message: { type: 'append' } },
    { message: { body: { token: 'one' } } },
    { message: { body: { token: 'two' } } },
  ]
  t.match(scene.shard.deadLetters.all(), listed)
  t.equal(scene.shard.lastSnapshot().poisoned, true, 'the next owner is told to read them')
  await scene.clock.advance(LIMITS.sharding.flushStoredMs)
  const stored = await deadLettersOfAll(scene.journal.derived, 1)
  t.same(stored, scene.shard.deadLetters.all(), 'any member can read them')
  scene.journal.hooks.beforeWrite = () => 'unknown'
  await scene.run(scene.ask(id, { say: append('late'), crashes: LIMITS.sharding.crashesMax }))
  await scene.restart()
  t.match(scene.shard.deadLetters.all(), [...listed, { message: { body: { token: 'late' } } }])
})

t.test('the next owner knows what was given up before the handoff', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const giveUp = (token: string) =>
    scene.run(scene.ask(id, { say: append(token), crashes: LIMITS.sharding.crashesMax }))
  await giveUp('before')
  await scene.run(scene.shard.prepareHandoff(), 1)
  const prefetched = await scene.run(scene.shard.prefetch())
  t.ok(await scene.run(scene.shard.seal()))
  const last = scene.shard.lastSnapshot()
  const next = scene.open()
  await scene.run(next.claim(undefined, { prefetched, last }))
  await giveUp('after')
  const listed = ['before', 'after'].map((token) => ({ message: { body: { token } } }))
  t.match(next.deadLetters.all(), listed)
  await scene.clock.advance(LIMITS.sharding.flushStoredMs)
  t.match(await deadLettersOfAll(scene.journal.derived, 1), listed, 'nor is it lost in its row')
})

t.test('what took effect before the death is answered as it was', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const first = await scene.run(scene.ask(id, { say: append('a'), key: 'k' }))
  await scene.restart()
  const again = { say: append('a'), key: 'k', crashes: LIMITS.sharding.crashesMax }
  t.same(await scene.run(scene.ask(id, again)), first)
  t.same(scene.shard.deadLetters.all(), [])
  const read = await scene.run(scene.ask(id, { crashes: LIMITS.sharding.crashesMax }))
  t.equal(code(read), 'POISONED', 'a read is not run either, and leaves nothing')
  t.same(scene.shard.deadLetters.all(), [])
})

t.test('replayed: it takes effect as a message of its own, and leaves the list', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.run(
    scene.ask(id, { say: append('bad'), key: 'k', crashes: LIMITS.sharding.crashesMax }),
  )
  const [deadLetter] = scene.shard.deadLetters.all()
  const { send } = scene.shard.context
  const envelope = replayOf({ ...deadLetter!, message: deadLetter!.message! })
  const replayed = new Promise<WireReply>((resolve) => send(envelope, resolve))
  t.equal(data(await scene.run(replayed)), 2)
  t.same(await scene.tokens(id), ['first', 'bad'])
  t.same(scene.shard.deadLetters.all(), [], 'it is off the list')
  await scene.restart()
  t.same(scene.shard.deadLetters.all(), [])
  await scene.clock.advance(LIMITS.sharding.flushStoredMs)
  t.same(await deadLettersOfAll(scene.journal.derived, 1), [])
})

t.test('the list is bounded: the newest of an actor, and none that is too large', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  for (let i = 0; i < LIMITS.sharding.poisonedMax + 4; i++) {
    const asking = { say: append(`${i}`), key: `k${i}`, crashes: LIMITS.sharding.crashesMax }
    await scene.run(scene.ask(id, asking))
  }
  const [first] = scene.shard.deadLetters.all()
  t.equal(scene.shard.deadLetters.all().length, LIMITS.sharding.poisonedMax)
  t.equal(first?.messageId, 'k4')
  const large = append('x'.repeat(LIMITS.protocol.entryBytesMax))
  const asking = {
    say: large,
    key: 'large',
    bodyHash: 'large',
    crashes: LIMITS.sharding.crashesMax,
  }
  await scene.run(scene.ask(id, asking))
  t.equal(scene.shard.deadLetters.all().at(-1)?.message, null)
})

t.test('after two deaths it runs alone', async (t) => {
  const commit = latch()
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const [a, b] = [await scene.made(), await scene.made()]
  const out: string[] = []
  const say = (name: string, asked: Promise<WireReply>): void =>
    void asked.then((reply) => out.push(`${name} ${code(reply)}`))
  const tell = (id: string, token: string, crashes = 0) =>
    scene.tell(scene.envelope(id, { say: append(token), crashes }))
  scene.journal.hooks.beforeAppend = () => commit.opened.then(() => null)
  say('before', tell(a, 'before'))
  await settle()
  say('suspect', tell(b, 'suspect', LIMITS.sharding.crashesAlone))
  say('other', tell(a, 'other', LIMITS.sharding.crashesAlone))
  say('after', tell(a, 'after'))
  await scene.clock.advance(50)
  t.same(out, ['other moved'], 'another suspect is sent back: it must not die with this one')
  t.equal(scene.shard.gate.newest - scene.shard.gate.head, 1, 'what was begun is ended first')
  commit.open()
  await settle()
  t.same(out.slice(1), ['before success'])
  let alone: string[] = []
  scene.journal.hooks.beforeAppend = () => {
    alone = [...out]
    return null
  }
  await scene.clock.advance(20)
  t.same(out.slice(1), ['before success', 'suspect success', 'after success'])
  t.same(alone.slice(1), ['before success', 'suspect success'], 'then the others go on')
})

t.test('a suspect holds nobody up for long', async (t) => {
  const rule = latch()
  const scene = new Scene({ rules: () => rule.opened.then(() => []) })
  await scene.run(scene.shard.claim())
  const [a, b, c] = [await scene.made(), await scene.made(), await scene.made()]
  const stuck = scene.tell(scene.envelope(a, { say: append('stuck', { wait: 'rule' }) }))
  const say = append('suspect', { wait: 'rule' })
  const suspect = scene.tell(scene.envelope(b, { say, crashes: LIMITS.sharding.crashesAlone }))
  const after = scene.ask(c, { say: append('after') })
  const began = scene.clock.monotonicMs()
  t.equal(code(await scene.run(after)), 'success')
  t.ok(scene.clock.monotonicMs() - began <= 2 * LIMITS.sharding.sealedHeldMs + 200)
  rule.open()
  t.same([code(await scene.run(stuck)), code(await scene.run(suspect))], ['success', 'success'])
})

t.test('a turn that throws: its caller may repeat it, a relay can not', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const { head } = scene.shard.gate
  const crash: [string, object][] = [['crash', {}]]
  t.equal(code(await scene.run(scene.ask(id, { say: crash, key: 'k' }))), 'INTERNAL_ERROR')
  t.equal(scene.shard.gate.head, head, 'no entry: a repeat after a repair runs')
  const relay = [3, 1, 0] as const
  t.equal(code(await scene.run(scene.ask(id, { say: crash, relay }))), 'POISONED')
  t.match(scene.shard.deadLetters.all(), [{ actorId: id, message: { type: 'crash' } }])
})

t.test('a relay whose target can not decide now is tried again, not taken', async (t) => {
  const scene = new Scene({ shards: 2 })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  scene.refusals = 1
  const say: [string, object][] = [['renumber', { number: apart(2) }]]
  const relay = [3, 1, 0] as const
  const refusal = await scene.run(scene.ask(id, { say, relay }))
  t.match(refusal, { outcome: 'refused', error: { code: 'UNAVAILABLE' } })
  t.match(await scene.run(scene.ask(id, { say, relay })), { results: [{ type: 'renumber' }] })
  t.match(await scene.run(scene.ask(id, { say, relay })), { results: [{ type: '!relayed' }] })
})

/** A number that lies in shard 1 of so many. */
function apart(shards: number): string {
  for (let i = 0; ; i++) if (shardOf(placeOfKey('ledger', `N${i}`), shards) === 1) return `N${i}`
}

t.test('what is given up is not recorded before what was there', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  scene.clock.stepWall(-3_600_000)
  const say: [string, object][] = [['append', { token: 'x' }]]
  await scene.run(scene.ask(id, { say, key: 'k'.repeat(32), crashes: LIMITS.sharding.crashesMax }))
  const rows = await scene.journal.log.read(0, 0, 1_000_000)
  const times = rows.flatMap((row) => [...entriesOfRow(row, 0)]).map(({ entry }) => entry.t)
  t.equal(times.length, 2)
  t.ok(times[1]! >= times[0]!)
})
