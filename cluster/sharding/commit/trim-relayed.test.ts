// A trim never passes what the next owner will look for: it goes by what the store says, whatever
// step an owner is killed at (PROTOCOL 3.5 "Trim", 3.12).

import t from 'tap'
import type { Test as Tap } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import type { DerivedRow } from '../../../storage/journal.ts'
import { settle } from '../../testing/harness.ts'
import { Scene } from '../testing/scene.ts'
import { trimStep } from './trimmer.ts'

/** Rows of this kind get no answer from now on, and none of them is in. */
function losing(kind: DerivedRow['kind']) {
  return (_: number, rows: readonly DerivedRow[]) =>
    rows.some((row) => row.kind === kind) ? ('unknown' as const) : null
}

interface Relaying {
  readonly scene: Scene
  readonly target: string
  /** Up to here the store says that effects are relayed, and that rows are written. */
  readonly relayed: number
  readonly flush: number
}

/** Three effects wait for their target; everything else is durable, and a day old. */
async function relaying(): Promise<Relaying> {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  const [from, target] = [await scene.made(), await scene.made()]
  scene.refusals = Infinity
  for (const token of ['1', '2', '3']) {
    await scene.run(scene.ask(from, { say: [['send', { token, to: target }]] }))
  }
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const flush = scene.shard.gate.head
  const clockMs = scene.shard.clockMs.bind(scene.shard)
  scene.shard.clockMs = () => clockMs() + LIMITS.sharding.feedRetentionMs
  return { scene, target, relayed: flush - 3, flush }
}

async function trim(scene: Scene): Promise<number> {
  while (await scene.run(trimStep(scene.shard, Infinity)));
  const [oldest] = await scene.journal.log.read(0, 0, 1)
  return oldest ? oldest.offset - oldest.count : scene.shard.gate.head
}

async function endsWell(t: Tap, { scene, target }: Relaying): Promise<void> {
  scene.journal.hooks.beforeWrite = undefined
  scene.logged.length = 0
  await scene.restart()
  await scene.clock.advance(LIMITS.sharding.relayRetryMsMax * 3)
  t.same(scene.logged, [], 'the next owner finds all that it looks for')
  t.same(await scene.tokens(target), ['first', '1', '2', '3'])
  t.equal(scene.shard.outbox.relayed, scene.shard.gate.head)
}

t.test('killed before any effect is taken', async (t) => {
  const made = await relaying()
  t.equal(await trim(made.scene), made.relayed)
  made.scene.refusals = 0
  await endsWell(t, made)
})

for (const kind of ['shard', 'consumer'] as const) {
  t.test(`killed when effects were taken and the row of kind ${kind} is on its way`, async (t) => {
    const made = await relaying()
    const { scene, relayed, flush } = made
    scene.journal.hooks.beforeWrite = losing(kind)
    scene.refusals = 0
    await scene.clock.advance(LIMITS.sharding.relayRetryMsMax * 3)
    t.equal(scene.shard.outbox.relayed, scene.shard.gate.head, 'all was taken')
    const upTo = await trim(scene)
    t.ok(kind === 'shard' ? upTo === relayed : upTo > relayed && upTo <= flush, `${upTo}`)
    await endsWell(t, made)
  })
}

t.test('killed when both are durable', async (t) => {
  const made = await relaying()
  const { scene, flush } = made
  scene.refusals = 0
  await scene.clock.advance(LIMITS.sharding.relayRetryMsMax * 3)
  await scene.made()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  t.equal(await trim(scene), flush, 'all that is a day old')
  await endsWell(t, made)
})

t.test(
  'killed after a handoff, in which the next owner was told what nobody has stored',
  async (t) => {
    const made = await relaying()
    const { scene, relayed } = made
    scene.journal.hooks.beforeWrite = losing('shard')
    scene.refusals = 0
    await scene.clock.advance(LIMITS.sharding.relayRetryMsMax * 3)
    const prefetched = await scene.run(scene.shard.prefetch())
    t.ok(await scene.run(scene.shard.seal()))
    const last = scene.shard.lastSnapshot()
    scene.shard.flusher.stop()
    await scene.run(scene.open().claim(undefined, { prefetched, last }))
    t.equal(await trim(scene), relayed)
    await endsWell(t, made)
  },
)

for (const when of ['before', 'while'] as const) {
  t.test(`an owner of before, replaced ${when} it looks, trims nothing`, async (t) => {
    const { scene, flush } = await relaying()
    const old = scene.shard
    const { journal } = scene
    const trims: number[] = []
    journal.log.trim = (_, __, upTo) => Promise.resolve(void trims.push(upTo))
    const replaced = async (): Promise<void> => {
      await journal.log.claim(0)
      // Its last write of the row comes late: the next owner has read the one before.
      const body = Buffer.from(JSON.stringify({ ...old.kept, relayed: flush }))
      journal.state.registers.put(0, { kind: 'shard', offset: flush + 1, body })
    }
    if (when === 'before') await replaced()
    else {
      journal.derived.shard = async (shard) => {
        await replaced()
        return journal.state.registers.shard(shard)
      }
    }
    await scene.run(trimStep(old, Infinity))
    await settle()
    t.same(trims, [])
  })
}

t.test('a trim goes by the flush offset that is stored, not by what is flushed', async (t) => {
  const scene = new Scene({ hooks: {} })
  await scene.run(scene.shard.claim())
  await scene.made()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  const { stored } = scene.shard.flusher
  scene.journal.hooks.beforeWrite = losing('consumer')
  await scene.made()
  await scene.clock.advance(LIMITS.sharding.flushStoredMs * 2)
  t.ok(scene.shard.flusher.flushed > stored, `flushed ${scene.shard.flusher.flushed}, ${stored}`)
  const clockMs = scene.shard.clockMs.bind(scene.shard)
  scene.shard.clockMs = () => clockMs() + LIMITS.sharding.feedRetentionMs
  t.equal(await trim(scene), stored)
})
