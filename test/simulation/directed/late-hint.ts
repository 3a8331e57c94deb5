// A segment is rolled and the hint of the row stays behind. The claim follows the chain from the
// hinted segment to the open one (PROTOCOL 3.5, claim 2).

import type { Stage } from './stage.ts'

/** More appends than a segment holds (bounds.ts). */
const APPENDS = 15

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const shard = stage.shardOf(a!)
  const id = stage.ledgerIn(shard)
  const hints = stage.hold(a!.process, new RegExp(`^hint shard ${shard} `))
  await stage.must(a!, id, [['open']])
  for (let i = 0; i < APPENDS; i++) await stage.must(a!, id, [['append', { token: `t${i}` }]])
  if (hints.pending.length === 0) throw new Error('nothing was rolled')
  stage.world.kill(a!)
  await stage.until('b has the shard', () => stage.ownerOf(shard) === b)
  await stage.must(b!, id, [['append', { token: 'by-b' }]])
}
