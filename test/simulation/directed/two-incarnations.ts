// A member is paused with an append under way, and another process of its name takes its place. The
// rows still name that member; only a claim by incarnation, with an epoch of its own, fences what
// the older incarnation has sent (PROTOCOL 3.5, 3.8.4).

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [old] = await stage.start('a')
  const shard = stage.shardOf(old!)
  const id = stage.ledgerIn(shard)
  await stage.must(old!, id, [['open'], ['append', { token: 't0' }]])
  const held = stage.hold(old!.process, new RegExp(`^append ${shard}/`))
  const { done } = stage.ask(old!, id, [['append', { token: 't1' }]])
  await stage.until('the append is under way', () => held.pending.length > 0)
  old!.process.pause()
  const next = stage.world.start('a')
  await stage.until('the next incarnation serves', () => stage.serves(next, shard) && next.isReady)
  await stage.must(next, id, [['read']])
  await held.first.land()
  await stage.must(next, id, [['append', { token: 't2' }]])
  stage.world.kill(old!)
  await done
}
