// The memory twin passes the suite of every journal, and fails the ways it is told to.

import t from 'tap'
import { group } from '../conformance/journal-samples.ts'
import { journalConformance } from '../conformance/journal.ts'
import { memoryJournal, type MemoryHooks } from './journal.ts'

journalConformance(t, (_, shards) => {
  const journal = memoryJournal({ shards, generation: 'one' })
  const { state } = journal
  const reopen = () => Promise.resolve(memoryJournal({ shards, generation: 'two', state }))
  return Promise.resolve({ journal, reopen })
})

void t.test('a store is opened with its own number of shards', async (t) => {
  const { state } = memoryJournal({ shards: 4, generation: 'one' })
  const open = () => memoryJournal({ shards: 8, generation: 'one', state })
  t.throws(open, { message: "this store has 4 shards and can't be opened with 8" })
  t.throws(() => memoryJournal({ shards: 3, generation: 'one' }), { message: /power of two/ })
  await t.rejects(async () => memoryJournal({ shards: 4, generation: 'one' }).log.status(4))
})

void t.test('hooks', async (t) => {
  const hooks: MemoryHooks = {}
  const { log, derived } = memoryJournal({ shards: 2, generation: 'one', hooks })
  const { epoch } = await log.claim(0)
  const append = (head: number) => log.append([group({ shard: 0, epoch, head })])

  hooks.beforeAppend = () => 'full'
  t.same(await append(0), ['full'])
  t.equal((await log.status(0)).head, 0, 'answered before: nothing is in')
  hooks.beforeAppend = () => Promise.resolve(null)
  hooks.afterAppend = (_, outcome) => (outcome === 'committed' ? 'unknown' : null)
  t.same(await append(0), ['unknown'])
  t.equal((await log.status(0)).head, 1, 'answered after: it is in')
  t.same(await append(0), ['fenced'])

  let land = () => {}
  const when = new Promise<void>((resolve) => (land = resolve))
  hooks.beforeAppend = () => ({ outcome: 'unknown', when })
  t.same(await append(1), ['unknown'])
  t.equal((await log.status(0)).head, 1)
  land()
  await when
  t.equal((await log.status(0)).head, 2, 'it lands when it may')

  hooks.beforeWrite = () => 'unknown'
  t.equal(
    await derived.write(0, epoch, [{ kind: 'consumer', consumer: 'flush', offset: 1 }]),
    'unknown',
  )
  t.equal(await derived.consumer(0, 'flush'), null)
})

void t.test('older images go, the newest but one stays', async (t) => {
  const { derived, log, state } = memoryJournal({ shards: 2, generation: 'one' })
  const { epoch } = await log.claim(-1)
  for (const offset of [10, 20, 30]) {
    const body = Buffer.of(offset)
    await derived.write(-1, epoch, [
      { kind: 'image', offset, part: 0, body },
      { kind: 'consumer', consumer: 'image', offset },
    ])
  }
  await derived.trimImages()
  t.same(state.registers.imageOffsets(), [20, 30])
})
