// Redis is away for all, and each member notices its loss and its return at another time: no shard
// moves, not while it is away and not when it is back (PROTOCOL 3.4 "Cut off").

import { LIMITS } from '../../../config/limits.ts'
import type { Stage } from './stage.ts'

/** Between the first that notices and the last. */
const SKEW_MS = LIMITS.redis.silentMs + 500

export async function play(stage: Stage): Promise<void> {
  const started = await stage.start('a', 'b', 'c')
  const owners = (): string =>
    [...stage.world.engine.state.shards.values()].map((row) => JSON.stringify(row)).join()
  const before = owners()
  const { redis } = stage.world
  for (const { process } of started) {
    redis.cut(process, { out: true, back: true })
    await stage.wait(SKEW_MS / 2)
  }
  await stage.wait(60_000)
  const mine = stage.ledgerIn(stage.shardOf(started[1]!))
  await stage.must(started[1]!, mine, [['open']])
  for (const { process } of started.toReversed()) {
    redis.heal(process)
    await stage.wait(SKEW_MS / 2)
  }
  await stage.wait(30_000)
  if (owners() !== before) throw new Error(`shards have moved: ${owners()}`)
}
