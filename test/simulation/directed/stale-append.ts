// An append of an owner that was replaced lands at last: the fence of the claim makes it false for
// ever (PROTOCOL 3.7, I2). Without the epoch in its condition it is applied.

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b] = (await stage.start('a', 'b')) as [never, never]
  await staleAppend(stage, a, b)
}

type Member = Awaited<ReturnType<Stage['start']>>[number]

async function staleAppend(stage: Stage, a: Member, b: Member): Promise<void> {
  const shard = stage.shardOf(a)
  const id = stage.ledgerIn(shard)
  await stage.must(a, id, [['open'], ['append', { token: 't0' }]])
  const held = stage.hold(a.process, new RegExp(`^append ${shard}/`))
  const { done } = stage.ask(a, id, [['append', { token: 't1' }]])
  await stage.until('the append is under way', () => held.pending.length > 0)
  stage.world.kill(a)
  await done
  await stage.until('b has the shard', () => stage.ownerOf(shard) === b)
  await stage.must(b, id, [['read']])
  await held.first.land()
  await stage.must(b, id, [['append', { token: 't2' }]])
}
