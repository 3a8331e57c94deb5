// A key's row is read while it leads nowhere, and the answer takes its time. Meanwhile the key is
// taken, committed and flushed: memory may not forget it before that answer has come back
// (PROTOCOL 3.6 "Reads ahead of a turn").

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a] = await stage.start('a')
  const number = 'N1'
  const home = stage.shardOfNumber(number)
  const apart = stage.ledgerIn((home + 1) % 4)
  const near = stage.ledgerIn(home)
  const read = stage.hold(a!.process, new RegExp(`^alias ledger ${number}`), 1)
  const first = stage.ask(a!, apart, [['open', { number, token: 't0' }]])
  await stage.until('the key is read', () => read.pending.length > 0)
  await read.first.land()
  await stage.must(a!, near, [['open', { number, token: 't1' }]])
  await stage.until('its row is there', () => stage.isFlushed(home))
  read.first.answer()
  await first.done
}
