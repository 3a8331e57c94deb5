// A turn ends in its time, whatever it waits for: its caller is told what is true, the actor goes
// on, and what it waited for comes late and changes nothing (PROTOCOL 3.6 "What a turn waits for").

import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { decodeEntry, splitEntries } from '../../../protocol/entry/entry.ts'
import { placeOfKey, shardOf } from '../../../protocol/ids.ts'
import type { WireReply } from '../../../protocol/message.ts'
import { ledger } from '../../testing/ledger.ts'
import { Scene, code, data, latch } from '../testing/scene.ts'
import type { Asking, SceneOptions } from '../testing/scene.ts'

/** What is asked for at a time comes this late: long after the turn is over. */
const LATE_MS = 3 * LIMITS.sharding.turnMs
const NOTHING_DONE = /nothing was done/

/** A ledger that reserves keys before its message, and then waits for rules if told to. */
const holding = {
  ...ledger,
  *decide(...asked: Parameters<typeof ledger.decide>) {
    const { through = [], waits } = (asked[1].body ?? {}) as { through?: string[]; waits?: string }
    for (const key of through) yield { call: 'reserve', keyType: 'ledger', key }
    if (waits) yield { call: 'effects', hook: waits, payload: null }
    return yield* ledger.decide(...asked)
  },
} as Behaviour

async function started(options: SceneOptions = {}): Promise<Scene> {
  const scene = new Scene({ hooks: {}, behaviours: [holding], ...options })
  await scene.run(scene.shard.claim())
  return scene
}

/** A ledger whose marks may have left its window: whether a message is known has to be read. */
async function spilled(scene: Scene): Promise<string> {
  const id = await scene.made()
  await scene.run(scene.ask(id, { say: [['append', { token: 'second' }]] }))
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  scene.shard.activations.get(id)!.marks.spilled = true
  return id
}

/** Asks one copy, and sees it answered when its time is over and not before. */
async function expires(t: Test, scene: Scene, id: string, asking: Asking): Promise<WireReply> {
  const replies: WireReply[] = []
  void scene.tell(scene.envelope(id, asking)).then((reply) => replies.push(reply))
  await scene.clock.advance(LIMITS.sharding.turnMs - 10)
  t.same(replies, [], 'its time is not over')
  await scene.clock.advance(20)
  t.equal(replies.length, 1, 'it is answered')
  return replies[0]!
}

function textOf(reply: WireReply): string {
  if (reply.outcome === 'refused' || reply.outcome === 'unknown') return reply.error.message
  if (reply.outcome !== 'answered') return reply.outcome
  const result = reply.results.at(-1)!
  return result.success ? '' : result.errors[0]!.message
}

/** Entries of all actors, as the log has them. */
async function logOf(scene: Scene): Promise<readonly unknown[]> {
  const rows = await scene.journal.log.read(0, 0, 9e9)
  return rows.flatMap(({ body }) => splitEntries(body).map((bytes) => decodeEntry(bytes).m))
}

/** What came late is there; the log is as it was, nothing is held, and the actor has its turns. */
async function goesOn(t: Test, scene: Scene, id: string, tokens: readonly string[]): Promise<void> {
  scene.readMs = 0
  t.equal(code(await scene.run(scene.ask(id, { say: [['append', { token: 'next' }]] }))), 'success')
  const before = await logOf(scene)
  await scene.clock.advance(LATE_MS)
  t.same(await logOf(scene), before, 'nothing comes late')
  t.same(await scene.tokens(id), [...tokens, 'next'])
  t.same([...scene.shard.reserved.keys()], [])
  t.ok(scene.shard.quiet)
}

t.test('rules that never come, or come late', async (t) => {
  const late = latch()
  const scene = await started({ rules: () => late.opened.then(() => []) })
  const id = await scene.made()
  const reply = await expires(t, scene, id, { say: [['append', { token: 'x', wait: 'slow' }]] })
  t.equal(code(reply), 'UNAVAILABLE')
  t.match(textOf(reply), NOTHING_DONE)
  late.open()
  await goesOn(t, scene, id, ['first'])
})

t.test('a preview that waits for rules', async (t) => {
  const scene = await started({ rules: () => new Promise(() => undefined) })
  const id = await scene.made()
  const say = [['append', { token: 'x', wait: 'slow' }]] as const
  t.equal(code(await expires(t, scene, id, { say, preview: true })), 'UNAVAILABLE')
  await goesOn(t, scene, id, ['first'])
})

t.test('of a batch what was done stays done, and the rest is not', async (t) => {
  const scene = await started({ rules: () => new Promise(() => undefined) })
  const id = await scene.made()
  const say = [
    ['append', { token: 'second' }],
    ['append', { token: 'x', wait: 'slow' }],
    ['append', { token: 'y' }],
  ] as const
  const reply = await expires(t, scene, id, { say })
  t.match(reply, {
    results: [
      { success: true },
      { success: false, errors: [{ code: 'UNAVAILABLE' }] },
      { success: false, errors: [{ code: 'UNAVAILABLE' }] },
    ],
  })
  await goesOn(t, scene, id, ['first', 'second'])
})

t.test('all turns of a request have the time of one', async (t) => {
  const { turnMs } = LIMITS.sharding
  const scene: Scene = await started({
    rules: () => new Promise((done) => void scene.clock.after(turnMs * 0.6, () => done([]))),
  })
  const id = await scene.made()
  const append = (token: string) => ['append', { token, wait: 'slow' }] as const
  const reply = await expires(t, scene, id, { say: [append('a'), append('b'), append('c')] })
  t.match(reply, { results: [{ success: true }, { success: false }, { success: false }] })
  await goesOn(t, scene, id, ['first', 'a'])
})

t.test('a relayed message is told to come again', async (t) => {
  const scene = await started({ rules: () => new Promise(() => undefined) })
  const id = await scene.made()
  const say = [['append', { token: 'x', wait: 'slow' }]] as const
  const reply = await expires(t, scene, id, { say, relay: [1, 5, 0] })
  t.match(reply, { outcome: 'refused', error: { code: 'UNAVAILABLE' } })
  await goesOn(t, scene, id, ['first'])
})

t.test('a key of its shard that is not read: others may have it then', async (t) => {
  const scene = await started()
  const [id, other] = [await scene.made(), await scene.made()]
  scene.readMs = LATE_MS
  const reply = await expires(t, scene, id, { say: [['renumber', { number: 'N' }]] })
  t.equal(code(reply), 'UNAVAILABLE')
  t.match(textOf(reply), NOTHING_DONE)
  scene.readMs = 0
  const renumber = scene.ask(other, { say: [['renumber', { number: 'N' }]] })
  t.equal(code(await scene.run(renumber)), 'success')
  await goesOn(t, scene, id, ['first'])
})

t.test('the last number that is not read', async (t) => {
  const scene = await started()
  const [id, create] = [scene.newUuid(0), scene.newUuid(0)]
  await scene.run(scene.ask(id, { say: [['open', { number: 'N', token: 'first' }]] }))
  scene.readMs = LATE_MS
  const fresh = { say: [['open', { token: 'new' }]], fresh: true } as const
  t.equal(code(await expires(t, scene, create, fresh)), 'UNAVAILABLE')
  await goesOn(t, scene, id, ['first'])
})

t.test('a key of another shard that does not answer', async (t) => {
  const scene = await started({ shards: 2 })
  const id = await scene.made()
  const number = ['N0', 'N1', 'N2', 'N3', 'N4'].find(
    (one) => shardOf(placeOfKey('ledger', one), 2) === 1,
  )!
  const answers: ((reply: WireReply) => void)[] = []
  Object.assign(scene.shard.context, {
    send: (_: unknown, respond: (reply: WireReply) => void) => void answers.push(respond),
  })
  const reply = await expires(t, scene, id, { say: [['renumber', { number }]] })
  t.equal(code(reply), 'UNAVAILABLE')
  const results = [{ type: '!claim', success: true, data: true }] as const
  answers[0]!({ outcome: 'answered', actorId: null, keys: [], results, position: null })
  await goesOn(t, scene, id, ['first'])
})

t.test('a key that another turn has: it ends with that one', async (t) => {
  const scene = await started({ rules: () => new Promise(() => undefined) })
  const [one, two] = [await scene.made(), await scene.made()]
  const say = [['append', { token: 'x', through: ['K'], waits: 'slow' }]] as const
  const first = scene.tell(scene.envelope(one, { say }))
  await scene.clock.advance(LIMITS.sharding.turnMs / 2)
  const wanting = [['append', { token: 'mine', through: ['K'] }]] as const
  const second = scene.tell(scene.envelope(two, { say: wanting }))
  await scene.clock.advance(LIMITS.sharding.turnMs / 2 + 10)
  t.equal(code(await scene.run(first)), 'UNAVAILABLE')
  t.equal(code(await scene.run(second)), 'success')
  await goesOn(t, scene, one, ['first'])
})

t.test('an older turn that a younger one has given back for', async (t) => {
  const scene = await started({ rules: () => new Promise(() => undefined) })
  const [one, two] = [await scene.made(), await scene.made()]
  const older = [['append', { token: 'x', through: ['K'], waits: 'slow' }]] as const
  void scene.tell(scene.envelope(one, { say: older }))
  await scene.clock.advance(10)
  // It has a key itself, so it may not wait for an older turn: it begins again behind that one.
  scene.shard.reserved.get('ledger\0K')!.waiting.length = 0
  const younger = [['append', { token: 'y', through: ['L', 'K'] }]] as const
  const waits = scene.tell(scene.envelope(two, { say: younger }))
  await scene.clock.advance(10)
  t.notOk(scene.shard.reserved.has('ledger\0L'), 'it has given back')
  // That the older one ends is never heard of.
  scene.shard.reserved.get('ledger\0K')!.waiting.length = 0
  await scene.clock.advance(LIMITS.sharding.turnMs + 10)
  t.equal(code(await scene.run(waits)), 'UNAVAILABLE')
  await goesOn(t, scene, two, ['first'])
})

for (const type of ['checkpoints', 'at'] as const) {
  t.test(`${type}: a past that is not read`, async (t) => {
    const scene = await started()
    const id = await scene.made()
    await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
    scene.readMs = LATE_MS
    const reply = await expires(t, scene, id, { say: [[type, { id: 'none' }]] })
    t.equal(code(reply), 'UNAVAILABLE')
    await goesOn(t, scene, id, ['first'])
  })
}

t.test('whether it is known is not read: nobody can say', async (t) => {
  const scene = await started()
  const id = await spilled(scene)
  scene.readMs = LATE_MS
  const reply = await expires(t, scene, id, { say: [['append', { token: 'x' }]] })
  t.match(reply, { outcome: 'unknown', error: { code: 'OUTCOME_UNKNOWN' } })
  await goesOn(t, scene, id, ['first', 'second'])
})

t.test('a question about a key, in its turn or beside one, whose mark is not read', async (t) => {
  for (const isBeside of [false, true]) {
    const scene = await started({ rules: () => new Promise(() => undefined) })
    const id = await spilled(scene)
    if (isBeside) {
      const say = [['append', { token: 'x', wait: 'slow' }]] as const
      void scene.tell(scene.envelope(id, { say }))
      await scene.clock.advance(10)
    }
    scene.readMs = LATE_MS
    const body = { keyType: 'ledger', key: 'K', messageId: 'f'.repeat(32) }
    const reply = await expires(t, scene, id, { say: [['!holds', body]] })
    t.equal(reply.outcome, 'unknown')
    t.equal(scene.shard.activations.get(id)!.questions.size, 0)
    await goesOn(t, scene, id, ['first', 'second'])
  }
})

t.test('an actor that is not loaded is loaded anew for who comes next', async (t) => {
  const scene = await started()
  const id = await scene.made()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  await scene.restart()
  scene.readMs = LATE_MS
  const behind = scene.tell(scene.envelope(id, { say: [['append', { token: 'behind' }]] }))
  const reply = await expires(t, scene, id, { say: [['append', { token: 'x' }]] })
  t.equal(code(reply), 'UNAVAILABLE')
  t.match(textOf(reply), NOTHING_DONE)
  t.equal(code(await scene.run(behind)), 'UNAVAILABLE')
  t.equal(scene.shard.activations.has(id), false)
  await goesOn(t, scene, id, ['first'])
})

t.test('a key that leads to an actor, and the key of a create, that are not read', async (t) => {
  const scene = await started()
  const id = await scene.made()
  scene.readMs = LATE_MS
  const byKey = { to: { type: 'ledger', key: 'N' } } as const
  t.equal(code(await expires(t, scene, id, byKey)), 'UNAVAILABLE')
  const creating = { virtual: true, key: 'a'.repeat(32), say: [['open', {}]] as const }
  const create = scene.newUuid(0)
  const repeat = scene.tell(scene.envelope(create, creating))
  t.equal(code(await expires(t, scene, create, creating)), 'UNAVAILABLE')
  t.equal(code(await scene.run(repeat)), 'UNAVAILABLE')
  scene.readMs = 0
  const again = await scene.run(scene.tell(scene.envelope(create, creating)))
  t.type(data(again), 'object', 'it may be made then')
  await goesOn(t, scene, id, ['first'])
})
