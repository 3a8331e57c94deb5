// A create has claimed its number in another shard and waits in its turn; long after, somebody else
// asks for the number. A claim ends only when its actor says so (ARCHITECTURE 4).

import { BOUNDS } from '../bounds.ts'
import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a] = await stage.start('a')
  const number = 'N1'
  const home = stage.shardOfNumber(number)
  const apart = stage.ledgerIn((home + 1) % 4)
  const other = stage.ledgerIn((home + 2) % 4)
  const wake = stage.rulesWait()
  const first = stage.ask(a!, apart, [['open', { number, token: 't0', waits: true }]])
  await stage.wait(BOUNDS.sharding.claimAgeMs + 500)
  const second = stage.ask(a!, other, [['open', { number, token: 't1' }]])
  await stage.wait(200)
  wake()
  await Promise.all([first.done, second.done])
}
