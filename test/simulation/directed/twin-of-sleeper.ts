// A member stands still for a moment, and on its own machine another process of its name starts,
// takes over and writes. The first one wakes within its lease and is asked: only a process that is
// no more need not be waited for (PROTOCOL 3.3.1, 3.7 I5).

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  stage.world.isOneMachine = true
  const [old] = await stage.start('a')
  const shard = stage.shardOf(old!)
  const id = stage.ledgerIn(shard)
  await stage.must(old!, id, [['open'], ['append', { token: 't0' }]])
  old!.process.pause()
  const next = stage.world.start('a')
  await stage.until('the next incarnation serves', () => stage.serves(next, shard) && next.isReady)
  await stage.must(next, id, [['append', { token: 't1' }]])
  old!.process.resume()
  const { done } = stage.ask(old!, id, [['read']])
  await stage.wait(200)
  stage.world.kill(old!)
  await done
}
