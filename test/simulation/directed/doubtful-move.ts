// An append is applied, its owner doesn't hear so, and is fenced: it answers `moved`, to an edge
// that has not heard of its death. No owner is there until the time of the request is over. Whether
// it took effect nobody can say (PROTOCOL 3.2.2, 3.6 Edge 3).

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b, c] = await stage.start('a', 'b', 'c')
  const shard = stage.shardOf(a!)
  const id = stage.ledgerIn(shard)
  await stage.must(a!, id, [['open']])
  const held = stage.hold(a!.process, new RegExp(`^append ${shard}/`))
  const request = stage.ask(c!, id, [['append', { token: 't1' }]], { budgetMs: 8_000 })
  await stage.until('the append is under way', () => held.pending.length > 0)
  await held.first.land()
  // A can't find out what became of it, nor beat; nobody can take the shard.
  const reads = stage.hold(a!.process, /^(statics|update member)/)
  const claims = [b!, c!].map(({ process }) =>
    stage.hold(process, new RegExp(`^update shard ${shard} `)),
  )
  await stage.wait(1_500)
  const views = stage.hold(c!.process, /^(shards|members)/)
  await stage.until('nobody has heard of a for long', () => stage.isDead('a'))
  await stage.until('a gives its incarnation up', () => !stage.serves(a!, shard))
  await stage.wait(50)
  views.release()
  await request.done
  for (const claim of claims) claim.release()
  reads.release()
}
