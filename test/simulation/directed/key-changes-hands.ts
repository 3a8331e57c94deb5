// A request by its actor's number is in the log, its answer is lost with the owner, and before the
// next copy comes the number belongs to another actor of the same shard: the request must not take
// effect there too (PROTOCOL 3.6 Edge 2).

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const all = await stage.start('a', 'b', 'c')
  const [a] = all
  const shard = stage.shardOf(a!)
  const heir = stage.heirOf(shard, a!)
  const edge = all.find((one) => one !== a && one !== heir)!
  const [one, other] = [stage.ledgerIn(shard), stage.ledgerIn(shard)]
  const [number, next] = stage.numbersIn(shard)
  await stage.must(a!, one, [['open', { number }]])
  const held = stage.hold(a!.process, new RegExp(`^append ${shard}/`))
  const { done } = stage.ask(edge, number, [['append', { token: 't1' }]], { budgetMs: 20_000 })
  await stage.until('the append is under way', () => held.pending.length > 0)
  await held.first.land()
  stage.world.redis.cut(edge.process, { out: true, back: true })
  stage.world.kill(a!)
  await stage.until('the heir has the shard', () => stage.ownerOf(shard) === heir)
  await stage.must(heir, one, [['renumber', { number: next }]])
  await stage.must(heir, other, [['open', { number }]])
  stage.world.redis.heal(edge.process)
  await done
}
