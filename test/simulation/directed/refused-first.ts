// The first message of a request can't reserve its number now, the second one could run. Both are
// repeated together, for messages of one request take effect in their order (ARCHITECTURE 3.6).

import type { Stage } from './stage.ts'

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b')
  const id = stage.ledgerIn(stage.shardOf(a!))
  const number = stage.numberIn(stage.shardOf(b!))
  stage.world.redis.cut(a!.process, { out: true, back: true })
  const messages = [
    ['open', { number, token: 't0' }],
    ['append', { token: 't1' }],
  ] as const
  const { operation, done } = stage.ask(a!, id, messages, { key: 'both', budgetMs: 8_000 })
  await done
  stage.world.redis.heal(a!.process)
  await stage.wait(500)
  await stage.repeat(a!, operation)
}
