// An owner dies while its bulk is on the way, and the bulk is lost: its successor finds the offset
// of before it, and writes what the bulk would have written (PROTOCOL 3.13.1, F20).

import type { Stage } from './stage.ts'

export const hasGraph = true

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const shard = stage.shardOf(a!)
  const id = stage.ledgerIn(shard)
  await stage.must(a!, id, [['open'], ['append', { token: 't0' }]])
  await stage.until('it is shown', () => stage.isShown())
  const bulks = stage.holdBulks(a!.process)
  await stage.must(a!, id, [['append', { token: 't1' }]])
  await stage.until('a bulk is under way', () => bulks.count > 0)
  stage.world.kill(a!)
  await stage.until('b has the shard', () => stage.ownerOf(shard) === b)
  await stage.until('it is shown', () => stage.isShown())
}
