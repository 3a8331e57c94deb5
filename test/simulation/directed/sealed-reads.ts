// A shard is signed over, its old owner has not heard so yet, and the next one serves and commits.
// Sealed is sealed for reads too (PROTOCOL 3.8.2).

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a] = await stage.start('a')
  const shards = [0, 1, 2, 3]
  const ids = shards.map((shard) => stage.ledgerIn(shard))
  for (const id of ids) await stage.must(a!, id, [['open'], ['append', { token: id }]])
  const signatures = stage.hold(a!.process, /^update shard \d .*owner b/)
  const b = stage.world.start('b')
  await stage.until('a signs a shard over', () => signatures.pending.length > 0)
  const shard = Number(/^update shard (\d)/.exec(signatures.first.text)![1])
  const views = stage.hold(a!.process, /^(shards|members|shard \d)/)
  // Nobody tells a that b serves.
  stage.world.redis.cut(a!.process, { out: false, back: true })
  await signatures.first.land()
  await stage.until('b serves it', () => b.member.shards.get(shard)?.state === 'serving')
  const id = ids[shard]!
  await stage.must(b, id, [['append', { token: 'by-b' }]])
  const { done } = stage.ask(a!, id, [['read']])
  await stage.wait(100)
  stage.world.redis.heal(a!.process)
  views.release()
  signatures.release()
  await done
}
