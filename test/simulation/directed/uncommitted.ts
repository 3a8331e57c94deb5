// An append never reaches the store, and its owner dies. Whatever was answered meanwhile must not
// have shown what it would have brought (PROTOCOL 3.6 Owner 5).

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const shard = stage.shardOf(a!)
  const id = stage.ledgerIn(shard)
  await stage.must(a!, id, [['open'], ['append', { token: 't0' }]])
  const held = stage.hold(a!.process, new RegExp(`^append ${shard}/`))
  const write = stage.ask(a!, id, [['append', { token: 't1' }]])
  await stage.until('the append is under way', () => held.pending.length > 0)
  const read = stage.ask(a!, id, [['read']])
  const preview = stage.ask(a!, id, [['append', { token: 't2' }]], { preview: true })
  await stage.wait(50)
  stage.world.kill(a!)
  held.forget()
  await Promise.all([write.done, read.done, preview.done])
  await stage.until('b has the shard', () => stage.ownerOf(shard) === b)
  await stage.must(b!, id, [['read']])
}
