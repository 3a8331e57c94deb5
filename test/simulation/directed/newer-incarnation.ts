// A member looks at a shard whose owner is dead, while a newcomer joins and takes it. Whoever reads
// the members before the shard's row does not know the newcomer, and takes a shard from an owner
// that lives (PROTOCOL 3.5).

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const shards = [0, 1, 2, 3].filter((shard) => stage.ownerOf(shard) === a)
  const ids = new Map(shards.map((shard) => [shard, stage.ledgerIn(shard)]))
  for (const id of ids.values())
    await stage.must(a!, id, [['open'], ['append', { token: `${id}` }]])
  const joining = stage.world.start('c')
  const join = stage.hold(joining.process, /^insert member c/, 1)
  await stage.until('c wants to join', () => join.pending.length > 0)
  stage.world.kill(a!)
  const looks = stage.hold(b!.process, /^shard \d/)
  await stage.until('b looks at the rows', () => looks.pending.length >= shards.length)
  join.release()
  const taken = (): number | undefined => shards.find((shard) => stage.ownerOf(shard) === joining)
  await stage.until('c has one of them', () => taken() !== undefined)
  const id = ids.get(taken()!)!
  await stage.must(joining, id, [['append', { token: 'by-c' }]])
  // B has given those looks up; it hears of these all the same if it still waits.
  looks.release()
  await stage.wait(60)
  if (stage.ownerOf(shards.find((shard) => ids.get(shard) === id)!) === b) {
    await stage.must(b!, id, [['append', { token: 'by-b' }]])
  }
  await stage.must(joining, id, [['read']])
}
