// Which generation is read: a successor takes over when it has all that the live one has shown.
// Source: PROTOCOL 3.13.5.

import t from 'tap'
import { notebookBehaviour } from '../../cluster/feed/testing/notebook.ts'
import { settle, TestClock } from '../../cluster/testing/harness.ts'
import { LIMITS } from '../../config/limits.ts'
import { graphSchema } from '../../protocol/graph/schema.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import { Generations } from '../../storage/elastic/generations.ts'
import { layoutOf } from '../../storage/elastic/layout.ts'
import { memoryJournal } from '../../storage/memory/journal.ts'
import { MemorySearchEngine } from '../../storage/memory/search-engine.ts'
import { IndexKeeper } from './index-keeper.ts'
import { IndexRegisters } from './index-registers.ts'

/** Who owns `system` of a store with one shard, whose log and offsets the test moves. */
async function scene() {
  const clock = new TestClock()
  const journal = memoryJournal({ shards: 1, generation: 'store' })
  for (const shard of [SYSTEM_SHARD, 0]) await journal.log.claim(shard)
  const engine = new MemorySearchEngine({ nowMs: () => clock.monotonicMs() })
  const behaviour = notebookBehaviour({ fold: false, project: false })
  const layout = layoutOf(graphSchema(behaviour.nodeTypes))
  const generations = new Generations({ engine, prefix: 'test-', layout, store: 'store' })
  const registers = new IndexRegisters(journal.derived, () => 1)
  const silent = (): void => undefined
  let live: number | null = null
  const keeper = new IndexKeeper({
    generations,
    registers,
    engine,
    journal: journal.log,
    layout,
    store: 'store',
    shards: 1,
    isInCharge: () => true,
    clock,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    onView: (view) => void (live = view.live),
  })
  return {
    keeper,
    registers,
    /** The generation that is read, after a few looks more. */
    async live(looks = 3) {
      for (let look = 0; look < looks; look++) {
        for (let i = 0; i < 10; i++) await settle()
        await clock.advance(LIMITS.indexLookMs)
      }
      for (let i = 0; i < 10; i++) await settle()
      return live
    },
    async commit(count: number) {
      const { epoch, head } = await journal.log.status(0)
      const group = { shard: 0, epoch, head, count, commitId: `c${head}`, body: Buffer.alloc(1) }
      await journal.log.append([group])
    },
  }
}

t.test('a successor takes over when it has what its predecessor has shown', async (t) => {
  const s = await scene()
  t.equal(await s.live(), 1)
  await s.commit(5)
  await s.registers.setOffset(1, 0, 5)
  await s.registers.setGone(1, 0)
  t.equal(await s.live(), 1, 'the next one is being filled')
  t.strictSame(await s.registers.numbers(), { live: 1, next: 2 })
  await s.commit(4)
  await s.registers.setOffset(1, 0, 9)
  t.equal(await s.live(), 1)
  await s.registers.setOffset(2, 0, 5)
  t.equal(await s.live(), 1, 'it has what was committed when it was begun, and no more')
  await s.registers.setOffset(2, 0, 9)
  t.equal(await s.live(), 2)
  await s.keeper.stop()
})
