// A tail that is longer than memory should hold, as of a store that was restored from its log: a
// claim replays it in steps, with the same outcome as at once, and one that ends on its way is gone
// on with (PROTOCOL 3.5, 3.12).

import t, { type Test } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { LostTenure, type DerivedRow } from '../../../storage/journal.ts'
import { Scene, code } from '../testing/scene.ts'

// Some actors make a long tail then.
overrideLimits({ 'sharding.replayedAtOnceMax': 20, 'sharding.replayStepBytes': 2_000 })

const ACTORS = 30

interface Filled {
  readonly scene: Scene
  readonly ids: readonly string[]
  /** Offset of the entry whose effect was not taken. */
  readonly effectAt: number
}

/** A shard with a log of which nothing is derived yet; one of its effects was not taken. */
async function filled(): Promise<Filled> {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  scene.journal.hooks.beforeWrite = () => 'unknown'
  const ids: string[] = []
  for (let i = 0; i < ACTORS; i++) ids.push(await scene.made())
  for (let i = 0; i < ACTORS; i += 3) {
    await scene.run(scene.ask(ids[i]!, { say: [['renumber', { number: `N${i}` }]] }))
  }
  scene.refusals = Infinity
  const [a, b] = ids
  await scene.run(scene.ask(a!, { say: [['send', { token: 'sent', to: b! }]] }))
  const effectAt = scene.shard.gate.head
  for (const [i, id] of ids.entries()) {
    await scene.run(scene.ask(id, { say: [['append', { token: `t${i}` }]] }))
  }
  scene.shard.flusher.stop()
  scene.shard.outbox.stop()
  scene.refusals = 0
  scene.journal.hooks.beforeWrite = undefined
  return { scene, ids, effectAt }
}

async function holdsAll(t: Test, { scene, ids }: Filled): Promise<void> {
  await scene.clock.advance(LIMITS.sharding.relayRetryMsMax)
  for (const [i, id] of ids.entries()) {
    const sent = ['sent'].filter(() => i < 2)
    const tokens = await scene.tokens(id)
    // The one that sends has it at once, the other one when it is relayed.
    t.same(tokens, i === 1 ? ['first', `t${i}`, ...sent] : ['first', ...sent, `t${i}`])
  }
  const taken = scene.ask(ids[1]!, { say: [['renumber', { number: 'N3' }]] })
  t.equal(code(await scene.run(taken)), 'ALREADY_EXISTS')
  const free = scene.ask(ids[1]!, { say: [['renumber', { number: 'N4' }]] })
  t.not(code(await scene.run(free)), 'ALREADY_EXISTS')
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const { head } = scene.shard.gate
  t.equal(await scene.journal.derived.consumer(0, 'flush'), head)
  t.equal(scene.shard.outbox.relayed, head)
}

/** What is derived, in the order in which it was written; a flush offset ends a step. */
function hear({ scene }: Filled): DerivedRow[] {
  const rows: DerivedRow[] = []
  const write = scene.journal.derived.write.bind(scene.journal.derived)
  scene.journal.derived.write = (shard, epoch, some) => {
    rows.push(...some)
    return write(shard, epoch, some)
  }
  return rows
}

t.test('a long tail is replayed in steps, and then the shard serves', async (t) => {
  const store = await filled()
  const { scene } = store
  const { head } = scene.shard.gate
  const rows = hear(store)
  const next = scene.open()
  await scene.run(next.claim())
  const steps = rows.filter((row) => row.kind === 'consumer')
  t.ok(steps.length >= 5, `${steps.length} steps`)
  let at = 0
  let furthest = 0
  for (const row of rows) {
    if (row.kind === 'consumer') at = row.offset
    else if (row.kind === 'entry') t.ok(row.offset > at, 'nothing is replayed twice')
    else if (row.kind === 'shard') {
      const { counted, relayed } = JSON.parse(Buffer.from(row.body).toString()) as {
        counted: number
        relayed: number
      }
      t.ok(counted >= row.offset && counted <= head, `counted to ${counted} at ${row.offset}`)
      t.ok(relayed < store.effectAt, `relayed to ${relayed}, and the effect is open`)
      furthest = Math.max(furthest, relayed)
    }
  }
  t.ok(furthest > 0, 'what has no effects is behind the relay')
  t.ok(next.flusher.stored < head, 'the last of it is written while it serves')
  await holdsAll(t, store)
})

t.test('what is remembered is the same as after a replay at once', async (t) => {
  const stores = [await filled(), await filled()]
  const memories: unknown[] = []
  for (const [i, { scene }] of stores.entries()) {
    overrideLimits({ 'sharding.replayedAtOnceMax': i === 0 ? 20 : 100_000 })
    await scene.run(scene.open().claim())
    await scene.clock.advance(LIMITS.sharding.flushStoredMs * 4)
    const { logBytes, counted, counters } = scene.shard.kept
    memories.push({ logBytes, counted, counters })
  }
  overrideLimits({ 'sharding.replayedAtOnceMax': 20 })
  t.same(memories[0], memories[1])
})

t.test('what was read ahead of a long tail does not bring it back', async (t) => {
  const store = await filled()
  const { scene } = store
  const prefetched = await scene.run(scene.shard.prefetch())
  t.equal(prefetched.upTo, scene.shard.gate.head, 'all of it')
  const rows = hear(store)
  await scene.run(scene.open().claim(undefined, { prefetched }))
  await holdsAll(t, store)
  let at = 0
  for (const row of rows) {
    if (row.kind === 'consumer') at = row.offset
    else if (row.kind === 'entry') t.ok(row.offset > at, 'nothing is replayed twice')
  }
})

t.test('a claim that ends on its way is gone on with', async (t) => {
  for (const writes of [1, 2, 3, 5, 8]) {
    const store = await filled()
    const { scene } = store
    let left = writes
    scene.journal.hooks.beforeWrite = () => (left-- > 0 ? null : 'unknown')
    const dying = scene.open()
    void dying.claim().catch(() => {})
    await scene.clock.advance(LIMITS.sharding.flushStoredMs)
    t.equal(dying.state, 'claiming')
    dying.stepDown('killed')
    scene.journal.hooks.beforeWrite = undefined
    await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
    await scene.run(scene.open().claim())
    await holdsAll(t, store)
  }
})

t.test('a shard that somebody else has taken meanwhile is not claimed', async (t) => {
  const { scene } = await filled()
  let left = 4
  scene.journal.hooks.beforeWrite = () => (left-- > 0 ? null : 'fenced')
  await t.rejects(scene.run(scene.open().claim()), LostTenure)
  t.equal(scene.shard.state, 'stopped')
})
