// A message to another actor leaves only when the entry that sends it is in the log: here it never
// is, for its owner dies before (PROTOCOL 3.6 Outbox).

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const shard = stage.shardOf(a!)
  const id = stage.ledgerIn(shard)
  const to = stage.ledgerIn(stage.shardOf(b!))
  await stage.must(a!, id, [['open']])
  await stage.must(a!, to, [['open']])
  const held = stage.hold(a!.process, new RegExp(`^append ${shard}/`))
  const { done } = stage.ask(a!, id, [['send', { token: 't1', to }]])
  await stage.until('the append is under way', () => held.pending.length > 0)
  await stage.wait(200)
  stage.world.kill(a!)
  held.forget()
  await done
  await stage.until('b has the shard', () => stage.ownerOf(shard) === b)
  await stage.must(b!, to, [['read']])
}
