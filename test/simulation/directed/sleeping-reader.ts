// A read waits for an append that is under way. The append lands, and before its owner hears so its
// machine sleeps past the lease; its shard is claimed and written to, its wall clock is set back.
// It wakes with that read and another one in its hands (PROTOCOL 3.3.4, 3.7 I5).

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const shard = stage.shardOf(a!)
  const id = stage.ledgerIn(shard)
  await stage.must(a!, id, [['open'], ['append', { token: 't0' }]])
  const held = stage.hold(a!.process, new RegExp(`^append ${shard}/`), 1)
  const write = stage.ask(a!, id, [['append', { token: 't1' }]])
  await stage.until('the append is under way', () => held.pending.length > 0)
  const read = stage.ask(a!, id, [['read']])
  await stage.wait(50)
  const views = stage.hold(a!.process, /^(shards|members|member a|update member)/)
  await held.first.land()
  a!.process.suspend()
  await stage.until('b has the shard', () => stage.ownerOf(shard) === b)
  await stage.must(b!, id, [['append', { token: 't2' }]])
  const later = stage.ask(a!, id, [['read']])
  held.first.answer()
  a!.process.jumpWall(-3_600_000)
  await stage.wait(10)
  a!.process.resume()
  await stage.wait(50)
  views.release()
  await Promise.all([write.done, read.done, later.done])
}
