// A bulk of an owner that was replaced reaches the search engine long after its successor has
// written newer content and removed nodes (PROTOCOL 3.13.2, 3.13.3, F20).

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
  await stage.must(b!, id, [['append', { token: 't2' }]])
  await stage.must(b!, id, [['strike'], ['strike']])
  await stage.until('it is shown', () => stage.isShown())
  // Longer than the engine remembers what was deleted for good.
  await stage.wait(1_000)
  await bulks.land()
}
