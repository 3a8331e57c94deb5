// A member looks at a shard whose owner is dead, while a newcomer joins and takes it. Whoever reads
// the members before the shard's row does not know the newcomer, and takes the shard from an owner
// that lives and answers reads (PROTOCOL 3.5).

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const shards = [0, 1, 2, 3].filter((shard) => stage.ownerOf(shard) === a)
  const ids = new Map(shards.map((shard) => [shard, stage.ledgerIn(shard)]))
  for (const id of ids.values()) await stage.must(a!, id, [['open'], ['append', { token: id }]])
  const looks = stage.hold(b!.process, /^shard \d/)
  stage.world.kill(a!)
  await stage.until('b looks at the rows', () => looks.pending.length >= shards.length)
  const c = stage.world.start('c')
  const taken = (): number | undefined => shards.find((shard) => stage.ownerOf(shard) === c)
  await stage.until('c has one of them', () => taken() !== undefined && c.isReady)
  const shard = taken()!
  const id = ids.get(shard)!
  await stage.must(c, id, [['append', { token: 'by-c' }]])
  const views = stage.hold(c.process, /^(shards|members)/)
  stage.world.redis.cut(c.process, { out: false, back: true })
  looks.release()
  await stage.wait(60)
  if (stage.serves(b!, shard)) await stage.must(b!, id, [['append', { token: 'by-b' }]])
  // Nobody has told c.
  const { done } = stage.ask(c, id, [['read']])
  await stage.wait(100)
  views.release()
  await done
}
