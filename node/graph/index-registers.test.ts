// How far a shard is filled, as owners that follow one another write it down. Source: PROTOCOL
// 3.13.5.

import t from 'tap'
import { memoryJournal } from '../../storage/memory/journal.ts'
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
