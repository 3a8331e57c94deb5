// An owner's machine sleeps while its append is under way; its shard is claimed, the append is
// refused, and only then it wakes and hears so (PROTOCOL 3.2.4). Nothing of it is in: its caller
// must not be told otherwise.

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const shard = stage.shardOf(a!)
  const id = stage.ledgerIn(shard)
  await stage.must(a!, id, [['open'], ['append', { token: 't0' }]])
  const held = stage.hold(a!.process, new RegExp(`^append ${shard}/`), 1)
  const { done } = stage.ask(a!, id, [['append', { token: 't1' }]])
  await stage.until('the append is under way', () => held.pending.length > 0)
  a!.process.suspend()
  await stage.until('b has the shard', () => stage.ownerOf(shard) === b)
  await stage.must(b!, id, [['append', { token: 't2' }]])
  await held.first.land()
  held.first.answer()
  await stage.wait(10)
  a!.process.resume()
  await done
}
