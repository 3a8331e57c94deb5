// The answer to a repeat is that of the first message, and leaves when the log has what it was told
// by, however it is found (PROTOCOL 3.6 Owner 2 and 5).

import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import type { Envelope, WireReply } from '../../../protocol/message.ts'
import { settle } from '../../testing/harness.ts'
import { Scene, code, latch } from '../testing/scene.ts'

type Say = readonly [string, object][]

const KEY = 'k'.repeat(32)
const append = (token: string): Say => [['append', { token }]]
const LONG: Say = [['renumber', { number: 'n'.repeat(LIMITS.sharding.markAnswerBytesMax) }]]

interface Case {
  readonly name: string
  readonly first: (scene: Scene, id: string) => Envelope
  /** Ids of messages that come between. */
  readonly between?: readonly string[]
  readonly repeat?: (scene: Scene, id: string) => Envelope
  readonly told: string
}

const CASES: readonly Case[] = [
  {
    name: 'by its mark',
    first: (scene, id) => scene.envelope(id, { say: append('a'), key: KEY }),
    told: 'success',
  },
  {
    name: 'by its entry, for its answer is long',
    first: (scene, id) => scene.envelope(id, { say: LONG, key: KEY }),
    told: 'ALREADY_EXISTS',
  },
  {
    name: 'by a mark that has left the window',
    first: (scene, id) => scene.envelope(id, { say: append('a'), key: KEY }),
    between: ['1', '2', '3', '4', '5'],
    told: 'success',
  },
  {
    name: 'by the place of its effect',
    first: (scene, id) => scene.envelope(id, { say: append('a'), relay: [7, 1, 0] }),
    told: 'success',
  },
  {
    name: 'of another body',
    first: (scene, id) => scene.envelope(id, { say: append('a'), key: KEY }),
    repeat: (scene, id) => scene.envelope(id, { say: append('b'), key: KEY }),
    told: 'IDEMPOTENCY_MISMATCH',
  },
]

interface Told {
  readonly scene: Scene
  readonly replies: WireReply[]
  /** What is in flight is evaluated. */
  readonly land: () => void
}

/** A message in flight, and its repeat. */
async function repeated(one: Case): Promise<Told> {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const holder = await scene.made()
  await scene.run(scene.ask(holder, { say: LONG }))
  const id = await scene.made()
  const landing = latch()
  scene.journal.hooks.beforeAppend = () => landing.opened.then(() => null)
  const first = one.first(scene, id)
  void scene.tell(first)
  for (const key of one.between ?? []) {
    void scene.tell(scene.envelope(id, { say: append(key), key }))
  }
  await settle()
  const replies: WireReply[] = []
  const again = one.repeat?.(scene, id) ?? one.first(scene, id)
  void scene.tell({ ...again, copy: 1 }).then((reply) => replies.push(reply))
  await settle()
  return { scene, replies, land: landing.open }
}

for (const one of CASES) {
  t.test(`a repeat that is known ${one.name} waits for the log`, async (t) => {
    const { marksMax } = LIMITS.sharding
    t.teardown(() => overrideLimits({ 'sharding.marksMax': marksMax }))
    if (one.between) overrideLimits({ 'sharding.marksMax': one.between.length - 1 })
    const kept = await repeated(one)
    t.same(kept.replies, [], 'nobody knows yet whether it took effect')
    const { head } = kept.scene.shard.gate
    kept.land()
    await kept.scene.clock.advance(100)
    t.same(kept.replies.map(code), [one.told])
    t.ok(kept.scene.shard.gate.head > head)

    const lost = await repeated(one)
    await lost.scene.journal.log.claim(0)
    lost.land()
    await lost.scene.clock.advance(100)
    t.same(lost.replies.map(code), ['moved'], 'it never took effect, another owner may run it')
  })
}

/** A message is sent, and as many others to its actor as push it out of the window. */
async function spilled(t: Test, say: Say, startMs: number): Promise<[Scene, string]> {
  t.teardown(overrideLimits({ 'sharding.marksMax': 4 }))
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const holder = await scene.made()
  await scene.run(scene.ask(holder, { say: LONG }))
  const id = await scene.made()
  for (const token of ['1', '2', '3', '4', '5']) {
    await scene.run(scene.ask(id, { say: append(token) }))
  }
  await scene.clock.advance(startMs - scene.clock.monotonicMs())
  await scene.run(scene.ask(id, { say, key: KEY }))
  for (let i = 0; i < 5; i++) {
    await scene.run(scene.ask(id, { say: [['append', { token: 'no', unless: 'first' }]] }))
  }
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  return [scene, id]
}

t.test('a mark that has left the window is found on its day and on the next', async (t) => {
  const { callerMarkMs } = LIMITS.storage
  for (const day of [0, 1, 4]) {
    const [scene, id] = await spilled(t, append('once'), day * callerMarkMs + 300_000)
    for (const laterMs of [0, callerMarkMs - 60_000]) {
      await scene.restart()
      await scene.clock.advance(laterMs)
      await scene.run(scene.ask(id, { say: append('once'), key: KEY }))
      const tokens = (await scene.tokens(id)) as string[]
      t.equal(tokens.filter((token) => token === 'once').length, 1, `of day ${day}, ${laterMs}`)
    }
  }
})

t.test('a mark that has left the window, and did not happen after all, is not found', async (t) => {
  t.teardown(overrideLimits({ 'sharding.marksMax': 4 }))
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  for (const token of ['1', '2', '3', '4', '5']) {
    await scene.run(scene.ask(id, { say: append(token) }))
  }
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  scene.journal.hooks.beforeAppend = () => 'full'
  const once = scene.envelope(id, { say: append('once'), key: KEY })
  const lost = [once, ...['6', '7', '8', '9'].map((token) => scene.envelope(id, { say: append(token) }))] // prettier-ignore
  const told = await scene.run(Promise.all(lost.map((envelope) => scene.tell(envelope))))
  t.same([...new Set(told.map(code))], ['STORAGE_FULL'])
  scene.journal.hooks.beforeAppend = undefined
  t.equal(code(await scene.run(scene.ask(id, { say: append('once'), key: KEY }))), 'success')
  t.same(await scene.tokens(id), ['first', '1', '2', '3', '4', '5', 'once'])
})

t.test('a mark whose refusal has gone is not answered by an entry of its number', async (t) => {
  const [scene, id] = await spilled(t, LONG, 60_000)
  await scene.journal.derived.expire!(() => 61_000 + LIMITS.storage.derivedTtlSeconds * 1_000)
  await scene.restart()
  const next = await scene.run(scene.ask(id, { say: append('of its number') }))
  t.equal(code(next), 'success')
  const again = await scene.run(scene.ask(id, { say: LONG, key: KEY }))
  t.equal(code(again), 'ALREADY_EXISTS', 'it runs again')
})

t.test('a key that comes again with one message more: nothing of it is done', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.run(scene.ask(id, { say: append('a'), key: KEY }))
  const reply = await scene.run(scene.ask(id, { say: [...append('a'), ...append('b')], key: KEY }))
  const errors = [{ code: 'IDEMPOTENCY_MISMATCH' }]
  t.match(reply, { results: [{ errors }, { errors }] })
  t.same(await scene.tokens(id), ['first', 'a'])
})

t.test('a message that was voided is told so, whatever its body was', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const question = { keyType: 'ledger', key: 'K', messageId: KEY }
  const holds = await scene.run(scene.ask(id, { say: [['!holds', question]] }))
  t.match(holds, { outcome: 'answered', results: [{ success: true, data: false }] })
  const late = await scene.run(scene.ask(id, { say: append('late'), key: KEY }))
  t.equal(code(late), 'VOID')
  t.same(await scene.tokens(id), ['first'])
})

t.test('a read beside a repeat waits for what it has seen', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const both = { say: [['read'], ...append('a')] as [string, object?][], key: KEY }
  await scene.run(scene.ask(id, both))
  const landing = latch()
  scene.journal.hooks.beforeAppend = () => landing.opened.then(() => null)
  void scene.tell(scene.envelope(id, { say: append('b'), key: 'other' }))
  await settle()
  const replies: WireReply[] = []
  void scene.tell({ ...scene.envelope(id, both), copy: 1 }).then((reply) => replies.push(reply))
  await scene.clock.advance(100)
  t.same(replies, [], 'it has read what may never have happened')
  landing.open()
  await scene.clock.advance(100)
  t.same(replies.map(code), ['success'])
})

t.test('a takeover knows the first mark that has left a window', async (t) => {
  t.teardown(overrideLimits({ 'sharding.marksMax': 4 }))
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  scene.journal.hooks.beforeWrite = () => 'unknown'
  const id = scene.newUuid(0)
  const open = { say: [['open', { token: 'first' }]] as [string, object][], key: KEY }
  await scene.run(scene.ask(id, open))
  for (const token of ['1', '2', '3', '4']) await scene.run(scene.ask(id, { say: append(token) }))
  await scene.restart()
  scene.journal.hooks.beforeWrite = undefined
  await scene.clock.advance(60_000)
  await scene.restart()
  t.equal(code(await scene.run(scene.ask(id, open))), 'success')
})
