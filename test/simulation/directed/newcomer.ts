// A member is paused for less than its lease, and another process of its name wants its place.
// While the old one's beat has not stood still for long enough it may wake and answer reads, so the
// newcomer waits (PROTOCOL 3.3.1).

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [old] = await stage.start('a')
  const shard = stage.shardOf(old!)
  const id = stage.ledgerIn(shard)
  await stage.must(old!, id, [['open'], ['append', { token: 't0' }]])
  await stage.wait(1_000)
  await stage.must(old!, id, [['read']])
  old!.process.pause()
  const next = stage.world.start('a')
  // As long as the old one's lease may stand, the newcomer gets the time that it wants.
  await stage.wait(800)
  if (next.isReady) await stage.must(next, id, [['append', { token: 't1' }]])
  const { done } = stage.ask(old!, id, [['read']])
  await stage.wait(10)
  old!.process.resume()
  await done
  stage.world.kill(old!)
  await stage.until(
    'the next incarnation serves',
    () => stage.ownerOf(shard) === next && next.isReady,
  )
}
