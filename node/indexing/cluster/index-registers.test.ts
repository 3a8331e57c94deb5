// How far a shard is filled, as owners that follow one another write it down. Source: PROTOCOL
// 3.13.5.

import t from 'tap'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { memoryJournal } from '../../../storage/memory/journal.ts'
import { IndexRegisters } from './index-registers.ts'

t.test('of two places in a fill the further one stays, whoever writes last', async (t) => {
  const { log, derived } = memoryJournal({ shards: 1, generation: 'store' })
  const { epoch } = await log.claim(0)
  const registers = new IndexRegisters(derived, () => epoch)
  t.equal(await registers.fill(3, 0), null)
  const begun = { shard: 0, begun: 7, after: null, step: 1 }
  await registers.setFill(3, begun)
  t.same(await registers.fill(3, 0), begun)
  const further = { ...begun, after: 'actor 5', step: 9 }
  await registers.setFill(3, { ...begun, after: 'actor 1', step: 2 })
  await registers.setFill(3, further)
  t.same(await registers.fill(3, 0), further)
  await registers.setFill(3, { ...begun, after: 'actor 2', step: 3 })
  t.same(await registers.fill(3, 0), further, 'what an owner before it wrote late')
  t.equal(await registers.fill(4, 0), null, 'another generation begins by itself')
})

t.test('the newest generation is never older than the one that is read', async (t) => {
  const { log, derived } = memoryJournal({ shards: 1, generation: 'store' })
  const { epoch } = await log.claim(SYSTEM_SHARD)
  const registers = new IndexRegisters(derived, () => epoch)
  t.same(await registers.numbers(), { live: 0, next: 0 })
  await registers.setLive(3)
  t.same(await registers.numbers(), { live: 3, next: 3 })
  await registers.setNext(4)
  t.same(await registers.numbers(), { live: 3, next: 4 })
})

t.test(
  'of a shard that is another’s by now nothing is written, and nothing is wrong',
  async (t) => {
    const { log, derived, hooks } = memoryJournal({ shards: 1, generation: 'store', hooks: {} })
    const { epoch } = await log.claim(0)
    let own: number | null = epoch
    const registers = new IndexRegisters(derived, () => own)
    await registers.setOffset(1, 0, 5)
    await log.claim(0)
    await registers.setOffset(1, 0, 6)
    own = null
    await registers.setOffset(1, 0, 7)
    t.equal(await registers.offset(1, 0), 5)
    own = epoch + 1
    hooks.beforeWrite = () => 'unknown'
    await t.rejects(registers.setOffset(1, 0, 8), /rows of shard 0 were not written: unknown/)
  },
)
