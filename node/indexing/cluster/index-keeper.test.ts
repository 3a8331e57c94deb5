// Which generation is read: a successor takes over when it has all that the live one has shown.
// Source: PROTOCOL 3.13.5.

import t from 'tap'
import { notebookBehaviour } from '../../../cluster/feed/testing/notebook.ts'
import { settle, TestClock } from '../../../cluster/testing/harness.ts'
import { LIMITS } from '../../../config/limits.ts'
import { graphSchema } from '../../../protocol/graph/schema.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { Generations } from '../../../storage/elastic/generations.ts'
import { layoutOf } from '../../../storage/elastic/layout.ts'
import { memoryJournal } from '../../../storage/memory/journal.ts'
import { MemorySearchEngine } from '../../../storage/memory/search-engine.ts'
import type { SearchEngine } from '../../../storage/elastic/engine.ts'
import type { Journal } from '../../../storage/journal.ts'
import { IndexKeeper, type LaidOut } from './index-keeper.ts'
import { IndexRegisters } from './index-registers.ts'

const registersOf = ({ derived }: Journal) => new IndexRegisters(derived, () => 1)

/** What is there when it begins to look. */
type Before = (engine: SearchEngine, registers: IndexRegisters) => Promise<void>

/** Generations under the same prefix, of another store, or with a type more. */
function others(engine: SearchEngine, { store = 'store', more = false } = {}): Generations {
  const [notebook, ...rest] = notebookBehaviour({ fold: false, project: false }).nodeTypes
  const field = { name: 'more', type: 'text' as const }
  const changed = more ? { ...notebook!, fields: [...notebook!.fields, field] } : notebook!
  const layout = layoutOf(graphSchema([changed, ...rest]))
  return new Generations({ engine, prefix: 'test-', layout, store })
}

/** Node types with one field more. */
function laidWith(engine: SearchEngine, field: string): LaidOut {
  const [notebook, ...rest] = notebookBehaviour({ fold: false, project: false }).nodeTypes
  const fields = [...notebook!.fields, { name: field, type: 'text' } as const]
  const layout = layoutOf(graphSchema([{ ...notebook!, fields }, ...rest]))
  return {
    layout,
    generations: new Generations({ engine, prefix: 'test-', layout, store: 'store' }),
  }
}

/** Who owns `system` of a store with one shard, whose log and offsets the test moves. */
async function scene(before: Before = () => Promise.resolve()) {
  const clock = new TestClock()
  const journal = memoryJournal({ shards: 1, generation: 'store' })
  for (const shard of [SYSTEM_SHARD, 0]) await journal.log.claim(shard)
  const engine = new MemorySearchEngine({ nowMs: () => clock.monotonicMs() })
  await before(engine, registersOf(journal))
  const behaviour = notebookBehaviour({ fold: false, project: false })
  const layout = layoutOf(graphSchema(behaviour.nodeTypes))
  const generations = new Generations({ engine, prefix: 'test-', layout, store: 'store' })
  const registers = registersOf(journal)
  const silent = (): void => undefined
  let live: number | null = null
  const shown = new Set<number>()
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
    onView: (view) => {
      live = view.live
      if (live !== null) shown.add(live)
    },
  })
  return {
    clock,
    keeper,
    registers,
    engine,
    /** Generations that were told to be read. */
    shown,
    /** Numbers of the generations that are there. */
    async there() {
      const infos = await engine.indexes('test-')
      return [...new Set(infos.map(({ meta }) => meta['generation'] as number))].toSorted()
    },
    /** The generation that is read, after a few looks more. */
    async live(looks = 3) {
      for (let look = 0; look < looks; look++) {
        for (let i = 0; i < 10; i++) await settle()
        await clock.advance(LIMITS.indexing.lookMs)
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

const graceLooks = 3 + LIMITS.indexing.graceMs / LIMITS.indexing.lookMs

t.test('an index of another store is not read, and not dropped', async (t) => {
  const s = await scene(async (engine, registers) => {
    await others(engine, { store: 'another' }).make(1)
    await registers.setLive(1)
  })
  t.equal(await s.live(), 2, 'its number is passed over')
  t.equal(await s.live(graceLooks), 2)
  t.same(await s.there(), [1, 2])
  t.same([...s.shown], [2], 'nor was it for a moment')
  await s.keeper.stop()
})

t.test('what nobody reads goes after its grace; one that is being made stays', async (t) => {
  const s = await scene()
  t.equal(await s.live(), 1)
  await s.registers.setGone(1, 0)
  await s.live()
  t.equal(await s.live(), 2)
  // Made by who owns `system` now: its number is not written down yet.
  await others(s.engine).make(7)
  t.same(await s.there(), [1, 2, 7])
  await s.live(graceLooks)
  t.same(await s.there(), [2, 7])
  await s.keeper.stop()
})

t.test(
  'a successor that another version fills is waited for while the live one is right',
  async (t) => {
    const s = await scene()
    t.equal(await s.live(), 1)
    await others(s.engine, { more: true }).make(2)
    await s.registers.setNext(2)
    t.equal(await s.live(), 1)
    t.same(await s.registers.numbers(), { live: 1, next: 2 })
    await s.registers.setGone(1, 0)
    await s.live()
    t.equal((await s.registers.numbers()).next, 3, 'this one can not wait')
    await s.keeper.stop()
  },
)

t.test('definitions that come one after the other leave few generations behind', async (t) => {
  const s = await scene()
  t.equal(await s.live(), 1)
  let most = 0
  for (let i = 0; i < 200; i++) {
    s.keeper.follow(laidWith(s.engine, `field${i}`))
    for (let turns = 0; turns < 10; turns++) await settle()
    await s.clock.advance(100)
    most = Math.max(most, (await s.there()).length)
  }
  t.ok(most <= 6, `${most} at once`)
  await s.live()
  t.equal((await s.there())[0], 1, 'what is read stays')
  const { fingerprint } = laidWith(s.engine, 'field199').layout
  const infos = await s.engine.indexes('test-')
  t.ok(
    infos.some(({ meta }) => meta['fingerprint'] === fingerprint),
    'the newest is there',
  )
  await s.keeper.stop()
})

t.test('an engine that has no room for another index gets some', async (t) => {
  const s = await scene()
  t.equal(await s.live(), 1)
  for (const number of [2, 3]) {
    await s.registers.setGone(number - 1, 0)
    await s.live()
    t.equal(await s.live(), number)
  }
  t.same(await s.there(), [1, 2, 3])
  const create = s.engine.createIndex.bind(s.engine)
  s.engine.createIndex = async (...args) => {
    // As Elasticsearch says it: this cluster has the maximum of shards open.
    if ((await s.there()).length >= 3) throw new Error('validation_exception')
    return create(...args)
  }
  await s.registers.setGone(3, 0)
  await s.live(graceLooks)
  t.same((await s.registers.numbers()).next, 4, 'what is over has gone for it')
  t.equal(await s.live(), 4)
  await s.keeper.stop()
})
