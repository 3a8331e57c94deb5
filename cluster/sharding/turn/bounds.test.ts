// The bounds of an actor, in bytes, over any number of rests; and what the engine refuses for good
// harms nobody else (PROTOCOL 3.1, 3.12).

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import type { DerivedRow } from '../../../storage/journal.ts'
import { ledger } from '../../testing/ledger.ts'
import type { Ledger } from '../../testing/ledger.ts'
import { DeadLetters } from './dead-letters.ts'
import { Scene, code } from '../testing/scene.ts'

/** A ledger whose state takes several times what its entries do. */
const verbose: Behaviour<Ledger> = {
  ...ledger,
  toSnapshot: ({ tokens, ...rest }) => ({ ...rest, tokens, copies: [tokens, tokens, tokens] }),
  fromSnapshot(snapshot) {
    const { copies: _, ...state } = snapshot as Ledger & { copies: unknown }
    return state
  },
}

async function rest(scene: Scene): Promise<void> {
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  scene.shard.passivation.clear()
}

for (const [name, behaviour, token] of [
  ['of letters', ledger, 'x'.repeat(10_000)],
  ['of letters that take two bytes', ledger, 'ж'.repeat(5_000)],
  ['larger than its entries', verbose, 'x'.repeat(2_000)],
] as const) {
  t.test(`a state ${name} keeps its bound over 100 rests`, async (t) => {
    t.teardown(overrideLimits({ 'sharding.stateBytesMax': 256 * 1024 }))
    const snapshots: number[] = []
    const scene = new Scene({
      behaviours: [behaviour],
      hooks: {
        beforeWrite(_, rows) {
          for (const row of rows) if (row.kind === 'snapshot') snapshots.push(row.body.length)
          return null
        },
      },
    })
    await scene.run(scene.shard.claim())
    const id = await scene.made()
    const append = async (say: string) =>
      code(await scene.run(scene.ask(id, { say: [['append', { token: say }]] })))
    let taken = 0
    const said = new Set<string>()
    for (let i = 0; i < 100; i++) {
      const is = await append(token)
      if (is === 'success') taken++
      said.add(is)
      await rest(scene)
    }
    t.same([...said], ['success', 'TOO_LARGE'])
    t.equal(await append('small'), 'success', 'what there is room for is taken')
    const { state } = scene.shard.activations.get(id)!
    const bytes = Buffer.byteLength(JSON.stringify(behaviour.toSnapshot(state as Ledger)))
    const each = bytes / taken
    t.ok(
      bytes <= LIMITS.sharding.stateBytesMax && bytes > LIMITS.sharding.stateBytesMax - 2 * each,
      `${bytes}`,
    )
    const most = LIMITS.sharding.stateBytesMax + LIMITS.sharding.marksBytesMax + 1_000
    t.ok(snapshots.length > 0 && Math.max(...snapshots) <= most)
  })
}

t.test('an actor that is over its bound can still become smaller', async (t) => {
  const emptied: Behaviour<Ledger> = {
    ...ledger,
    *decide(state, message, turn) {
      const decision = yield* ledger.decide(state, message, turn)
      const isDeleted = decision.ok && decision.state.deleted
      return isDeleted ? { ...decision, state: { ...decision.state, tokens: [] } } : decision
    },
  }
  const scene = new Scene({ behaviours: [emptied] })
  await scene.run(scene.shard.claim())
  const id = await scene.made('x'.repeat(10_000))
  t.teardown(overrideLimits({ 'sharding.stateBytesMax': 5_000 }))
  const say = async (...message: [string, object?]) =>
    code(await scene.run(scene.ask(id, { say: [message] })))
  t.equal(await say('append', { token: 'x' }), 'TOO_LARGE')
  t.equal(await say('append', { token: 'y', unless: 'x'.repeat(10_000) }), 'INVALID_STATE')
  t.equal(await say('delete'), 'success')
})

t.test('an actor over its bound may become smaller step by step', async (t) => {
  const shortened: Behaviour<Ledger> = {
    ...ledger,
    *decide(state, message, turn) {
      const decision = yield* ledger.decide(state, message, turn)
      if (!decision.ok || message.type !== 'renumber') return decision
      const tokens = decision.state.tokens.map((token) => token.slice(1_000))
      return { ...decision, state: { ...decision.state, tokens } }
    },
  }
  const scene = new Scene({ behaviours: [shortened] })
  await scene.run(scene.shard.claim())
  const id = await scene.made('x'.repeat(10_000))
  t.teardown(overrideLimits({ 'sharding.stateBytesMax': 5_000 }))
  const say = async (...message: [string, object?]) =>
    code(await scene.run(scene.ask(id, { say: [message] })))
  t.equal(await say('append', { token: 'x' }), 'TOO_LARGE')
  for (const number of ['A', 'B', 'C']) t.equal(await say('renumber', { number }), 'success')
  t.equal(await say('append', { token: 'x' }), 'TOO_LARGE', 'it still is over its bound')
})

/** An actor with a snapshot due, whose snapshots the engine refuses, and another one. */
async function refusing(isRefused: (row: DerivedRow) => boolean) {
  const scene = new Scene({
    hooks: { beforeWrite: (_, rows) => (rows.some(isRefused) ? 'unknown' : null) },
  })
  await scene.run(scene.shard.claim())
  const [id, other] = [await scene.made(), await scene.made()]
  const append = async (to: string, token: string) =>
    code(await scene.run(scene.ask(to, { say: [['append', { token }]] })))
  for (let i = 0; i < LIMITS.sharding.snapshotEntriesMin; i++) {
    await append(
      id,
      'x'.repeat((2 * LIMITS.sharding.snapshotEntryBytesMin) / LIMITS.sharding.snapshotEntriesMin),
    )
  }
  return { scene, id, other, append }
}

t.test('a snapshot that the engine refuses for good is given up and told', async (t) => {
  const { scene, id, other, append } = await refusing((row) => row.kind === 'snapshot')
  await scene.clock.advance(LIMITS.sharding.unflushedMsMax * 2)
  t.equal(await append(other, 'on'), 'success', 'others of its shard go on')
  await scene.clock.advance(LIMITS.sharding.unflushedMsMax)
  t.equal(await scene.journal.derived.consumer(0, 'flush'), scene.shard.gate.head)
  t.match(scene.logged.join('\n'), new RegExp(`a snapshot was given up.*${id}`))
  const before = await scene.tokens(id)
  await scene.restart()
  t.same(await scene.tokens(id), before, 'its entries have all of it')
  t.equal(await append(id, 'and'), 'success')
})

t.test('a snapshot that the engine refuses takes no other one along', async (t) => {
  const refused = new Set<string>()
  let isAway = true
  const isRefused = (row: DerivedRow): boolean =>
    isAway || (row.kind === 'snapshot' && refused.has(row.actorId))
  const { scene, id, other, append } = await refusing(isRefused)
  refused.add(id)
  for (let i = 0; i < LIMITS.sharding.snapshotEntriesMin; i++) {
    await append(
      other,
      'x'.repeat((2 * LIMITS.sharding.snapshotEntryBytesMin) / LIMITS.sharding.snapshotEntriesMin),
    )
  }
  isAway = false
  await scene.clock.advance(LIMITS.sharding.unflushedMsMax * 2)
  t.ok(await scene.journal.derived.snapshot(other))
  t.equal(await scene.journal.derived.snapshot(id), null)
  t.notMatch(scene.logged.join('\n'), new RegExp(`a snapshot was given up.*${other}`))
})

t.test('a snapshot over its bound is not written, and told', async (t) => {
  t.teardown(overrideLimits({ 'sharding.snapshotBytesMax': LIMITS.sharding.snapshotEntryBytesMin }))
  const { scene, id } = await refusing(() => false)
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  t.equal(await scene.journal.derived.snapshot(id), null)
  t.match(scene.logged.join('\n'), new RegExp(`a snapshot was given up.*${id}`))
  t.equal(await scene.journal.derived.consumer(0, 'flush'), scene.shard.gate.head)
})

t.test('an entry over its bound never joins a group', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const bytes = Buffer.alloc(LIMITS.protocol.entryBytesMax + 1)
  const joining = { entry: {} as never, bytes, activation: null, state: null, bases: new Map() }
  t.throws(() => scene.shard.join(joining), { message: /an entry is within its bound/ })
  t.equal(scene.shard.gate.newest, 0)
})

t.test('the list of messages that were given up is bounded in bytes', (t) => {
  const list = new DeadLetters()
  let bytes = 0
  for (let n = 1; n <= LIMITS.sharding.poisonedMax; n++) {
    const errors = [{ code: 'POISONED', message: 'x', details: { messageId: `m${n}` } }]
    const x = { type: 'append', body: { token: 'ж'.repeat(400_000) } }
    const a = { type: 'append', success: false, errors } as never
    const base = { y: 'ledger', p: 'a', v: 0, r: [], l: 1, t: 0, c: 0, b: 'x' } as const
    const row = list.apply({ ...base, n, m: `m${n}`, a, x }, n)
    bytes = Math.max(bytes, (row as { body: Uint8Array }).body.length)
  }
  t.ok(bytes <= LIMITS.sharding.poisonedBytesMax, `${bytes} bytes`)
  t.equal(list.all().length, LIMITS.sharding.poisonedMax, 'all are told of')
  t.ok(list.all().at(-1)!.message, 'the newest are kept')
  t.equal(list.all()[0]!.message, null)
  t.end()
})
