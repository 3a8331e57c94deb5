// A message has taken a number of another shard, nobody has confirmed it there yet, the actor has
// another number since, and the message's mark has left its window. Asked whether it holds the
// number by that message the actor says no; but the message took effect, and its repeat must get
// the answer of then (ARCHITECTURE 4, PROTOCOL 3.6 Marks).

import { BOUNDS } from '../bounds.ts'
import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const [shard, home] = [stage.shardOf(a!), stage.shardOf(b!)]
  const [id, other] = [stage.ledgerIn(shard), stage.ledgerIn(home)]
  const number = stage.numberIn(home)
  const held = stage.hold(a!.process, new RegExp(`^append ${shard}/`), 1)
  const first = stage.ask(a!, id, [['open', { number }]], { key: 'first', budgetMs: 8_000 })
  await stage.until('the number is claimed', () => held.pending.length > 0)
  stage.world.redis.cut(a!.process, { out: true, back: false })
  held.release()
  await first.done
  await stage.must(a!, id, [['renumber', { number: stage.numberIn(shard) }]])
  for (let i = 0; i < 2 * BOUNDS.sharding.marksMax; i++) {
    await stage.must(a!, id, [['append', { token: `o${i}` }]])
  }
  await stage.until('all has its rows', () => stage.isFlushed(shard))
  await stage.wait(BOUNDS.sharding.claimAgeMs)
  const next = stage.ask(b!, other, [['open', { number }]], { budgetMs: 8_000 })
  await stage.wait(1_000)
  stage.world.redis.heal(a!.process)
  await next.done
  await stage.repeat(a!, first.operation)
}
