// An owner dies when its snapshot of an actor is there and the rows of the marks that have left its
// window are not. A repeat of such a message must still be known (PROTOCOL 3.12, order).

import { BOUNDS } from '../bounds.ts'
import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const shard = stage.shardOf(a!)
  const id = stage.ledgerIn(shard)
  await stage.must(a!, id, [['open']])
  const first = await stage.must(a!, id, [['append', { token: 'first' }]], { key: 'first' })
  // All that follows is written together: marks that leave the window, and snapshots of after.
  const rows = stage.hold(a!.process, /^put /)
  for (let i = 0; i < 2 * BOUNDS.sharding.marksMax; i++) {
    await stage.must(a!, id, [['append', { token: `t${i}` }]])
  }
  const marks = stage.hold(a!.process, /^put mark /)
  rows.release()
  await stage.wait(100)
  stage.world.kill(a!)
  marks.forget()
  await stage.until('b has the shard', () => stage.ownerOf(shard) === b)
  await stage.wait(1_000)
  await stage.repeat(b!, first)
}
