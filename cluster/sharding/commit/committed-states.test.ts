// What a shard tells of its commits: the state beside an entry is what the log makes of its actor
// up to there, whatever was decided above it or rolled back before. Source: PROTOCOL 3.13.9.

import { deepStrictEqual } from 'node:assert'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { decodeEntry, metaOf, recordsOf, splitEntries } from '../../../protocol/entry/entry.ts'
import { ledger, type Ledger } from '../../testing/ledger.ts'
import type { OnCommitted } from '../core.ts'
import { Scene } from '../testing/scene.ts'

/** Folds what is committed by itself, and compares. */
class Folded {
  readonly actors = new Map<string, Ledger>()
  /** Entries with records whose state was told, and was not. */
  told = 0
  lacking = 0
  fault: Error | null = null

  readonly take: OnCommitted = (_, group, first, body) => {
    try {
      for (const [i, bytes] of splitEntries(body).entries()) this.#compare(bytes, group[i]!)
      deepStrictEqual(first > 0, true)
    } catch (error) {
      this.fault ??= error as Error
    }
  }

  #compare(bytes: Uint8Array, told: Parameters<OnCommitted>[1][number]): void {
    const entry = decodeEntry(bytes)
    deepStrictEqual([told.entry.m, told.entry.r.length], [entry.m, entry.r.length])
    deepStrictEqual(Buffer.from(told.bytes), Buffer.from(bytes))
    let state = this.actors.get(entry.p) ?? null
    for (const [i, record] of recordsOf(entry, ledger).entries()) {
      state = ledger.evolve(state, record, metaOf(entry, i))
    }
    if (entry.r.length === 0) return
    this.actors.set(entry.p, state!)
    if (told.state === undefined) this.lacking++
    else {
      this.told++
      deepStrictEqual(told.state, state)
    }
  }
}

const STEP = fc.record({
  actor: fc.nat(2),
  say: fc.constantFrom('append', 'append', 'append', 'renumber', 'delete', 'crash'),
  append: fc.constantFrom(null, null, null, 'unknown' as const, 'lost' as const),
  passMs: fc.constantFrom(0, 0, 1, 20, 400),
})

async function lives(t: Test, statesMax: number): Promise<Folded> {
  t.teardown(overrideLimits({ 'sharding.openStatesBytesMax': statesMax }))
  const all = new Folded()
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { maxLength: 40 }), fc.nat(1_000), async (steps, seed) => {
      const folded = new Folded()
      const scene = new Scene({ hooks: {}, seed, onCommitted: folded.take })
      await scene.run(scene.shard.claim())
      const ids = [await scene.made(), await scene.made(), await scene.made()]
      const fates = steps.map(({ append }) => append)
      scene.journal.hooks.beforeAppend = () => (fates.shift() === 'unknown' ? 'unknown' : null)
      scene.journal.hooks.afterAppend = () => (fates.shift() === 'lost' ? 'unknown' : null)
      const asked: Promise<unknown>[] = []
      for (const [i, { actor, say, passMs }] of steps.entries()) {
        const body = { token: `t${i}`, number: `N${i % 5}` }
        asked.push(scene.ask(ids[actor]!, { say: [[say, body]], key: `k${i}` }))
        await scene.clock.advance(passMs)
      }
      await scene.run(Promise.all(asked))
      if (folded.fault !== null) throw folded.fault
      all.told += folded.told
      all.lacking += folded.lacking
    }),
    { numRuns: 60 },
  )
  return all
}

t.test('it is the state that its entries make', async (t) => {
  const { told, lacking } = await lives(t, 1024 * 1024)
  t.ok(told > 200, `${told} states`)
  t.equal(lacking, 0)
})

t.test('states for which there is no room are not kept, and none is another', async (t) => {
  const { told, lacking } = await lives(t, 3_000)
  t.ok(told > 0 && lacking > 0, `${told} told, ${lacking} not`)
})
