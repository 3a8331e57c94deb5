// The claim of a log: every segment that an older owner could still write to is fenced, one after
// the other, until one is found that is open and carries the new epoch; only then its head is
// final. Source: PROTOCOL 3.5 (claim 2), 3.7 (I2).

import { LIMITS } from '../../config/limits.ts'
import { AssertionError, assert } from '../../protocol/errors.ts'
import type { Outage } from '../../protocol/outage.ts'
import { LostTenure } from '../../storage/journal.ts'
import type { SegmentId, SegmentStatics, SegmentStore } from '../../storage/segments.ts'
import type { Clock } from '../clock.ts'

export interface Patience {
  readonly clock: Clock
  /** Told of each answer of the store, and of each that is lacking. */
  readonly outage: Outage
  /** Monotonic time after which the claim is given up. */
  readonly untilMs: number
}

export interface ClaimOptions extends Patience {
  readonly segments: Pick<SegmentStore, 'fence' | 'open' | 'statics'>
  /** Told of what every segment on the way is like. */
  readonly onStatics: (of: SegmentId, statics: SegmentStatics) => void
}

export interface Fenced {
  /** The open segment. */
  readonly segment: number
  readonly statics: SegmentStatics
}

/** Nothing is decided yet: ask again. */
const UNDECIDED = Symbol('undecided')

/**
 * Fences the shard's log from the hinted segment on. Rejects with LostTenure when a higher epoch is
 * met anywhere, and when the store has not answered in time; then it may be claimed again.
 */
export async function fenceLog(
  options: ClaimOptions,
  hinted: SegmentId,
  epoch: number,
): Promise<Fenced> {
  const { shard } = hinted
  let { segment } = hinted
  let statics = await patiently(options, () => fenceOnce(options, { shard, segment }, epoch))
  while (statics.sealed) {
    const { head } = statics
    const next = { shard, segment: segment + 1 }
    statics = await patiently(options, () => openOrFence(options, next, { epoch, head }))
    assert(statics.base === head, `segment ${next.segment} of shard ${shard} goes on at ${head}`)
    segment++
  }
  return { segment, statics }
}

async function openOrFence(
  options: ClaimOptions,
  of: SegmentId,
  first: { readonly epoch: number; readonly head: number },
): Promise<SegmentStatics | typeof UNDECIDED> {
  if ((await options.segments.statics(of)) === null) {
    const outcome = await options.segments.open(of, first)
    if (outcome === 'unknown') return UNDECIDED
    if (outcome === 'applied') {
      const { epoch, head } = first
      const opened = { epoch, base: head, head, lastCommit: null, sealed: false }
      options.onStatics(of, opened)
      return opened
    }
  }
  return fenceOnce(options, of, first.epoch)
}

/** Whatever the statement was answered: the statics at the serial level decide. */
async function fenceOnce(
  { segments, onStatics }: ClaimOptions,
  of: SegmentId,
  epoch: number,
): Promise<SegmentStatics | typeof UNDECIDED> {
  await segments.fence(of, epoch)
  const statics = await segments.statics(of)
  assert(statics !== null, `segment ${of.segment} of shard ${of.shard} was never opened`)
  onStatics(of, statics)
  if (statics.epoch > epoch) throw new LostTenure(of.shard, epoch)
  // A sealed head is final whoever sealed it.
  return statics.epoch === epoch || statics.sealed ? statics : UNDECIDED
}

/** Asks until there is an answer, the store failing or not; rejects when time is up. */
export async function patiently<T>(
  { clock, outage, untilMs }: Patience,
  attempt: () => Promise<T | typeof UNDECIDED>,
): Promise<T> {
  for (
    let waitMs: number = LIMITS.log.claimRetryMs;
    ;
    waitMs = Math.min(2 * waitMs, LIMITS.log.claimRetryMsMax)
  ) {
    try {
      const answer = await attempt()
      outage.answered()
      if (answer !== UNDECIDED) return answer
    } catch (error) {
      if (error instanceof LostTenure || error instanceof AssertionError) throw error
      outage.failed({ err: error })
    }
    if (clock.monotonicMs() + waitMs > untilMs) {
      throw new Error('the store has not answered in time: the shard could not be claimed')
    }
    await new Promise<void>((resolve) => void clock.after(waitMs, resolve))
  }
}
