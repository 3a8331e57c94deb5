// What a new owner reads before it serves: everything, and in few round trips (PROTOCOL 3.5, 3.12).

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { placeOfKey, shardOf } from '../../../protocol/ids.ts'
import type { WireReply } from '../../../protocol/message.ts'
import { LostTenure } from '../../../storage/journal.ts'
import { settle } from '../../testing/harness.ts'
import { Scene, code, data, latch } from '../testing/scene.ts'

t.test('a takeover with 1,000 entries in the tail and slow reads', async (t) => {
  const scene = new Scene({ hooks: {}, shards: 1 })
  await scene.run(scene.shard.claim())
  const ids: string[] = []
  for (let i = 0; i < 500; i++) ids.push(await scene.made())
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  scene.journal.hooks.beforeWrite = () => 'unknown'
  for (let i = 0; i < 500; i++) {
    // What a key's row says is needed for a claim, not for a key that is simply taken.
    const actorId = ids[i]!
    const claim: [string, object] = ['!claim', { actorId, messageId: `m${i}` }]
    const to = { type: 'ledger', key: `K${i}` }
    void scene.tell({ ...scene.envelope('', { say: [claim] }), to })
    void scene.ask(actorId, { say: [['renumber', { number: `N${i}` }]] })
    if (i % 50 === 49) await settle()
  }
  await scene.run(scene.ask(ids[0]!, { say: [['append', { token: 'last' }]] }))
  t.equal(scene.shard.gate.head, 1_501)
  scene.shard.flusher.stop()
  scene.shard.outbox.stop()
  scene.readMs = 3
  const next = scene.open()
  const began = scene.clock.monotonicMs()
  await scene.run(next.claim(), 1)
  const tookMs = scene.clock.monotonicMs() - began
  t.ok(tookMs <= 100, `${tookMs} ms for ${scene.reads.sum} reads`)
  t.ok(scene.reads.max <= LIMITS.sharding.recoveryReadsMax, `${scene.reads.max} at a time`)
  const holder = scene.tell({
    ...scene.envelope('', { say: [['!look', { actorId: ids[1]!, messageId: 'x' }]] }),
    to: { type: 'ledger', key: 'K7' },
  })
  t.equal(data(await scene.run(holder)), false, 'the claim of another is known')
  const taken = scene.ask(ids[1]!, { say: [['renumber', { number: 'N7' }]] })
  t.equal(code(await scene.run(taken)), 'ALREADY_EXISTS')
  t.same(await scene.tokens(ids[0]!), ['first', 'last'])
})

t.test('a takeover waits for no write: the tail is written while it serves', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  scene.journal.hooks.beforeWrite = () => 'unknown'
  await scene.run(scene.ask(id, { say: [['append', { token: 'a' }]] }))
  await scene.restart()
  await scene.run(scene.ask(id, { say: [['append', { token: 'b' }]] }))
  t.same(await scene.tokens(id), ['first', 'a', 'b'])
  scene.journal.hooks.beforeWrite = undefined
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  t.equal(await scene.journal.derived.consumer(0, 'flush'), 3)
  t.equal(
    (await scene.journal.derived.entries(id, { order: 'ascending', after: 0, bytesMax: 9e9 }))
      .length,
    3,
  )
})

t.test('effects older than the flush offset leave first, and while it serves', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const [a, b] = [await scene.made(), await scene.made()]
  const send = (token: string) => scene.ask(a, { say: [['send', { token, to: b }]] })
  scene.refusals = Infinity
  for (const token of ['1', '2']) await scene.run(send(token))
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const flush = scene.shard.gate.head
  t.equal(await scene.journal.derived.consumer(0, 'flush'), flush)
  scene.journal.hooks.beforeWrite = () => 'unknown'
  await scene.run(send('3'))
  scene.shard.flusher.stop()
  scene.shard.outbox.stop()
  scene.refusals = 0
  scene.readMs = 20
  const next = scene.open()
  await scene.run(next.claim())
  t.equal(next.outbox.relayed, 2, 'nothing is taken yet')
  await scene.run(send('4'), 1)
  await scene.clock.advance(LIMITS.sharding.relayRetryMsMax)
  t.same(await scene.tokens(b), ['first', '1', '2', '3', '4'])
  t.equal(next.outbox.relayed, next.gate.head)
})

t.test('effects that nobody takes are bounded: what comes then is refused', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const [a, b] = [await scene.made(), await scene.made()]
  scene.refusals = Infinity
  const send = () => scene.ask(a, { say: [['send', { token: 'x', to: b }]] })
  for (
    let left = LIMITS.sharding.outboxEntriesMax;
    left > 0;
    left -= LIMITS.sharding.actorInFlightMax
  ) {
    const some = Array.from({ length: LIMITS.sharding.actorInFlightMax }, send)
    await scene.run(Promise.all(some))
  }
  t.equal(scene.shard.outbox.size, LIMITS.sharding.outboxEntriesMax)
  t.equal(code(await scene.run(send())), 'TOO_BUSY')
  t.equal(code(await scene.run(scene.ask(b, { say: [['append', {}]] }))), 'TOO_BUSY')
  scene.refusals = 0
  await scene.clock.advance(LIMITS.sharding.relayRetryMsMax)
  t.ok(scene.shard.outbox.size < LIMITS.sharding.outboxEntriesMax)
  data(await scene.run(send()))
})

t.test('an entry that is missing in the log stops the claim', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  scene.journal.hooks.beforeWrite = () => 'unknown'
  for (let i = 0; i < 3; i++) await scene.made()
  scene.journal.state.shards.get(0)!.rows.splice(1, 1)
  const next = scene.open()
  const early = scene.tell(scene.envelope(scene.newUuid(0)))
  await t.rejects(scene.run(next.claim()), { message: /no entry at offset 2/ })
  t.equal(next.state, 'stopped')
  t.equal(code(await early), 'moved', 'what waited is not left alone')
  t.same(scene.steppedDown, [], 'who claimed it knows by the rejection')
})

t.test('a store that does not answer: nothing was done, try again', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs)
  scene.shard.passivation.clear()
  scene.isAway = true
  for (const say of [
    [['append', { token: 'x' }]] as const,
    [['renumber', { number: 'M' }]] as const,
  ]) {
    const reply = await scene.run(scene.ask(id, { say }))
    t.equal(code(reply), 'UNAVAILABLE')
  }
  scene.isAway = false
  t.equal(data(await scene.run(scene.ask(id, { say: [['append', { token: 'y' }]] }))), 2)
  scene.isAway = true
  t.equal(
    code(await scene.run(scene.ask(id, { say: [['renumber', { number: 'M' }]] }))),
    'UNAVAILABLE',
  )
  t.equal(code(await scene.run(scene.ask(id, { say: [['checkpoints']] }))), 'UNAVAILABLE')
  scene.isAway = false
  t.equal(code(await scene.run(scene.ask(id, { say: [['renumber', { number: 'M' }]] }))), 'success')
})

t.test('an actor goes to rest when it was idle for long, not before', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const [idle, busy] = [await scene.made(), await scene.made()]
  const append = (id: string) => scene.run(scene.ask(id, { say: [['append', { token: 'x' }]] }))
  await append(idle)
  await append(busy)
  const sweepFor = async (ms: number): Promise<void> => {
    for (let i = 0; i < ms; i += LIMITS.sharding.sweepEveryMs) {
      await scene.clock.advance(LIMITS.sharding.sweepEveryMs)
      if (i % (4 * LIMITS.sharding.sweepEveryMs) === 0) await append(busy)
      scene.shard.sweep(true)
    }
  }
  await sweepFor(LIMITS.sharding.passivateMs - LIMITS.sharding.sweepEveryMs)
  t.same([...scene.shard.activations.keys()].toSorted(), [idle, busy].toSorted())
  await sweepFor(4 * LIMITS.sharding.sweepEveryMs)
  t.same([...scene.shard.activations.keys()], [busy])
  t.same(await scene.tokens(idle), ['first', 'x'])
})

t.test('claims of a key that the tail changes go on from its row', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const tell = (type: string, actorId: string, messageId: string, key: string) =>
    scene.run(
      scene.tell({
        ...scene.envelope('', { say: [[type, { actorId, messageId }]] }),
        to: { type: 'ledger', key },
      }),
    )
  for (const key of ['freed', 'confirmed', 'claimed']) {
    await tell('!claim', 'a', 'm1', key)
    if (key === 'freed') await tell('!claim', 'a', 'm2', key)
  }
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  scene.journal.hooks.beforeWrite = () => 'unknown'
  await tell('!free', 'a', 'm1', 'freed')
  await tell('!confirm', 'a', 'm1', 'confirmed')
  await tell('!claim', 'a', 'm2', 'claimed')
  await tell('!free', 'a', 'm2', 'claimed')
  scene.readMs = 3
  await scene.restart()
  for (const key of ['freed', 'confirmed', 'claimed']) {
    t.equal(data(await tell('!look', 'b', 'x', key)), false, `${key} is still the first one's`)
  }
})

t.test('a takeover knows marks that few large ones have pushed out of a window', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  // As large as an answer may be that is kept with its mark.
  const token = 'T'.repeat(LIMITS.sharding.markAnswerBytesMax - 80)
  const id = await scene.made(token)
  const first = { say: [['append', { token: 'once' }]] as [string, object][], key: 'first' }
  t.equal(code(await scene.run(scene.ask(id, first))), 'success')
  scene.journal.hooks.beforeWrite = () => 'unknown'
  const { marks } = scene.shard.activations.get(id)!
  for (let i = 0; marks.find('first', 0) !== null; i++) {
    const refused = scene.ask(id, { say: [['append', { token: 'x', unless: token }]], key: `${i}` })
    t.equal(code(await scene.run(refused)), 'INVALID_STATE')
  }
  await scene.restart()
  t.equal(code(await scene.run(scene.ask(id, first))), 'success')
  t.same(await scene.tokens(id), [token, 'once'], 'and took effect once')
})

t.test('a takeover leaves keys of other shards to those', async (t) => {
  const shards = 4
  const number = Array.from({ length: 99 }, (_, i) => `N${i}`).find((key) => {
    return shardOf(placeOfKey('ledger', key), shards) === 1
  })!
  const scene = new Scene({ shards, hooks: { beforeWrite: () => 'unknown' } })
  await scene.run(scene.shard.claim())
  const results = [{ type: '!claim', success: true, data: true }] as const
  const granted: WireReply = {
    outcome: 'answered',
    actorId: null,
    keys: [],
    results,
    position: null,
  }
  Object.assign(scene.shard.context, {
    send: (_: unknown, respond: (reply: WireReply) => void) =>
      queueMicrotask(() => respond(granted)),
  })
  const id = await scene.made()
  const renumber = scene.ask(id, { say: [['renumber', { number }]] })
  t.equal(code(await scene.run(renumber)), 'success')
  scene.journal.hooks.beforeWrite = undefined
  await scene.restart()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  t.equal(await scene.journal.derived.consumer(0, 'flush'), scene.shard.gate.head)
  t.equal(await scene.journal.derived.alias('ledger', number), null)
})

t.test('who is stopped while it claims does not begin to serve', async (t) => {
  const scene = new Scene({ readMs: 100 })
  const claiming = scene.shard.claim()
  claiming.catch(() => undefined)
  await scene.clock.advance(10)
  scene.shard.stepDown('as asked')
  await t.rejects(scene.run(claiming), LostTenure)
  t.equal(scene.shard.state, 'stopped')
})

t.test('bytes of the log that a stored account has are not counted again', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const slow = latch()
  scene.journal.hooks.beforeWrite = () => slow.opened.then(() => null)
  const id = await scene.made()
  // Committed while the rows of the first are on their way: the account is of both.
  await scene.run(scene.ask(id, { say: [['append', { token: 'second' }]] }))
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  scene.journal.hooks.beforeWrite = (_, rows) =>
    rows.some((row) => row.kind === 'entry') ? 'unknown' : null
  slow.open()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs)
  t.equal(scene.shard.flusher.stored, 1)
  t.equal(scene.shard.gate.head, 2)
  await scene.restart()
  const rows = await scene.journal.log.read(0, 0, 9e9)
  const bytes = rows.reduce((sum, { body }) => sum + body.length, 0)
  t.equal(scene.shard.kept.logBytes, bytes)
})
