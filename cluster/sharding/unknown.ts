// Unknown outcomes: an append that may be in the log, now or later. All answers of its group are
// held until the store has said which; the same bytes may be sent again, other bytes only after a
// re-claim. It stands between the committer and the shard. Source: PROTOCOL 3.2.

import { LIMITS } from '../../config/limits.ts'
import { errorItem } from '../../protocol/errors.ts'
import type { AppendOutcome, Group } from '../../storage/journal.ts'
import type { WireReply } from '../../protocol/message.ts'
import type { ShardCore } from './core.ts'

const RETRY_MS = 100

/** Resolves to what became of the group. Held answers turn to 504 after LIMITS.unknownOutcomeMs. */
export async function resolveUnknown(
  shard: ShardCore & { failHeld(reply: WireReply): void; readonly epoch: number },
  group: Group,
): Promise<AppendOutcome> {
  const { clock, journal, log } = shard.context
  const began = clock.monotonicMs()
  let told = false
  for (let attempt = 0; ; attempt++) {
    const outcome = await once(shard, group).catch((error: unknown): AppendOutcome => {
      log.warn({ err: error, shard: shard.number }, 'the journal does not say what it has')
      return 'unknown'
    })
    if (outcome !== 'unknown') return outcome
    if (!told && clock.monotonicMs() - began > LIMITS.unknownOutcomeMs) {
      told = true
      const text = 'whether this took effect is not known yet; repeat it with the same key'
      shard.failHeld({ outcome: 'unknown', error: errorItem('OUTCOME_UNKNOWN', text) })
    }
    await new Promise<void>((resolve) => {
      clock.after(RETRY_MS * Math.min(attempt + 1, 10), resolve)
    })
  }

  async function once(of: ShardCore, sent: Group): Promise<AppendOutcome> {
    const status = await journal.log.status(of.number)
    if (status.lastCommit === sent.commitId) return 'committed'
    if (status.epoch !== sent.epoch || status.head !== sent.head) return 'fenced'
    const [again] = await journal.log.append([sent])
    // Not applied may mean that the first copy won meanwhile: the statics decide, next time round.
    return again === 'fenced' ? 'unknown' : again!
  }
}
