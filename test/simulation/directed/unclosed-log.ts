// An owner signs a shard over, and doesn't hear whether its log is closed for the next epoch; it is
// not. The next owner, not told that it is, fences it (PROTOCOL 3.8).

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a] = await stage.start('a')
  const ids = [0, 1, 2, 3].map((shard) => stage.ledgerIn(shard))
  for (const id of ids) await stage.must(a!, id, [['open']])
  const closing = stage.hold(a!.process, /^fence \d/, 1)
  const b = stage.world.start('b')
  await stage.until('a closes a log', () => closing.pending.length > 0)
  closing.first.fail()
  const shard = Number(/^fence (\d)/.exec(closing.first.text)![1])
  await stage.until('b serves it', () => b.member.shards.get(shard)?.state === 'serving')
  await stage.must(b, ids[shard]!, [['append', { token: 'by-b' }]])
  await closing.first.land()
  await stage.must(b, ids[shard]!, [['append', { token: 'by-b-again' }]])
}
