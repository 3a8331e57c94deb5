// A request is in the log and its answer is lost; then its edge's machine sleeps, and its owner is
// stopped, for longer than ids made at an edge are remembered. Nobody was there who could have
// declared the edge dead: it wakes and sends its copy again (PROTOCOL 3.0 "Clock", 3.7 I4).

import { BOUNDS } from '../bounds.ts'
import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const shard = stage.shardOf(b!)
  const id = stage.ledgerIn(shard)
  await stage.must(a!, id, [['open']])
  stage.world.redis.cut(b!.process, { out: true, back: false })
  const { done } = stage.ask(a!, id, [['append', { token: 't1' }]], { budgetMs: 30_000 })
  await stage.until('it is in the log', () => stage.tokensOf(id).includes('t1'))
  // Its answer is lost.
  await stage.wait(100)
  a!.process.suspend()
  b!.process.pause()
  stage.world.redis.heal(b!.process)
  await stage.wait(2 * BOUNDS.storage.edgeMarkMs)
  b!.process.resume()
  a!.process.resume()
  await done
}
