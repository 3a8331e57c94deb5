// The answer to a relayed message is lost, and so is every later one until the marks that remember
// the message have come to the end of their incarnation. Then it is sent again: the pair of shard
// and offset remembers it for ever (PROTOCOL 3.6 Outbox).

import { BOUNDS } from '../bounds.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const markTtlMs = BOUNDS.storage.edgeMarkMs
  overrideLimits({ 'storage.edgeMarkMs': 3_000 })
  try {
    const [a, b] = await stage.start('a', 'b')
    const shard = stage.shardOf(a!)
    const id = stage.ledgerIn(shard)
    const to = stage.ledgerIn(stage.shardOf(b!))
    await stage.must(a!, id, [['open']])
    await stage.must(a!, to, [['open']])
    // What b answers doesn't come out; what it is sent comes in.
    stage.world.redis.cut(b!.process, { out: true, back: false })
    await stage.must(a!, id, [['send', { token: 't1', to }]])
    await stage.until('it has arrived', () => stage.tokensOf(to).includes('t1>'))
    await stage.wait(2 * BOUNDS.storage.edgeMarkMs)
    stage.world.redis.heal(b!.process)
    await stage.wait(10_000)
  } finally {
    overrideLimits({ 'storage.edgeMarkMs': markTtlMs })
  }
}
