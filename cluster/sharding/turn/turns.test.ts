// A turn that is over never goes on: what it waited for comes, and changes nothing (PROTOCOL 3.6).

import t, { type Test as Tap } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { assert } from '../../../protocol/errors.ts'
import { decodeEntry, splitEntries } from '../../../protocol/entry/entry.ts'
import type { WireReply } from '../../../protocol/message.ts'
import { settle } from '../../testing/harness.ts'
import { ledger } from '../../testing/ledger.ts'
import { Scene, code, data } from '../testing/scene.ts'

const READ_MS = 2_000

interface Versions {
  readonly is: number[]
  readonly ought: number[]
}

/** Versions that the log's entries of an actor begin with, and those that they ought to. */
async function versionsOf(scene: Scene, id: string): Promise<Versions> {
  const is: number[] = []
  const ought: number[] = []
  let next = 0
  for (const { body } of await scene.journal.log.read(0, 0, 9e9)) {
    for (const entry of splitEntries(body).map(decodeEntry)) {
      if (entry.p !== id || entry.n === 0) continue
      is.push(entry.v)
      ought.push(next)
      next += entry.r.length
    }
  }
  return { is, ought }
}

/** An append in flight is made void by a new epoch while `begun` looks for its id in slow rows. */
async function voidedUnder(
  t: Tap,
  begun: (scene: Scene, id: string) => void,
): Promise<[Scene, string]> {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.run(scene.ask(id, { say: [['append', { token: 'second' }]] }))
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  scene.shard.activations.get(id)!.marks.spilled = true
  scene.journal.hooks.beforeAppend = ({ epoch }) => (epoch === 1 ? 'unknown' : null)
  const lost = scene.tell(scene.envelope(id, { say: [['append', { token: 'lost' }]] }))
  await settle()
  scene.readMs = READ_MS
  begun(scene, id)
  t.equal(code(await scene.run(lost)), 'OUTCOME_UNKNOWN')
  t.equal(scene.shard.epoch, 2)
  await scene.clock.advance(READ_MS * 4)
  scene.readMs = 0
  return [scene, id]
}

for (const [name, asking] of [
  ['asks whether a key is held', { say: [['!holds', holds()]] }],
  ['is given up', { say: [['append', { token: 'deadly' }]], crashes: LIMITS.sharding.crashesMax }],
] as const) {
  t.test(`a dropped turn that ${name} writes nothing`, async (t) => {
    const [scene, id] = await voidedUnder(t, (scene, id) => {
      void scene.tell(scene.envelope(id, asking))
    })
    const token = (say: string) => scene.run(scene.ask(id, { say: [['append', { token: say }]] }))
    t.equal(data(await token('a')), 3)
    t.equal(data(await token('b')), 4)
    const { is, ought } = await versionsOf(scene, id)
    t.same(is, ought, 'versions are dense')
    await scene.restart()
    t.equal(data(await token('c')), 5, 'and the next owner can read them')
  })
}

function holds(): object {
  return { keyType: 'ledger', key: 'K', messageId: 'f'.repeat(32) }
}

async function until(scene: Scene, isSo: () => boolean): Promise<void> {
  for (let ms = 0; !isSo(); ms += 10) {
    assert(ms < 10_000, 'it is so within ten seconds')
    await scene.clock.advance(10)
  }
}

/** Every number that was not given out is free, and nothing holds the shard. */
async function nothingIsHeld(t: Tap, scene: Scene): Promise<void> {
  t.same([...scene.shard.reserved.keys()], [])
  t.ok(scene.shard.quiet)
  for (let n = 1; n <= 4; n++) {
    const chosen = scene.ask(scene.newUuid(0), { say: [['open', { number: `L${n}` }]] })
    t.match(code(await scene.run(chosen)), /^(success|ALREADY_EXISTS)$/)
  }
}

t.test('a known message behind a new one: no answer before the new one is committed', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const asked = scene.envelope(id, { key: 'a'.repeat(32), say: [['append', { token: 'second' }]] })
  const [second] = asked.messages
  // The first of the two was not done, as what is told to try again.
  await scene.run(scene.tell({ ...asked, places: [1] }))
  const both = { ...asked, messages: [{ type: 'append', body: { token: 'first' } }, second!] }
  const disk = Promise.withResolvers<null>()
  scene.journal.hooks.beforeAppend = () => disk.promise
  let reply: WireReply | null = null
  void scene.tell(both).then((said) => (reply = said))
  await scene.clock.advance(100)
  t.equal(reply, null, 'its group is not in the log')
  disk.resolve(null)
  await until(scene, () => reply !== null)
  t.match(reply, { outcome: 'answered', results: [{ success: true }, { success: true }] })
  t.same(await scene.tokens(id), ['first', 'second', 'first'])
})

t.test('a dropped turn reserves no number', async (t) => {
  const scene = new Scene({ readMs: 200 })
  await scene.run(scene.shard.claim())
  const creating = scene.ask(scene.newUuid(0), { say: [['open', {}]] })
  await until(scene, () => scene.shard.reserved.size > 0)
  t.equal(await scene.shard.seal(), true)
  scene.shard.unseal()
  t.equal(code(await scene.run(creating)), 'success')
  await scene.clock.advance(5_000)
  await nothingIsHeld(t, scene)
})

t.test('a dropped turn that waits for the end of another reserves nothing', async (t) => {
  const scene = new Scene({ readMs: 200 })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.run(scene.ask(id, { say: [['append', { token: 'second' }]] }))
  const two = scene.ask(scene.newUuid(0), { say: [['open', { number: 'N' }]] })
  await scene.clock.advance(300)
  const one = scene.ask(id, { say: [['renumber', { number: 'N', fail: 'yes' }]] })
  const waiting = () => [...scene.shard.reserved.values()].flatMap((held) => held.waiting)
  await until(scene, () => waiting().length > 0)
  // The first ends, and before the second has heard of it the shard is sealed.
  const join = scene.shard.join.bind(scene.shard)
  scene.shard.join = (joining) => {
    queueMicrotask(() => void scene.shard.seal())
    scene.shard.join = join
    return join(joining)
  }
  await until(scene, () => scene.shard.state === 'sealed')
  await scene.clock.advance(300)
  t.same([...scene.shard.reserved.keys()], [], 'as long as it is sealed')
  scene.shard.unseal()
  t.same((await scene.run(Promise.all([one, two]))).map(code), ['INVALID_STATE', 'success'])
  await scene.clock.advance(5_000)
  await nothingIsHeld(t, scene)
})

t.test('turns that want keys of each other: one gives back what it has, and all end', async (t) => {
  const passing = {
    ...ledger,
    *decide(...asked: Parameters<typeof ledger.decide>) {
      const { through = [] } = (asked[1].body ?? {}) as { through?: string[] }
      for (const key of through) yield { call: 'reserve', keyType: 'ledger', key }
      return yield* ledger.decide(...asked)
    },
  } as Behaviour
  const scene = new Scene({ behaviours: [passing], readMs: 20 })
  await scene.run(scene.shard.claim())
  const through = (...keys: string[]) =>
    scene.ask(scene.newUuid(0), { say: [['open', { number: keys.at(-1), through: keys }]] })
  const three = [through('A', 'B', 'X'), through('B', 'C', 'Y'), through('C', 'A', 'Z')]
  const told = await scene.run(Promise.all(three))
  t.same(told.map(code), ['success', 'success', 'success'], 'a circle of three')
  await nothingIsHeld(t, scene)
})

t.test('a message whose answer fails to come fails once, and those behind it go on', async (t) => {
  const scene = new Scene({ rules: () => Promise.reject(new Error('as asked')) })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const say: [string, object][] = [
    ['append', { token: 'waits', wait: 'for nothing' }],
    ['append', { token: 'behind' }],
  ]
  const reply = await scene.run(scene.ask(id, { say }))
  assert(reply.outcome === 'answered', 'it is answered')
  const told = reply.results.map((result) => (result.success ? 'success' : result.errors[0]!.code))
  t.same(told, ['INTERNAL_ERROR', 'success'])
  t.same(await scene.tokens(id), ['first', 'behind'])
})

t.test('data of any value is in the answer, and none where a turn has none', async (t) => {
  const values = [0, false, null, '', undefined]
  const telling = {
    ...ledger,
    *decide(...asked: Parameters<typeof ledger.decide>) {
      const decision = yield* ledger.decide(...asked)
      const { token } = (asked[1].body ?? {}) as { token?: number }
      return decision.ok && asked[1].type === 'read'
        ? { ...decision, data: values[token!] }
        : decision
    },
  } as Behaviour
  const scene = new Scene({ behaviours: [telling] })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const say = values.map((_, token): [string, object] => ['read', { token }])
  const reply = await scene.run(scene.ask(id, { say }))
  assert(reply.outcome === 'answered', 'it is answered')
  const plain = { type: 'read', success: true }
  const expected = values.map((data) => (data === undefined ? plain : { ...plain, data }))
  t.strictSame(reply.results, expected)
})

interface SeenTurn {
  readonly nowMs: number
  readonly version: number
  readonly newId: string
}

/** A shard whose ledgers note the turns that they are given. */
async function noting(): Promise<{ scene: Scene; seen: SeenTurn[]; rule: () => void }> {
  const seen: SeenTurn[] = []
  const decide: typeof ledger.decide = function* (state, message, turn) {
    const { nowMs, version } = turn
    seen.push({ nowMs, version, newId: turn.newId() })
    return yield* ledger.decide(state, message, turn)
  }
  let rule = (): void => undefined
  const rules = () => new Promise<[]>((resolve) => (rule = () => resolve([])))
  const scene = new Scene({ hooks: {}, rules, behaviours: [{ ...ledger, decide }] })
  await scene.run(scene.shard.claim())
  return { scene, seen, rule: () => rule() }
}

t.test('a preview has the turns that its request would have, whatever clocks do', async (t) => {
  const { scene, seen, rule } = await noting()
  const id = await scene.made()
  await scene.tokens(id)
  const { nowMs } = scene.clock
  const say: [string, object][] = [
    ['append', { token: 'a', wait: 'rule' }],
    ['append', { token: 'b' }],
    ['append', { token: 'c' }],
  ]
  const turns: SeenTurn[][] = []
  for (const preview of [true, false]) {
    seen.length = 0
    scene.clock.nowMs = () => nowMs.call(scene.clock) + 1_000
    const asked = scene.tell(scene.envelope(id, { say, preview, key: 'k' }))
    await settle()
    // It is set back while a turn waits, to before the actor was made.
    scene.clock.nowMs = () => 5
    rule()
    t.equal(code(await scene.run(asked, 0)), 'success')
    turns.push([...seen])
  }
  t.equal(turns[0]!.length, 3)
  t.same(turns[0], turns[1])
  t.equal(turns[0]![2]!.nowMs, turns[0]![0]!.nowMs)
  t.equal(new Set(turns[0]!.map(({ newId }) => newId)).size, 3)
  seen.length = 0
  const later = scene.tell(scene.envelope(id, { say: say.slice(1), preview: true }))
  t.equal(code(await scene.run(later, 0)), 'success')
  t.equal(seen[0]!.nowMs, turns[1]![2]!.nowMs, 'no time is before the actor’s last')
})

t.test('keys are those that the actor has after the last message', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const append: [string, object] = ['append', { token: 'a' }]
  const asking = { key: 'k', bodyHash: '' }
  const first = await scene.run(scene.ask(id, { ...asking, say: [append] }))
  t.match(first, { keys: [/^L/] })
  const say: [string, object][] = [append, ['renumber', { number: 'N' }]]
  const both = await scene.run(scene.ask(id, { ...asking, say }))
  t.match(both, { keys: ['N'], results: [{ data: 2 }, { success: true }] })
})

t.test('a part that can not be looked for behind one that is there', async (t) => {
  const moved = { outcome: 'moved', shard: 0 }
  for (const [readsMs, wanted] of [
    [0, moved],
    [10, { ...moved, taken: true }],
  ] as const) {
    const scene = new Scene()
    await scene.run(scene.shard.claim())
    const id = await scene.made()
    await scene.tokens(id)
    await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
    scene.shard.activations.get(id)!.marks.spilled = true
    const say: [string, object][] = [
      ['append', { token: 'a' }],
      ['append', { token: 'b' }],
    ]
    // Reads that are under way are answered, those that come later are not.
    scene.readMs = readsMs
    scene.isAway = readsMs === 0
    const asked = scene.tell(scene.envelope(id, { say, key: 'k' }))
    await settle()
    scene.isAway = true
    await scene.clock.advance(10)
    t.same(await scene.run(asked), wanted)
  }
})

t.test('of what was rolled back as a whole it is said, of a part never', async (t) => {
  const a: [string, object] = ['append', { token: 'a' }]
  const b: [string, object] = ['append', { token: 'b' }]
  const waiting: [string, object] = ['append', { token: 'b', wait: 'rule' }]
  for (const [say, said] of [
    [[a], 'STORAGE_FULL'],
    // Its first group may be in.
    [[a, b], 'OUTCOME_UNKNOWN'],
    // Its turns have not ended, and nothing of it is in.
    [[a, waiting], 'STORAGE_FULL'],
  ] as const) {
    const scene = new Scene({ hooks: {}, rules: () => new Promise(() => undefined) })
    await scene.run(scene.shard.claim())
    const id = await scene.made()
    await scene.tokens(id)
    scene.journal.hooks.beforeAppend = () => 'full'
    t.equal(code(await scene.run(scene.tell(scene.envelope(id, { say })))), said)
  }
})

t.test('of a part whose group is in nobody says that nothing was done', async (t) => {
  const scene = new Scene({ hooks: {}, rules: () => new Promise(() => undefined) })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  const other = await scene.made()
  await scene.tokens(id)
  const say: [string, object][] = [
    ['append', { token: 'a' }],
    ['append', { token: 'b', wait: 'rule' }],
  ]
  const asked = scene.tell(scene.envelope(id, { say }))
  await settle()
  t.equal(scene.shard.gate.head, 3, 'the newest that is in is its own')
  scene.journal.hooks.beforeAppend = () => 'full'
  const full = scene.tell(scene.envelope(other, { say: [['append', { token: 'x' }]] }))
  t.equal(code(await scene.run(full)), 'STORAGE_FULL')
  t.equal(code(await scene.run(asked)), 'OUTCOME_UNKNOWN')
})
