// Unknown outcomes: an append that may be in the log, now or later. All answers of its group are
// held until the store has said which; the same bytes may be sent again, other bytes only after a
// re-claim has made the old ones false for ever. Source: PROTOCOL 3.2.

import { LIMITS } from '../../../config/limits.ts'
import { AssertionError, assert, errorItem } from '../../../protocol/errors.ts'
import type { AppendOutcome, ClaimedShard, Group } from '../../../storage/journal.ts'
import type { WireReply } from '../../../protocol/message.ts'
import { Outage } from '../../../protocol/outage.ts'
import type { ShardContext, ShardState } from '../core.ts'

const RETRY_MS = 100

/** `void`: it is not in the log and never will be, for the shard was claimed again. */
export type Resolved = AppendOutcome | 'void'

export interface UnknownHost {
  readonly number: number
  readonly state: ShardState
  readonly context: Pick<ShardContext, 'clock' | 'journal' | 'log'>
  /** Answers what waits for the group in flight. */
  failHeld(reply: WireReply): void
  /**
   * Claims the shard again, in an epoch of its own; null: it is somebody else's. Rejects when that
   * can't be said now.
   */
  reclaim(): Promise<ClaimedShard | null>
}

export function outcomeUnknown(): WireReply {
  const text = 'whether this took effect is not known yet; repeat it with the same key'
  return { outcome: 'unknown', error: errorItem('OUTCOME_UNKNOWN', text) }
}

/** What became of the group. Held answers turn to 504 after LIMITS.sharding.unknownOutcomeMs. */
export async function resolveUnknown(shard: UnknownHost, group: Group): Promise<Resolved> {
  const { clock, log } = shard.context
  const began = clock.monotonicMs()
  const resolution = new Resolution(shard, group)
  const outage = new Outage({
    log,
    now: () => clock.monotonicMs(),
    failing: 'the journal does not say what it has',
    back: 'the journal says what it has',
  })
  let told = false
  for (let attempt = 0; ; attempt++) {
    const outcome = await resolution.step().catch((error: unknown): Resolved => {
      if (error instanceof AssertionError) throw error
      outage.failed({ err: error, shard: shard.number })
      return 'unknown'
    })
    if (outcome !== 'unknown') outage.answered()
    if (outcome !== 'unknown' || shard.state === 'stopped') return outcome
    if (!told && clock.monotonicMs() - began > LIMITS.sharding.unknownOutcomeMs) {
      told = true
      shard.failHeld(outcomeUnknown())
    }
    await new Promise<void>((resolve) => {
      clock.after(RETRY_MS * Math.min(attempt + 1, 10), resolve)
    })
  }
}

class Resolution {
  readonly #shard: UnknownHost
  readonly #group: Group
  /** Writes of these bytes that failed; the one that began it all is the first. */
  #failures = 1
  #claimed: ClaimedShard | null = null

  constructor(shard: UnknownHost, group: Group) {
    this.#shard = shard
    this.#group = group
  }

  async step(): Promise<Resolved> {
    if (this.#failures >= LIMITS.sharding.appendFailuresMax) return this.#reclaim()
    const { log } = this.#shard.context.journal
    const sent = this.#group
    const status = await log.status(sent.shard)
    if (status.lastCommit === sent.commitId) return 'committed'
    if (status.epoch > sent.epoch || this.#isOver) return 'fenced'
    this.#mustBe(status.epoch === sent.epoch && status.head === sent.head)
    const [again] = await log.append([sent])
    if (again === 'unknown') this.#failures++
    // Not applied may mean that the first copy won meanwhile: the statics decide, next time round.
    return again === 'fenced' ? 'unknown' : again!
  }

  /** In the new epoch the old bytes are false, so what the log has now is final. */
  async #reclaim(): Promise<Resolved> {
    this.#claimed ??= await this.#shard.reclaim()
    if (this.#claimed === null || this.#isOver) return 'fenced'
    const { shard, head, count, commitId } = this.#group
    if (this.#claimed.head === head) return 'void'
    this.#mustBe(this.#claimed.head === head + count)
    const [row] = await this.#shard.context.journal.log.read(shard, head, 1)
    if (this.#isOver) return 'fenced'
    this.#mustBe(row?.commitId === commitId)
    return 'committed'
  }

  /** The next tenure has the log and goes on with it, maybe in this same process and epoch. */
  get #isOver(): boolean {
    return this.#shard.state === 'stopped'
  }

  #mustBe(so: boolean): void {
    if (so) return
    // Nobody else can have written in our epoch: the shard stops, and somebody has to look.
    const { number } = this.#shard
    this.#shard.context.log.error({ shard: number }, 'the log is not as its owner left it')
    assert(so, 'the log of a shard is as its owner left it')
  }
}
