// One member's wire is cut, its store and those of the others go on: the others serve its shards
// within ten seconds, and a caller over it is told why it gets no answer. When its wire is whole it
// has its share again (PROTOCOL 3.4 "Cut off").

import { LIMITS } from '../../../config/limits.ts'
import type { Stage } from './stage.ts'

const MOVED_MS = LIMITS.membership.wireDownMs + LIMITS.membership.wireApartMs + 3_000

export async function play(stage: Stage): Promise<void> {
  const [a, b] = await stage.start('a', 'b', 'c')
  const shard = stage.shardOf(a!)
  const id = stage.ledgerIn(shard)
  const elsewhere = stage.ledgerIn(stage.shardOf(b!))
  await stage.must(a!, id, [['open']])
  await stage.must(b!, elsewhere, [['open']])
  const { scheduler, redis } = stage.world
  const cutMs = scheduler.nowMs
  redis.cut(a!.process, { out: true, back: true })
  await stage.wait(LIMITS.membership.wireDownMs)
  // It waits for the next owner, and is not lost at the one that can't be asked.
  const waiting = stage.ask(b!, id, [['append', { token: 'waits' }]], { budgetMs: 20_000 })
  await stage.until('a has nothing', () => a!.member.shards.size === 0 && stage.isServed())
  const tookMs = scheduler.nowMs - cutMs
  if (tookMs > MOVED_MS) throw new Error(`its shards were served after ${tookMs} ms`)
  await waiting.done
  if (waiting.operation.outcome !== 'ok') throw new Error(`not answered: ${waiting.operation.why}`)
  await stage.must(b!, id, [['append', { token: 't1' }]])
  const refused = stage.ask(a!, elsewhere, [['append', { token: 't2' }]], { budgetMs: 8_000 })
  await refused.done
  if (!/the wire .* is down/.test(refused.operation.why ?? '')) {
    throw new Error(`it is told: ${refused.operation.outcome} ${refused.operation.why}`)
  }
  if (a!.member.shards.size > 0) throw new Error('it has taken something back')
  redis.heal(a!.process)
  await stage.until('a has its share', () => stage.isShared())
}
