// Keys whose shard is another one than their actor's: what is claimed for a message stays its
// claim, whatever becomes of the turns that it takes. Source: ARCHITECTURE 4 "Apart".

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { decodeEntry, splitEntries } from '../../../protocol/entry/entry.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { placeOfKey, shardOf } from '../../../protocol/ids.ts'
import { settle } from '../../testing/harness.ts'
import { ledger } from '../../testing/ledger.ts'
import { Scene, code, data, latch } from '../testing/scene.ts'

const SHARDS = 4

/** A number of the n-th shard. */
function numberOf(shard: number): string {
  for (let i = 0; ; i++) {
    if (shardOf(placeOfKey('ledger', `N${i}`), SHARDS) === shard) return `N${i}`
  }
}

t.test('a claim is not lost by a turn that failed before its message took effect', async (t) => {
  let isFailing = true
  const behaviour = {
    ...ledger,
    *decide(...asked: Parameters<typeof ledger.decide>) {
      const decision = yield* ledger.decide(...asked)
      if (isFailing && asked[1].type === 'renumber') throw new Error('as asked')
      return decision
    },
  } as Behaviour
  const scene = new Scene({ shards: SHARDS, behaviours: [behaviour] })
  await scene.run(scene.shard.claim())
  const [id, other] = [await scene.made(), await scene.made()]
  const number = numberOf(1)
  const late: (() => void)[] = []
  const { context } = scene.shard
  const { send } = context
  Object.assign(context, {
    send: (...sent: Parameters<typeof send>) => {
      if (sent[0].messages[0]!.type === '!free') late.push(() => send(...sent))
      else send(...sent)
    },
  })
  const renumber = (who: string, key: string) =>
    scene.run(scene.ask(who, { say: [['renumber', { number }]], key }))
  t.equal(code(await renumber(id, 'k')), 'INTERNAL_ERROR')
  isFailing = false
  t.equal(code(await renumber(id, 'k')), 'success')
  for (const arrive of late) arrive()
  await scene.clock.advance(LIMITS.sharding.claimAgeMs + LIMITS.sharding.flushStoredMs)
  const row = await scene.journal.derived.alias('ledger', number)
  t.match(row?.claims, [{ actorId: id, confirmed: true }])
  t.equal(code(await renumber(other, 'l')), 'ALREADY_EXISTS')
})

t.test('a preview says nothing of a number before what it goes by is committed', async (t) => {
  for (const isLost of [false, true]) {
    const scene = new Scene({ hooks: {} })
    await scene.run(scene.shard.claim())
    const [holder, other] = [await scene.made(), await scene.made()]
    const landing = latch()
    scene.journal.hooks.beforeAppend = () => landing.opened.then(() => null)
    const say: [string, object][] = [['renumber', { number: 'K' }]]
    void scene.tell(scene.envelope(holder, { say }))
    await settle()
    const told: string[] = []
    const preview = scene.tell(scene.envelope(other, { say, preview: true }))
    void preview.then((reply) => told.push(code(reply)))
    await settle()
    t.same(told, [], 'nobody knows yet who has it')
    if (isLost) await scene.journal.log.claim(0)
    landing.open()
    await scene.clock.advance(100)
    t.same(told, [isLost ? 'moved' : 'ALREADY_EXISTS'])
  }
})

t.test('a claim waits for a turn that has taken the key while its row was read', async (t) => {
  const landing = latch()
  const behaviour = {
    ...ledger,
    *decide(...asked: Parameters<typeof ledger.decide>) {
      const decision = yield* ledger.decide(...asked)
      if (asked[1].type === 'renumber') yield { call: 'effects', hook: 'wait', payload: null }
      return decision
    },
  } as Behaviour
  const rules = () => landing.opened.then(() => [])
  const scene = new Scene({ behaviours: [behaviour], rules })
  await scene.run(scene.shard.claim())
  const [id, apart] = [await scene.made(), scene.newUuid(1)]
  scene.readMs = 50
  const body = { actorId: apart, messageId: 'm' }
  const envelope = { ...scene.envelope(apart), messages: [{ type: '!claim', body }] }
  const claimed = scene.tell({ ...envelope, to: { type: 'ledger', key: 'K' } })
  scene.readMs = 0
  const taken = scene.tell(scene.envelope(id, { say: [['renumber', { number: 'K' }]] }))
  await scene.clock.advance(100)
  landing.open()
  t.equal(code(await scene.run(taken)), 'success')
  t.equal(data(await scene.run(claimed)), false)
})

t.test('a young claim is not asked about: its message may be on its way', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const [id, claimer] = [await scene.made(), await scene.made()]
  const body = { actorId: claimer, messageId: 'm' }
  const claim = { ...scene.envelope(claimer), messages: [{ type: '!claim', body }] }
  t.equal(data(await scene.run(scene.tell({ ...claim, to: { type: 'ledger', key: 'K' } }))), true)
  const renumber = () => scene.run(scene.ask(id, { say: [['renumber', { number: 'K' }]] }))
  t.equal(code(await renumber()), 'ALREADY_EXISTS')
  await scene.clock.advance(LIMITS.sharding.claimAgeMs)
  t.equal(code(await renumber()), 'success', 'an old one is: its actor does not have it')
})

t.test('each message of an actor has a claim of its own', async (t) => {
  const scene = new Scene()
  await scene.run(scene.shard.claim())
  const [id, other] = [await scene.made(), await scene.made()]
  const say = async (type: string, actorId: string, messageId: string) => {
    const envelope = {
      ...scene.envelope(actorId),
      messages: [{ type, body: { actorId, messageId } }],
    }
    return data(await scene.run(scene.tell({ ...envelope, to: { type: 'ledger', key: 'K' } })))
  }
  t.equal(await say('!claim', id, 'first'), true)
  t.equal(await say('!claim', id, 'second'), true)
  t.equal(await say('!free', id, 'first'), true)
  t.equal(await say('!confirm', id, 'second'), true)
  await scene.clock.advance(LIMITS.sharding.claimAgeMs)
  t.equal(await say('!claim', other, 'third'), false, 'what the second has confirmed stays')
})

t.test(
  'who is told that an actor has no key by a message will never find that it has',
  async (t) => {
    const scene = new Scene()
    await scene.run(scene.shard.claim())
    const id = await scene.made()
    const body = { keyType: 'ledger', key: 'K', messageId: 'late' }
    const { nowMs } = scene.clock
    // The wall clock is set back to before the actor was made.
    scene.clock.nowMs = () => 5
    t.equal(data(await scene.run(scene.ask(id, { say: [['!holds', body]] }))), false)
    scene.clock.nowMs = nowMs
    const rows = await scene.journal.log.read(0, 0, 9e9)
    const times = rows.flatMap((row) => splitEntries(row.body).map((one) => decodeEntry(one).t))
    t.same(
      times,
      times.toSorted((a, b) => a - b),
      'times of an actor never fall',
    )
    const late = { key: 'late', say: [['renumber', { number: 'K' }]] as [string, object][] }
    t.equal(code(await scene.run(scene.ask(id, late))), 'VOID')
    // As long as its caller may repeat it.
    await scene.clock.advance(LIMITS.storage.callerMarkMs - 60_000)
    t.equal(code(await scene.run(scene.ask(id, late))), 'VOID')
  },
)
