// A request waits in a mailbox that is full. Its edge hears nothing and sends a second copy, which
// is refused for the bound; the first one still runs (PROTOCOL 3.6 Edge 3).

import { LIMITS } from '../../../config/limits.ts'
import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const shard = stage.shardOf(a!)
  const id = stage.ledgerIn(shard)
  await stage.must(a!, id, [['open']])
  const wake = stage.rulesWait()
  const slow = stage.ask(a!, id, [['append', { token: 'slow', waits: true }]])
  await stage.wait(10)
  const first = stage.ask(b!, id, [['append', { token: 'first' }]], { budgetMs: 25_000 })
  await stage.wait(20)
  const others: Promise<void>[] = []
  for (let i = 0; i < LIMITS.sharding.actorInFlightMax; i++) {
    others.push(stage.ask(a!, id, [['append', { token: `t${i}` }]], { budgetMs: 25_000 }).done)
  }
  // Silence makes the edge send again.
  await stage.until('a copy was sent again', () => stage.copiesOf(first.operation) > 1)
  await stage.wait(100)
  wake()
  await Promise.all([slow.done, first.done, ...others])
}
