// A shard on its way from one owner to the next: nothing lost, nothing twice, nothing answered by
// who may not (PROTOCOL 3.8).

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../../config/limits.ts'
import type { WireReply } from '../../../protocol/message.ts'
import { settle } from '../../testing/harness.ts'
import { Scene, code, data, latch } from '../testing/scene.ts'

const NEXT = { incarnation: 'b', epoch: 9 }

t.test('what was decided is answered, the rest goes to the next owner', async (t) => {
  const hooks = { beforeAppend: (): Promise<null> | null => null }
  const rule = latch()
  const scene = new Scene({ hooks, rules: () => rule.opened.then(() => []) })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const other = await scene.made()
  const append = latch()
  hooks.beforeAppend = () => append.opened.then(() => null)
  const out: string[] = []
  const say = (name: string, asked: Promise<WireReply>): void =>
    void asked.then((reply) => out.push(`${name} ${code(reply)}`))
  const tell = (token: string, to = id, body = {}): Promise<WireReply> =>
    scene.tell(scene.envelope(to, { say: [['append', { token, ...body }]], key: token }))
  say('flying', tell('flying'))
  await settle()
  say('open', tell('open'))
  say('read', scene.tell(scene.envelope(id)))
  say('waiting', tell('waiting', other, { wait: 'rule' }))
  await settle()
  const sealed = scene.shard.seal()
  say('late', tell('late'))
  rule.open()
  await settle()
  t.same(out, [], 'nothing leaves before its commit')
  append.open()
  t.equal(await scene.run(sealed, 0), true)
  t.same(out, ['flying success', 'open success', 'read success'])
  const { head } = scene.shard.gate
  await settle()
  scene.shard.signedOver(NEXT)
  await settle()
  t.same(out.slice(3), ['waiting moved', 'late moved'])
  t.equal(scene.shard.gate.newest, head, 'nothing more was decided')
  t.same(await tell('later'), { outcome: 'moved', shard: 0, owner: NEXT })
  scene.open()
  await scene.run(scene.shard.claim())
  for (const token of ['flying', 'late']) t.equal(code(await scene.run(tell(token))), 'success')
  t.equal(code(await scene.run(tell('waiting', other, { wait: 'rule' }))), 'success')
  t.same(await scene.tokens(id), ['first', 'flying', 'open', 'late'])
  t.same(await scene.tokens(other), ['first', 'waiting'])
  t.same(scene.steppedDown, [])
})

t.test('called off: it serves again, with what it has kept, each once', async (t) => {
  const rule = latch()
  const scene = new Scene({ rules: () => rule.opened.then(() => []) })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const body = { token: 'waiting', wait: 'rule' }
  const waiting = scene.tell(
    scene.envelope(id, {
      say: [
        ['append', { token: 'before' }],
        ['append', body],
      ],
    }),
  )
  const behind = scene.tell(scene.envelope(id, { say: [['append', { token: 'behind' }]] }))
  await settle()
  t.equal(await scene.run(scene.shard.seal()), true)
  const late = scene.tell(scene.envelope(id, { say: [['append', { token: 'late' }]] }))
  rule.open()
  await settle()
  scene.shard.unseal()
  t.equal(code(await scene.run(waiting)), 'success')
  t.same([data(await behind), data(await late)], [4, 5])
  t.same(await scene.tokens(id), ['first', 'before', 'waiting', 'behind', 'late'])
})

t.test('of what was cut in two nobody says that nothing was done', async (t) => {
  for (const how of ['moved', 'refused'] as const) {
    const rule = latch()
    const scene = new Scene({ rules: () => rule.opened.then(() => []) })
    await scene.run(scene.shard.claim())
    const id = await scene.made()
    const say: [string, object][] = [
      ['append', { token: 'a' }],
      ['append', { token: 'b', wait: 'rule' }],
    ]
    const cut = scene.tell(scene.envelope(id, { say, budgetMs: 100 }))
    const whole = scene.tell(scene.envelope(id, { say, budgetMs: 100 }))
    await settle()
    t.equal(await scene.run(scene.shard.seal()), true)
    if (how === 'moved') scene.shard.signedOver(NEXT)
    else {
      await scene.clock.advance(100)
      scene.shard.unseal()
    }
    const moved = { outcome: 'moved', shard: 0, owner: NEXT }
    if (how === 'moved') {
      t.same(await scene.run(cut), { ...moved, taken: true })
      t.same(await scene.run(whole), moved)
    } else {
      t.equal(code(await scene.run(cut)), 'OUTCOME_UNKNOWN')
      t.equal(code(await scene.run(whole)), 'UNAVAILABLE')
    }
  }
})

t.test('a create that was cut in two is no new actor the second time', async (t) => {
  for (const key of [undefined, 'k']) {
    const rule = latch()
    const scene = new Scene({ rules: () => rule.opened.then(() => []) })
    await scene.run(scene.shard.claim())
    const id = scene.newUuid(0)
    const say: [string, object?][] = [
      ['open', { token: 'a' }],
      ['append', { token: 'b', wait: 'rule' }],
    ]
    const create = { say, virtual: true, fresh: true as const, ...(key ? { key } : null) }
    const asked = scene.tell(scene.envelope(id, create))
    await settle()
    t.equal(scene.shard.gate.head, 1, 'the first half is committed')
    t.equal(await scene.run(scene.shard.seal()), true)
    scene.shard.passivation.clear()
    rule.open()
    scene.shard.unseal()
    t.equal(code(await scene.run(asked)), 'success')
    t.same(await scene.tokens(id), ['a', 'b'])
    t.equal(scene.shard.gate.head, 2)
    if (key === undefined) continue
    await scene.restart()
    const repeated = scene.ask(scene.newUuid(0), { say, key, virtual: true })
    t.match(await scene.run(repeated), { actorId: id }, 'the key leads to the first')
  }
})

t.test('a read that was on its way is not released once the shard is sealed', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const may = latch()
  scene.mayRead = () => may.opened.then(() => true)
  const read = scene.tell(scene.envelope(id))
  await settle()
  t.equal(await scene.run(scene.shard.seal()), true)
  may.open()
  t.equal(code(await scene.run(read)), 'moved')
})

t.test('what is kept is bounded in number, bytes and time', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  t.equal(await scene.run(scene.shard.seal()), true)
  let moved = 0
  const tell = (token: string): void =>
    void scene
      .tell(scene.envelope(id, { say: [['append', { token }]] }))
      .then((reply) => (moved += reply.outcome === 'moved' ? 1 : 0))
  tell('x'.repeat(LIMITS.sharding.sealedHeldBytesMax + 1))
  tell('y')
  await settle()
  t.equal(moved, 1, 'one larger than all may be kept alone')
  await scene.clock.advance(LIMITS.sharding.sealedHeldMs - 1)
  t.equal(moved, 1)
  await scene.clock.advance(1)
  t.equal(moved, 2, 'its time is over')
  for (let i = 0; i < LIMITS.sharding.sealedHeldMax + 3; i++) tell('z')
  await settle()
  t.equal(moved, 5, 'three are too many')
})

t.test('one that can not be sealed in time serves on', async (t) => {
  const append = latch()
  const hooks = { beforeAppend: (): Promise<null> | null => null }
  const scene = new Scene({ hooks })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  hooks.beforeAppend = () => append.opened.then(() => null)
  const stuck = scene.tell(scene.envelope(id, { say: [['append', { token: 'stuck' }]] }))
  await settle()
  const sealed = scene.shard.seal()
  const late = scene.tell(scene.envelope(id, { say: [['append', { token: 'late' }]] }))
  t.equal(await scene.run(sealed), false)
  t.equal(scene.shard.state, 'serving')
  append.open()
  t.same([data(await scene.run(stuck)), data(await scene.run(late))], [2, 3])
  t.equal(await scene.run(scene.shard.seal()), true, 'now it can')
})

t.test('what arrives while it is claimed waits for it', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  scene.readMs = 20
  const next = scene.open()
  const early = scene.tell(scene.envelope(id, { say: [['append', { token: 'early' }]] }))
  const claimed = next.claim()
  const read = scene.tell(scene.envelope(id))
  await scene.run(claimed)
  t.equal(data(await scene.run(early)), 2)
  t.same(data(await scene.run(read)), ['first', 'early'])
})

t.test('a lease that is over begins no turn and releases no read', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const { head } = scene.shard.gate
  scene.mayServe = false
  const say: [string, object][] = [['append', { token: 'no' }]]
  t.equal(code(await scene.tell(scene.envelope(id, { say }))), 'moved')
  scene.mayServe = true
  scene.mayRead = () => false
  t.equal(code(await scene.tell(scene.envelope(id))), 'moved')
  t.equal(scene.shard.gate.newest, head)
})

t.test('read ahead: a claim needs no read of what was there before', async (t) => {
  const scene = new Scene({ shards: 1 })
  await scene.run(scene.shard.claim())
  const ids: string[] = []
  for (let i = 0; i < 20; i++) ids.push(await scene.made())
  // What is committed from here on is in the log alone.
  scene.journal.hooks.beforeWrite = () => 'unknown'
  for (let i = 0; i < 20; i++) {
    await scene.run(scene.ask(ids[i]!, { say: [['renumber', { number: `N${i}` }]] }))
  }
  const ahead = await scene.run(scene.shard.prefetch())
  t.ok(ahead.tail.length >= 20)
  await scene.run(scene.ask(ids[0]!, { say: [['renumber', { number: 'M' }]] }))
  const late = await scene.run(scene.shard.prefetch())
  for (const read of [ahead, late]) {
    const next = scene.open()
    const before = scene.reads.sum
    await scene.run(next.claim(undefined, { prefetched: read }))
    // One of them is the flusher's: the tail may be an older version's, its counter behind its row.
    t.ok(scene.reads.sum - before <= 4, `${scene.reads.sum - before} reads`)
    t.same(await scene.tokens(ids[0]!), ['first'])
    const taken = scene.ask(ids[1]!, { say: [['renumber', { number: 'M' }]] })
    t.equal(code(await scene.run(taken)), 'ALREADY_EXISTS')
    const free = scene.ask(ids[2]!, { say: [['renumber', { number: 'N0' }]], preview: true })
    t.equal(code(await scene.run(free)), 'success', 'it was given up after the first look')
  }
})

t.test('who was being read at a seal that is taken back is read anew', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.restart()
  scene.readMs = 100
  const asked = scene.tell(scene.envelope(id))
  await scene.clock.advance(scene.readMs / 2)
  t.ok(await scene.shard.seal())
  scene.shard.unseal()
  t.equal(code(await scene.run(asked)), 'success')
})

t.test('told what the owner before remembered, a claim reads nothing', async (t) => {
  const scene = new Scene({ shards: 1 })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.run(scene.shard.prepareHandoff(), 1)
  const prefetched = await scene.run(scene.shard.prefetch())
  t.ok(await scene.run(scene.shard.seal()))
  const last = scene.shard.lastSnapshot()
  t.equal(last.poisoned, false)
  const before = scene.reads.sum
  const next = scene.open()
  await scene.run(next.claim(undefined, { prefetched, last }))
  t.equal(scene.reads.sum, before)
  t.same(next.kept, last.memory)
  t.ok(next.clockMs() >= last.memory.clockMs)
  t.same(await scene.tokens(id), ['first'])
})

t.test(
  'read ahead, and the flush offset was stored since: an effect is handed on once',
  async (t) => {
    for (const isTold of [true, false]) {
      const scene = new Scene()
      await scene.run(scene.shard.claim())
      const [from, to] = [await scene.made(), await scene.made()]
      await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
      scene.refusals = Infinity
      const send = (token: string) => scene.run(scene.ask(from, { say: [['send', { token, to }]] }))
      for (const token of ['a', 'b']) await send(token)
      const prefetched = await scene.run(scene.shard.prefetch())
      await scene.run(scene.shard.prepareHandoff(), 1)
      const flush = await scene.journal.derived.consumer(0, 'flush')
      t.ok(prefetched.flush < flush!, 'it was read ahead from below')
      t.ok(await scene.run(scene.shard.seal()))
      const last = isTold ? { last: scene.shard.lastSnapshot() } : {}
      scene.shard.outbox.stop()
      const next = scene.open()
      await scene.run(next.claim(undefined, { prefetched, ...last }))
      t.equal(next.outbox.size, 2)
      scene.refusals = 0
      await scene.clock.advance(LIMITS.sharding.relayRetryMsMax)
      t.equal(next.outbox.size, 0)
      t.equal(next.outbox.relayed, next.gate.head)
      t.same(await scene.tokens(to), ['first', 'a', 'b'])
    }
  },
)

t.test('before a handoff the flush offset comes to the head, while it serves', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.run(scene.ask(id, { say: [['append', { token: 'a' }]] }))
  await scene.run(scene.shard.prepareHandoff(), 1)
  t.equal(await scene.journal.derived.consumer(0, 'flush'), scene.shard.gate.head)
  scene.journal.hooks.beforeWrite = () => 'unknown'
  await scene.run(scene.ask(id, { say: [['append', { token: 'b' }]] }))
  const began = scene.clock.monotonicMs()
  await scene.run(scene.shard.prepareHandoff())
  t.ok(
    scene.clock.monotonicMs() - began <= LIMITS.sharding.handoffPrepareMs + 100,
    'it waits no longer',
  )
})

t.test('any sequence of seals, moves and doubled copies: each effect once', async (t) => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('ask' as const), actor: fc.nat(2), again: fc.boolean() }),
    fc.record({ do: fc.constantFrom('unseal' as const, 'move' as const, 'kill' as const) }),
    fc.record({ do: fc.constant('wait' as const), ms: fc.nat(60) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.nat(3), async (steps, readMs) => {
      const hooks = { beforeAppend: (): Promise<null> => later(3) }
      const scene = new Scene({ hooks, readMs })
      const later = (ms: number): Promise<null> =>
        new Promise((resolve) => scene.clock.after(ms, () => resolve(null)))
      await scene.run(scene.shard.claim())
      const ids = [await scene.made(), await scene.made(), await scene.made()]
      const asked: Promise<WireReply>[] = []
      let moving: Promise<unknown> = Promise.resolve()
      for (const [i, s] of steps.entries()) {
        if (s.do === 'ask') {
          const envelope = scene.envelope(ids[s.actor]!, { say: [['append', { token: `${i}` }]] })
          asked.push(scene.ask(ids[s.actor]!, envelope))
          if (s.again) void scene.tell({ ...envelope, copy: 1 })
        } else if (s.do === 'wait') await scene.clock.advance(s.ms)
        else if (s.do === 'kill') {
          await scene.run(moving)
          moving = scene.restart()
        } else {
          await scene.run(moving)
          const { shard } = scene
          const isMove = s.do === 'move'
          moving = shard.seal().then(async (isSealed) => {
            await later(5)
            if (!isSealed) return
            if (!isMove) return shard.unseal()
            const next = scene.open()
            shard.signedOver(NEXT)
            await next.claim()
          })
        }
      }
      await scene.run(moving)
      const replies = await scene.run(Promise.all(asked))
      for (const reply of replies) if (code(reply) !== 'success') throw new Error(code(reply))
      for (const [actor, id] of ids.entries()) {
        const wanted = steps.flatMap((s, i) =>
          s.do === 'ask' && s.actor === actor ? [`${i}`] : [],
        )
        const tokens = (await scene.tokens(id)) as string[]
        if (tokens.toSorted().join() !== ['first', ...wanted].toSorted().join()) {
          throw new Error(`${tokens.join()} for ${wanted.join()}`)
        }
      }
      if (scene.logged.length > 0) throw new Error(scene.logged.join())
    }),
    { numRuns: 60 },
  )
  t.pass()
})
