// Turns that want keys of one another, and questions about keys between them: whoever comes, none
// waits for itself, and each has an ordinary answer soon. Source: PROTOCOL 3.6 (owner 3).

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { decodeEntry, splitEntries } from '../../../protocol/entry/entry.ts'
import { assert } from '../../../protocol/errors.ts'
import { placeOfKey, shardOf } from '../../../protocol/ids.ts'
import { settle, startMember } from '../../testing/harness.ts'
import type { World } from '../../testing/harness.ts'
import { ledger } from '../../testing/ledger.ts'
import { Scene, code, data, latch } from '../testing/scene.ts'
import type { Asking } from '../testing/scene.ts'

const SHARDS = 4
/** In a list of keys: the turn waits for rules. */
const PAUSE = 'pause'

/** A ledger that reserves keys on its way to its number. */
const passing = {
  ...ledger,
  *decide(...asked: Parameters<typeof ledger.decide>) {
    const { through = [] } = (asked[1].body ?? {}) as { through?: string[] }
    for (const key of through) {
      if (key.startsWith(PAUSE)) yield { call: 'effects', hook: key, payload: null }
      else yield { call: 'reserve', keyType: 'ledger', key }
    }
    return yield* ledger.decide(...asked)
  },
} as Behaviour

/** The nth number of a shard. */
function numberOf(shard: number, nth: number): string {
  for (let i = 0, found = 0; ; i++) {
    const number = `N${i}`
    if (shardOf(placeOfKey('ledger', number), SHARDS) === shard && found++ === nth) return number
  }
}

/** Opens a ledger in the shard of its number; the rest it passes through. */
function opens(world: World, number: string, through: readonly string[]) {
  return world.ask('new', [['open', { number, through }]], {
    budgetMs: LIMITS.sharding.requestBudgetMs,
  })
}

/** How long, on the world's clock, until all are answered. */
async function tookMs(world: World, asked: readonly Promise<unknown>[]): Promise<number> {
  const fromMs = world.clock.monotonicMs()
  const told: unknown[] = []
  for (const one of asked) void one.then((reply) => told.push(reply))
  for (await settle(); told.length < asked.length;) await world.clock.advance(10)
  return world.clock.monotonicMs() - fromMs
}

for (const count of [2, 3]) {
  t.test(`${count} shards in a circle: claims don't wait for one another`, async (t) => {
    const world = await startMember({ shards: SHARDS, behaviours: [passing] })
    // Each has a key of its own shard reserved and claims the next one's.
    const circle = Array.from({ length: count }, (_, i) => {
      return [numberOf(i, 1), [numberOf(i, 0), numberOf((i + 1) % count, 0)]] as const
    })
    const asked = circle.map(([number, through]) => opens(world, number, through))
    t.ok((await tookMs(world, asked)) < 1_000)
    t.same((await Promise.all(asked)).map(code), Array(count).fill('success'))
    await world.clock.advance(LIMITS.sharding.flushStoredMs)
    t.ok([...world.member.shards.values()].every(({ quiet }) => quiet))
  })
}

t.test('what is claimed by a turn that begins again and wants it no more is free', async (t) => {
  const [here, there, own] = [numberOf(0, 0), numberOf(1, 0), numberOf(0, 1)]
  const wanted = [[there], []]
  const choosing = {
    ...passing,
    *decide(...asked: Parameters<typeof ledger.decide>) {
      const more = asked[1].body as { chooses?: string; through: string[] }
      if (!more.chooses) return yield* passing.decide(...asked)
      const [first = []] = [wanted.shift()]
      yield { call: 'reserve', keyType: 'ledger', key: more.chooses }
      const body = { ...more, through: [...first, ...more.through] }
      return yield* passing.decide(asked[0], { ...asked[1], body }, asked[2])
    },
  } as Behaviour
  const { open, opened } = latch()
  const rules = { has: () => false, effects: () => opened.then(() => []) }
  const world = await startMember({ shards: SHARDS, behaviours: [choosing], rules })
  const older = opens(world, numberOf(0, 2), [here, PAUSE])
  await world.clock.advance(10)
  const body = { number: own, chooses: numberOf(0, 3), through: [here] }
  const again = world.ask('new', [['open', body]])
  await world.clock.advance(100)
  open()
  await tookMs(world, [older, again])
  t.same([code(await older), code(await again)], ['success', 'success'])
  t.same(wanted, [], 'it has begun twice')
  await world.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  t.same((await world.journal.derived.alias('ledger', there))?.claims, [])
})

t.test('nobody starves: who has given back once is not passed by those that come', async (t) => {
  const rules = (hook: string) => {
    const ms = Number(hook.slice(PAUSE.length))
    return new Promise<[]>((resolve) => void scene.clock.after(ms, () => resolve([])))
  }
  const scene: Scene = new Scene({ behaviours: [passing], rules })
  await scene.run(scene.shard.claim())
  const opens = (number: string, ...through: readonly string[]) =>
    scene.ask(scene.newUuid(0), { say: [['open', { number, through }]] })
  const newcomer = (nth: number) => opens(`N${nth}`, 'A', `${PAUSE} 100`, 'B')
  // Older than the patient one, which gives back for it.
  const come = [newcomer(1)]
  await scene.clock.advance(10)
  let waitedMs = 0
  const patient = opens('P', 'B', `${PAUSE} 70`, 'A')
  void patient.then(() => (waitedMs = scene.clock.monotonicMs()))
  for (let nth = 2; nth < 40; nth++) {
    await scene.clock.advance(50)
    come.push(newcomer(nth))
  }
  t.equal(code(await scene.run(patient)), 'success')
  t.ok(waitedMs < 1_000, `it waited for ${waitedMs} ms`)
  const told = new Set((await scene.run(Promise.all(come))).map(code))
  t.strictSame(told, new Set(['success']))
})

interface Asked {
  readonly scene: Scene
  /** Has an old claim of K, which it never confirmed. */
  readonly claimer: string
  readonly open: () => void
}

const CLAIM = 'f'.repeat(32)

/** A key K that its actor claimed long ago, and rules that wait for `open`. */
async function claimedLongAgo(isLoaded = true): Promise<Asked> {
  const { open, opened } = latch()
  const rules = () => opened.then(() => [])
  const scene = new Scene({ hooks: {}, behaviours: [passing], rules })
  await scene.run(scene.shard.claim())
  const claimer = await scene.made()
  const body = { actorId: claimer, messageId: CLAIM }
  const claim = { ...scene.envelope(claimer), messages: [{ type: '!claim', body }] }
  t.equal(data(await scene.run(scene.tell({ ...claim, to: { type: 'ledger', key: 'K' } }))), true)
  await scene.clock.advance(LIMITS.sharding.claimAgeMs)
  if (isLoaded) await scene.tokens(claimer)
  t.equal(scene.shard.activations.has(claimer), isLoaded)
  return { scene, claimer, open }
}

/** A new ledger: holds X reserved, waits for the rules, then wants K. */
const wantsBoth: Asking = { say: [['open', { number: 'K', through: ['X', PAUSE] }]] }
const waitsForX: Asking = { say: [['renumber', { number: 'Y', through: ['X'] }]] }

/** Times of an actor's entries, as the log has them. */
async function timesOf(scene: Scene, id: string): Promise<readonly number[]> {
  const groups = await scene.journal.log.read(0, 0, 9e9)
  const entries = groups.flatMap(({ body }) => splitEntries(body).map(decodeEntry))
  return entries.filter(({ p, n }) => p === id && n > 0).map((entry) => entry.t)
}

t.test(
  'a claim that says its age waits only for a younger turn, one of before for any',
  async (t) => {
    const { scene, open } = await claimedLongAgo()
    const holding = scene.ask(scene.newUuid(0), wantsBoth)
    await settle()
    const told: unknown[] = []
    const claim = (name: string, age?: string) => {
      const body = { actorId: scene.newUuid(1), messageId: name, ...(age && { age }) }
      const asked = { ...scene.envelope(body.actorId), messages: [{ type: '!claim', body }] }
      const reply = scene.tell({ ...asked, to: { type: 'ledger', key: 'X' } })
      return reply.then((said) => void told.push([name, data(said)]))
    }
    const claims = [claim('older', '0'), claim('younger', '9'), claim('of before')]
    await scene.clock.advance(100)
    t.same(told, [['younger', 'again']])
    open()
    t.equal(code(await scene.run(holding)), 'success')
    await scene.run(Promise.all(claims))
    t.same(told.slice(1), [
      ['older', true],
      ['of before', false],
    ])
  },
)

for (const spilled of [false, true]) {
  const where = spilled ? 'in rows' : 'in memory'
  t.test(`a key's actor is asked beside its turn that waits, marks ${where}`, async (t) => {
    const { scene, claimer, open } = await claimedLongAgo()
    scene.shard.activations.get(claimer)!.marks.spilled = spilled
    const wanting = scene.ask(scene.newUuid(0), wantsBoth)
    await settle()
    const waiting = scene.ask(claimer, waitsForX)
    await scene.clock.advance(100)
    scene.readMs = 20
    open()
    const fromMs = scene.clock.monotonicMs()
    const told = await scene.run(Promise.all([wanting, waiting]))
    t.ok(scene.clock.monotonicMs() - fromMs < 1_000)
    t.same(told.map(code), ['success', 'success'])
    scene.readMs = 0
    const late: Asking = { key: CLAIM, say: [['append', { token: 'late' }]] }
    t.equal(code(await scene.run(scene.ask(claimer, late))), 'VOID', 'what claimed it is over')
    await scene.restart()
    t.same(await scene.tokens(claimer), ['first'], 'and the next owner can read its actor')
    const times = await timesOf(scene, claimer)
    t.equal(times.length, 3)
    t.same(times, times.toSorted(), 'times of its entries do not fall')
  })
}

t.test('a message that is under way is not made void: it may come to hold its key', async (t) => {
  const { scene, claimer, open } = await claimedLongAgo()
  const wanting = scene.ask(scene.newUuid(0), wantsBoth)
  await settle()
  const claiming = scene.ask(claimer, { ...waitsForX, key: CLAIM })
  await scene.clock.advance(100)
  open()
  t.equal(code(await scene.run(wanting)), 'ALREADY_EXISTS')
  t.equal(code(await scene.run(claiming)), 'success')
})

t.test("a key's actor is asked before what came while it was loaded", async (t) => {
  const { scene, claimer, open } = await claimedLongAgo(false)
  const wanting = scene.ask(scene.newUuid(0), wantsBoth)
  await settle()
  scene.readMs = 200
  const waiting = scene.ask(claimer, waitsForX)
  scene.readMs = 0
  open()
  const fromMs = scene.clock.monotonicMs()
  t.same((await scene.run(Promise.all([wanting, waiting]))).map(code), ['success', 'success'])
  t.ok(scene.clock.monotonicMs() - fromMs < 1_000)
})

t.test('a question beside a turn is asked again of the next owner when its own ends', async (t) => {
  const { scene, claimer, open } = await claimedLongAgo()
  const activation = scene.shard.activations.get(claimer)!
  activation.marks.spilled = true
  const waits = scene.ask(claimer, { say: [['append', { token: 'a', wait: 'for rules' }]] })
  await settle()
  scene.readMs = 1_000
  const body = { keyType: 'ledger', key: 'K', messageId: CLAIM }
  const asked = scene.tell(scene.envelope(claimer, { say: [['!holds', body]] }))
  await settle()
  open()
  await scene.run(waits)
  t.equal(activation.running, null)
  t.notOk(activation.isIdle, 'it is not put to rest before it has answered')
  const told: string[] = []
  void asked.then((reply) => told.push(code(reply)))
  scene.shard.stepDown('as asked')
  await settle()
  t.same(told, ['moved'])
  await scene.clock.advance(5_000)
  t.same(scene.logged, [], 'and nothing is decided here any more')
})

t.test('a preview has nothing reserved, for it takes nothing', async (t) => {
  const { scene, open } = await claimedLongAgo()
  scene.readMs = 20
  const preview = scene.ask(scene.newUuid(0), { ...wantsBoth, preview: true })
  await scene.clock.advance(100)
  t.equal(scene.shard.reserved.size, 0)
  open()
  t.equal(code(await scene.run(preview)), 'success')
})

t.test('what was decided while rows were read for a question counts', async (t) => {
  const { scene, claimer, open } = await claimedLongAgo()
  scene.shard.activations.get(claimer)!.marks.spilled = true
  void scene.ask(claimer, { say: [['append', { token: 'waits', wait: 'for rules' }]] })
  await settle()
  scene.readMs = 1_000
  const body = { keyType: 'ledger', key: 'Z', messageId: CLAIM }
  const asked = scene.tell(scene.envelope(claimer, { say: [['!holds', body]] }))
  await settle()
  const taking = scene.ask(claimer, { key: CLAIM, say: [['renumber', { number: 'Z' }]] })
  scene.readMs = 0
  open()
  t.equal(code(await scene.run(taking)), 'success')
  const reply = await scene.run(asked)
  assert(reply.outcome === 'answered', 'it is answered')
  t.equal(data(reply), true)
})
