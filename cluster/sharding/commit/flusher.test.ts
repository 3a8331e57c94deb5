// What is committed and not yet in the derived rows: it is never forgotten, whatever a write says,
// and groups wait when there is too much of it (PROTOCOL 3.6 "Reads ahead of a turn", 3.10, 3.12).

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../../config/limits.ts'
import { placeOfKey, shardOf } from '../../../protocol/ids.ts'
import type { AppendOutcome, DerivedRow } from '../../../storage/journal.ts'
import type { MemoryHooks } from '../../../storage/memory/journal.ts'
import { seeded, settle } from '../../testing/harness.ts'
import { Scene, code, data, latch } from '../testing/scene.ts'

t.test('the flush offset passes nothing that was not written', async (t) => {
  let failing = true
  const hooks: MemoryHooks = {
    beforeWrite: (_, rows) =>
      failing && rows.some((row) => row.kind === 'entry') ? 'unknown' : null,
  }
  const scene = new Scene({ hooks })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  for (let i = 0; i < 5; i++) {
    await scene.clock.advance(LIMITS.sharding.flushStoredMs / 3)
    await scene.run(scene.ask(id, { say: [['append', { token: `${i}` }]] }))
  }
  t.equal(await scene.journal.derived.consumer(0, 'flush'), null)
  failing = false
  await scene.clock.advance(LIMITS.sharding.flushStoredMs + LIMITS.sharding.flushRetryMs)
  t.equal(await scene.journal.derived.consumer(0, 'flush'), 6)
  await scene.restart()
  t.same(await scene.tokens(id), ['first', '0', '1', '2', '3', '4'])
})

t.test(
  'whatever writes say and whenever owners die, each finds what was acknowledged',
  async (t) => {
    const told: (AppendOutcome | null)[] = [null, null, 'unknown', 'full']
    await fc.assert(
      fc.asyncProperty(fc.integer(), fc.nat(5), async (seed, readMs) => {
        const chance = seeded(seed)
        const scene = new Scene({ readMs, seed, hooks: {} })
        // A write may be there in part, be there and not say so, or take its time.
        scene.journal.hooks.beforeWrite = async (shard, rows) => {
          const said = told[Math.floor(chance() * told.length)]!
          await new Promise<void>((resolve) => scene.clock.after(chance() * 40, resolve))
          if (said === null) return null
          const some = rows.filter(() => chance() < 0.5)
          for (const row of some) if (isAlone(row)) scene.journal.state.registers.put(shard, row)
          return said
        }
        await scene.run(scene.shard.claim())
        const ids = [await scene.made(), await scene.made()]
        const wanted = ids.map(() => ['first'])
        for (let i = 0; i < 60; i++) {
          const actor = Math.floor(chance() * 2)
          const body = { token: `${i}` }
          const reply = await scene.run(scene.ask(ids[actor]!, { say: [['append', body]] }))
          if (code(reply) !== 'success') throw new Error(code(reply))
          wanted[actor]!.push(`${i}`)
          if (chance() < 0.1) await scene.restart()
          if (chance() < 0.2) scene.shard.sweep(true)
          if (chance() < 0.1) scene.shard.passivation.clear()
        }
        for (const [actor, id] of ids.entries()) {
          const tokens = (await scene.tokens(id)) as string[]
          if (tokens.join() !== wanted[actor]!.join()) throw new Error(tokens.join())
        }
      }),
      { numRuns: 25 },
    )
    t.pass()
  },
)

/** Rows that an engine may have though others of the same write are not there. */
function isAlone(row: DerivedRow): boolean {
  return row.kind === 'entry' || row.kind === 'alias' || row.kind === 'mark'
}

t.test('groups wait while what is committed is not flushed for too long', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const write = latch()
  scene.journal.hooks.beforeWrite = () => write.opened.then(() => null)
  const tell = (token: string) => scene.tell(scene.envelope(id, { say: [['append', { token }]] }))
  t.equal(data(await scene.run(tell('a'))), 2)
  await scene.clock.advance(LIMITS.sharding.unflushedMsMax - 100)
  t.equal(data(await scene.run(tell('b'))), 3, 'not yet')
  await scene.clock.advance(200)
  let isOut = false
  const late = tell('c').then((reply) => ((isOut = true), reply))
  await scene.clock.advance(10_000)
  t.equal(isOut, false)
  t.equal(scene.shard.gate.newest - scene.shard.gate.head, 1)
  write.open()
  t.equal(data(await scene.run(late, 1, 100)), 4, 'it goes on by itself')
})

t.test('what is durable no longer counts as bytes that are not', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const append = (token: string) => scene.run(scene.ask(id, { say: [['append', { token }]] }))
  for (const token of ['a', 'b']) await append(token)
  t.equal(scene.shard.flusher.tailBytes, 0)
  const write = latch()
  scene.journal.hooks.beforeWrite = () => write.opened.then(() => null)
  const bytes = 100_000
  await append('x'.repeat(bytes))
  t.ok(scene.shard.flusher.tailBytes > bytes, 'on its way')
  await append('y'.repeat(bytes))
  t.ok(scene.shard.flusher.tailBytes > 2 * bytes, 'and what waits behind it')
  const next = await scene.restart()
  t.ok(next.flusher.tailBytes > 2 * bytes, 'the next owner has it to write')
  write.open()
  await settle()
  t.equal(next.flusher.tailBytes, 0)
})

t.test('a flush offset that takes long to be stored holds no group up', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  let store = latch()
  scene.journal.hooks.beforeWrite = (_, rows) =>
    rows.some(({ kind }) => kind === 'shard') ? store.opened.then(() => null) : null
  const tell = (token: string) => scene.tell(scene.envelope(id, { say: [['append', { token }]] }))
  await scene.clock.advance(LIMITS.sharding.flushStoredMs + LIMITS.sharding.unflushedMsMax + 100)
  t.equal(code(await scene.run(tell('at rest'), 1, 100)), 'success')
  store.open()
  await settle()
  store = latch()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs)
  t.equal(code(await scene.run(tell('the offset follows this'), 1, 100)), 'success')
  await scene.clock.advance(LIMITS.sharding.unflushedMsMax + 100)
  t.equal(code(await scene.run(tell('behind it'), 1, 100)), 'success')
})

t.test('a mark that has left the window is known before its row is there', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const append = (i: number) =>
    scene.ask(id, { say: [['append', { token: `${i}` }]], key: `k${i}` })
  const some = (from: number, count: number) =>
    Promise.all(Array.from({ length: count }, (_, i) => append(from + i)))
  for (let i = 0; i < LIMITS.sharding.marksMax; i += 50) await scene.run(some(i, 50))
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  scene.journal.hooks.beforeWrite = () => 'unknown'
  await scene.run(some(LIMITS.sharding.marksMax, 50))
  scene.readMs = 5
  const repeat = async (why: string) => t.equal(data(await scene.run(append(3))), 5, why)
  await repeat('in memory')
  scene.shard.passivation.clear()
  await repeat('though its actor was at rest')
  await scene.restart()
  await repeat('by the next owner')
  scene.journal.hooks.beforeWrite = undefined
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  await scene.restart()
  await repeat('from its row')
  t.equal(((await scene.tokens(id)) as string[]).length, LIMITS.sharding.marksMax + 51)
})

t.test('a snapshot holds the marks of its own time', async (t) => {
  const append = latch()
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const ask = (i: number, size = 0) =>
    scene.tell(
      scene.envelope(id, { say: [['append', { token: `${i}${'x'.repeat(size)}` }]], key: `k${i}` }),
    )
  for (let i = 0; i < LIMITS.sharding.marksMax - 50; i += 50) {
    await scene.run(Promise.all(Array.from({ length: 50 }, (_, j) => ask(i + j))))
  }
  // The group in flight has a snapshot; what is decided behind it pushes marks out, and is lost.
  scene.journal.hooks.beforeAppend = () => append.opened.then(() => null)
  const due = ask(9_000, LIMITS.sharding.snapshotEntryBytesMin * 32)
  await settle()
  const lost = Array.from({ length: 90 }, (_, i) => ask(5_000 + i))
  await settle()
  scene.journal.hooks.beforeAppend = () => 'unknown'
  append.open()
  t.equal(code(await scene.run(due)), 'success')
  await settle()
  const snapshot = await scene.journal.derived.snapshot(id)
  t.equal(snapshot?.offset, scene.shard.gate.head, 'it was written')
  scene.journal.hooks.beforeAppend = undefined
  void Promise.all(lost)
  await scene.restart()
  t.equal(data(await scene.run(ask(0))), 2, 'the first key is still known')
})

t.test('a key read ahead counts with what was flushed since it was asked', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const [a, b] = [await scene.made(), await scene.made()]
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const reserve = (id: string) => scene.ask(id, { say: [['renumber', { number: 'N' }]] })
  // The read of the key by number is under way while another actor takes it, and is flushed.
  scene.readMs = 100
  const ask = scene.tell({ ...scene.envelope(a), to: { type: 'ledger', key: 'N' } })
  scene.readMs = 1
  t.equal(code(await scene.run(reserve(b), 1, 50)), 'success')
  await settle()
  t.match(await scene.journal.derived.alias('ledger', 'N'), { claims: [{ actorId: b }] })
  t.match(await scene.run(ask), { outcome: 'answered', actorId: b })
})

t.test('two who ask for one key at once: one gets it, however slow the reads', async (t) => {
  for (const readMs of [0, 7]) {
    const scene = new Scene({ readMs })
    await scene.run(scene.shard.claim())
    const ids = [await scene.made(), await scene.made(), await scene.made()]
    const claim = (actorId: string) =>
      scene.tell({
        ...scene.envelope('', { say: [['!claim', { actorId, messageId: `m${actorId}` }]] }),
        to: { type: 'ledger', key: 'N' },
      })
    const asked = ids.map(claim)
    const replies = await scene.run(Promise.all(asked))
    t.equal(replies.filter((reply) => data(reply) === true).length, 1)
  }
})

t.test('copies of a create that come while its key is read make one actor', async (t) => {
  for (const readMs of [0, 7]) {
    const scene = new Scene({ readMs })
    await scene.run(scene.shard.claim())
    const create = () =>
      scene.ask(scene.newUuid(0), { say: [['open', { token: 'x' }]], key: 'k', virtual: true })
    const all = await scene.run(Promise.all([create(), create(), create()]))
    const ids = new Set(all.map((reply) => (data(reply) as { id: string }).id))
    t.equal(ids.size, 1)
    await scene.restart()
    t.same((data(await scene.run(create())) as { id: string }).id, [...ids][0])
  }
})

t.test('a create whose first copy ended without an entry has its key all the same', async (t) => {
  const scene = new Scene({ shards: 2, readMs: 5 })
  await scene.run(scene.shard.claim())
  let number = 0
  while (shardOf(placeOfKey('ledger', `N${number}`), 2) !== 1) number++
  const say: [string, object][] = [['open', { number: `N${number}` }]]
  const create = () =>
    scene.tell(scene.envelope(scene.newUuid(0), { say, key: 'k', virtual: true }))
  scene.refusals = 1
  const [first, second] = await scene.run(Promise.all([create(), create()]))
  t.same([code(first), code(second)], ['UNAVAILABLE', 'success'])
  const { id } = data(second) as { id: string }
  await scene.restart()
  t.match(await scene.run(create()), { actorId: id }, 'a repeat finds it')
})

t.test('marks that left their window are forgotten once their rows are there', async (t) => {
  const write = latch()
  const hooks: MemoryHooks = {}
  const scene = new Scene({ hooks })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  hooks.beforeWrite = () => write.opened.then(() => null)
  const say: [string, object][] = [['append', { token: 'x' }]]
  for (let i = 0; i <= LIMITS.sharding.marksMax; i++) {
    t.equal(code(await scene.run(scene.ask(id, { say, key: `k${i}` }))), 'success')
  }
  t.equal(scene.shard.spilled.find(id, 'k0')?.messageId, 'k0')
  write.open()
  await scene.clock.advance(LIMITS.sharding.flushRetryMs)
  t.equal(scene.shard.spilled.find(id, 'k0'), null, 'its row has it')
  t.equal(code(await scene.run(scene.ask(id, { say, key: 'k0' }))), 'success')
  t.equal(((await scene.tokens(id)) as unknown[]).length, LIMITS.sharding.marksMax + 2)
})
