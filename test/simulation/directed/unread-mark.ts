// A message has taken effect, its answer is lost, its mark has left the actor's window, and its
// owner dies. The next one can't read the mark: it must not say that nothing was done (PROTOCOL 3.6
// Owner 2, Edge 3).

import { BOUNDS } from '../bounds.ts'
import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const shard = stage.shardOf(a!)
  const id = stage.ledgerIn(shard)
  await stage.must(a!, id, [['open']])
  stage.world.redis.cut(a!.process, { out: true, back: false })
  const request = stage.ask(b!, id, [['append', { token: 't1' }]], { budgetMs: 6_000 })
  await stage.until('it has taken effect', () => stage.tokensOf(id).includes('t1'))
  for (let i = 0; i < 2 * BOUNDS.sharding.marksMax; i++) {
    await stage.must(a!, id, [['append', { token: `o${i}` }]])
  }
  await stage.until('all has its rows', () => stage.isFlushed(shard))
  const marks = stage.hold(b!.process, /^mark /)
  stage.world.kill(a!)
  await request.done
  marks.release()
}
