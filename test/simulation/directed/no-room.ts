// A message has taken effect, its answer is lost, its owner dies. The next owner has no room for
// another request of that actor, and says so before it has looked for the message: its edge asks
// again (PROTOCOL 3.6 Edge 3).

import { LIMITS } from '../../../config/limits.ts'
import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b, c] = await stage.start('a', 'b', 'c')
  const shard = stage.shardOf(a!)
  const id = stage.ledgerIn(shard)
  await stage.must(a!, id, [['open']])
  stage.world.redis.cut(a!.process, { out: true, back: false })
  const edge = stage.heirOf(shard, a!) === b ? c! : b!
  const request = stage.ask(edge, id, [['append', { token: 't1' }]], { budgetMs: 15_000 })
  await stage.until('it has taken effect', () => stage.tokensOf(id).includes('t1'))
  // The edge doesn't hear of the death before its successor has no room.
  const views = stage.hold(edge.process, /^(shards|members)/)
  stage.world.redis.cut(edge.process, { out: false, back: true })
  stage.world.kill(a!)
  await stage.until('another one has the shard', () => stage.ownerOf(shard) !== null)
  const owner = stage.ownerOf(shard)!
  const wake = stage.rulesWait()
  const others = [stage.ask(owner, id, [['append', { token: 'slow', waits: true }]])]
  await stage.wait(50)
  for (let i = 0; i <= LIMITS.sharding.actorInFlightMax; i++) {
    others.push(stage.ask(owner, id, [['append', { token: `o${i}` }]], { budgetMs: 15_000 }))
  }
  await stage.wait(50)
  stage.world.redis.heal(edge.process)
  views.release()
  await stage.wait(1_500)
  wake()
  await Promise.all([request.done, ...others.map(({ done }) => done)])
}
