// The signature of a handoff is not heard of and lands later. Its owner may not serve again before
// the row has said what became of it (PROTOCOL 3.8.3).

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a] = await stage.start('a')
  const ids = [0, 1, 2, 3].map((shard) => stage.ledgerIn(shard))
  for (const id of ids) await stage.must(a!, id, [['open'], ['append', { token: id }]])
  const signatures = stage.hold(a!.process, /^update shard \d .*owner b/, 1)
  const b = stage.world.start('b')
  await stage.until('a signs a shard over', () => signatures.pending.length > 0)
  const shard = Number(/^update shard (\d)/.exec(signatures.first.text)![1])
  const id = ids[shard]!
  // Longer than a client of the store waits: the outcome is unknown.
  const again = stage.hold(a!.process, /^update shard \d .*owner b/)
  await stage.wait(750)
  const views = stage.hold(a!.process, /^(shards|members|shard \d)/)
  // Nobody tells a that b serves.
  stage.world.redis.cut(a!.process, { out: false, back: true })
  await signatures.first.land()
  await stage.until('b serves it', () => b.member.shards.get(shard)?.state === 'serving')
  await stage.must(b, id, [['append', { token: 'by-b' }]])
  const { done } = stage.ask(a!, id, [['read']])
  await stage.wait(100)
  stage.world.redis.heal(a!.process)
  views.release()
  again.release()
  await done
}
