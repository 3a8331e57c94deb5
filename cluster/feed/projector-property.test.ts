// The projector under everything at once: writes, late derived rows, snapshots, trimming, restarts
// and refused transactions in any order. In the end the index must be what the actors are.

import { deepStrictEqual } from 'node:assert'
import t from 'tap'
import fc from 'fast-check'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import type { ProjectorLimits } from './projector-options.ts'
import { actorIdOf } from './testing/feed-store.ts'
import { type Scene, erased, follow, noted, opened, scene, started } from './testing/scene.ts'

// An index is filled an actor at a step, so that anything may come in between.
overrideLimits({ 'feed.projectorBatchEntries': 1, 'feed.refillReadsTogether': 1 })
overrideLimits({ 'feed.refillStepMs': 0, 'feed.refillKeptMs': 0, 'sharding.trimEveryMs': 0 })

interface Act {
  readonly kind: 'write' | 'flush' | 'snapshot' | 'trim' | 'step' | 'restart' | 'fail'
  readonly actor: number
  readonly note: number
  readonly choice: number
}

const act: fc.Arbitrary<Act> = fc.record({
  kind: fc.constantFrom<Act['kind'][]>(
    'write',
    'write',
    'write',
    'step',
    'step',
    'flush',
    'snapshot',
    'trim',
    'restart',
    'fail',
  ),
  actor: fc.nat(3),
  note: fc.nat(2),
  choice: fc.nat(9),
})

async function play(s: Scene, acts: readonly Act[], limits: Partial<ProjectorLimits>) {
  let projector = await started(s, limits)
  const open = new Map<string, boolean>()
  const write = async ({ actor, note, choice }: Act): Promise<void> => {
    const actorId = actorIdOf(actor, actor % 2)
    if (!open.has(actorId)) {
      open.set(actorId, true)
      await s.store.commit([actorId, opened('x'), noted('n0', 'first')])
    } else if (open.get(actorId) === false) {
      await s.store.commit([actorId])
    } else if (choice === 0) {
      open.set(actorId, false)
      await s.store.commit([actorId, { t: 'closed', notes: ['n0', 'n1', 'n2'] }])
    } else {
      const record = choice < 4 ? erased(`n${note}`) : noted(`n${note}`, `${choice}`)
      await s.store.commit([actorId, record], [actorId], [actorId, opened(`t${choice}`)])
    }
  }
  const flushAll = async ({ actor }: Act): Promise<void> => {
    const actorId = actorIdOf(actor, actor % 2)
    await s.store.flush()
    if (open.has(actorId)) await s.store.snapshot(actorId)
  }
  for (const a of acts) {
    if (a.kind === 'write') await write(a)
    else if (a.kind === 'flush') await s.store.flush(a.choice)
    else if (a.kind === 'snapshot') await flushAll(a)
    else if (a.kind === 'trim') await s.store.trim()
    else if (a.kind === 'restart') projector = await started(s, limits)
    else if (a.kind === 'step') await projector.step(s.store.heads)
    else {
      const when = a.choice % 2 === 0 ? 'before' : 'after'
      s.index.fault = (at) => {
        if (at === when) throw new Error('failed')
      }
      await projector.step(s.store.heads).catch(() => undefined)
      s.index.fault = () => undefined
    }
  }
  await s.store.flush()
  const last = await follow(s, projector)
  if (last.at(-1)!.next !== 'idle') throw new Error('something is still awaited')
}

t.test('whatever fails on the way, the index ends as the actors are', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(act, { maxLength: 60 }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 0, max: 2 }),
      async (acts, entries, actors) => {
        const s = scene()
        await play(s, acts, { entries, actors })
        deepStrictEqual(s.index.docs(), s.store.expected())
        for (const [shard, head] of s.store.heads) {
          if ((s.index.offsets().get(shard) ?? 0) !== head) throw new Error('an offset is behind')
        }
        if (s.parked.length > 0) throw new Error(`parked: ${s.parked[0]!.reason}`)
      },
    ),
    { numRuns: 300 },
  )
})
