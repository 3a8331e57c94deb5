// Copies of one create, and who it makes: one actor, whatever becomes of the first of them. Source:
// PROTOCOL 3.6 (owner 2), ARCHITECTURE 4.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { settle } from '../../testing/harness.ts'
import { ledger } from '../../testing/ledger.ts'
import { Scene, code, data, latch } from '../testing/scene.ts'

/** A copy of one create; each names another actor, as edges that don't know of each other do. */
function copyOf(scene: Scene) {
  const say: [string, object][] = [['open', { token: 'x' }]]
  return scene.tell(scene.envelope(scene.newUuid(0), { say, key: 'k', virtual: true }))
}

t.test('a copy that comes when the first has failed and the second runs', async (t) => {
  const landing = latch()
  let turns = 0
  const behaviour = {
    ...ledger,
    *decide(...asked: Parameters<typeof ledger.decide>) {
      if (asked[1].type === 'open' && ++turns === 1) throw new Error('as asked')
      if (asked[1].type === 'open') yield { call: 'effects', hook: 'wait', payload: null }
      return yield* ledger.decide(...asked)
    },
  } as Behaviour
  const rules = () => landing.opened.then(() => [])
  const scene = new Scene({ behaviours: [behaviour], rules })
  await scene.run(scene.shard.claim())
  scene.readMs = 5
  const copies = [copyOf(scene), copyOf(scene)]
  t.equal(code(await scene.run(copies[0]!)), 'INTERNAL_ERROR')
  copies.push(copyOf(scene))
  await scene.clock.advance(100)
  landing.open()
  const [second, third] = await scene.run(Promise.all(copies.slice(1)))
  t.equal(code(second!), 'success')
  t.same(data(third!), data(second!), 'it is answered as the second is')
  t.equal(scene.shard.gate.head, 1)
})

t.test('the key can not be read: each copy is told so', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  scene.isAway = true
  const told: string[] = []
  for (const copy of [copyOf(scene), copyOf(scene), copyOf(scene)]) {
    void copy.then((reply) => told.push(code(reply)))
  }
  await settle()
  t.same(told, ['UNAVAILABLE', 'UNAVAILABLE', 'UNAVAILABLE'])
  scene.isAway = false
  t.equal(code(await scene.run(copyOf(scene))), 'success', 'nothing of them is left')
})

t.test(
  'a create that comes while another of its key is not answered yet is looked for',
  async (t) => {
    const scene = new Scene()
    await scene.run(scene.shard.claim())
    const [id, other] = [scene.newUuid(0), scene.newUuid(0)]
    const create = {
      virtual: true,
      fresh: true as const,
      key: 'k',
      say: [['open', {}]] as [string, object][],
    }
    let may = (): void => undefined
    scene.mayRead = () => new Promise((resolve) => (may = () => resolve(true)))
    const first = scene.tell(scene.envelope(id, create))
    const mismatch = scene.tell(scene.envelope(id, { ...create, bodyHash: 'another' }))
    await settle()
    t.equal(code(await first), 'success')
    t.equal(scene.shard.activations.size, 0, 'it has gone to rest')
    const again = scene.tell(scene.envelope(other, create))
    await settle()
    t.same(await again, await first)
    may()
    t.equal(code(await mismatch), 'IDEMPOTENCY_MISMATCH')
    t.equal(scene.shard.gate.head, 1, 'nothing was made twice')
  },
)

t.test('questions beside a turn count among what waits for the actor', async (t) => {
  const scene = new Scene({ rules: () => new Promise(() => undefined) })
  await scene.run(scene.shard.claim())
  const id = await scene.made()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const say = [['append', { token: 'x', wait: 'slow' }]] as const
  void scene.tell(scene.envelope(id, { say }))
  await settle()
  // Whether it took the message that they name has to be read.
  scene.shard.activations.get(id)!.marks.spilled = true
  scene.readMs = LIMITS.sharding.turnMs / 2
  const body = { keyType: 'ledger', key: 'K', messageId: 'f'.repeat(32) }
  const ask = () => scene.tell(scene.envelope(id, { say: [['!holds', body]] }))
  const asked = Array.from({ length: LIMITS.sharding.actorInFlightMax }, ask)
  t.equal(code(await scene.run(ask(), 1, 100)), 'TOO_BUSY')
  await scene.clock.advance(LIMITS.sharding.turnMs)
  for (const reply of await Promise.all(asked)) t.not(code(reply), 'TOO_BUSY')
})

t.test(
  'a create whose answers have left is found by its row, and remembered no longer',
  async (t) => {
    const scene = new Scene()
    await scene.run(scene.shard.claim())
    t.equal(code(await scene.run(copyOf(scene))), 'success')
    await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
    const { derived } = scene.journal
    const alias = derived.alias.bind(derived)
    let looks = 0
    derived.alias = (...asked) => {
      looks++
      return alias(...asked)
    }
    t.equal(code(await scene.run(copyOf(scene))), 'success')
    t.equal(looks, 1)
    t.equal(scene.shard.gate.head, 1)
  },
)
