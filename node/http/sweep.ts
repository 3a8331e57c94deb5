// The look around that ends what hangs: bodies that stall or trickle, operations that never answer.
// One timer serves all open exchanges.

import { RequestError } from '../../protocol/errors.ts'
import type { HttpCore } from './core.ts'
import type { Exchange } from './exchange.ts'
import type { UnreadAnswer } from './unread.ts'

/** Often enough to re-arm the 10 s timer of uWebSockets.js with room to spare. */
export const SWEEP_MS = 2_000

export function sweep(core: HttpCore, open: Iterable<Exchange>): void {
  const now = core.clock.monotonicMs()
  for (const x of open) {
    if (x.gone) continue
    if (x.unread !== null) watchReader(x, x.unread, now)
    if (x.done) continue
    if (x.fullSinceMs !== null && now - x.fullSinceMs > core.limits.bodyIdleMs) x.res.close()
    else if (x.bodyPending && x.route?.operation.body !== undefined) watchBody(x, now)
    else if (!x.streaming) watchOperation(x, now)
  }
}

/** Who reads an answer has no longer for it than who sends a body. */
function watchReader(x: Exchange, unread: UnreadAnswer, now: number): void {
  const { bodyIdleMs, answerBytesPerSecondMin, bodyMs } = x.core.limits
  const spentMs = now - unread.sinceMs
  const trickles = spentMs > bodyIdleMs && unread.taken < (spentMs / 1000) * answerBytesPerSecondMin
  if (now - unread.tookMs > bodyIdleMs || trickles || spentMs > bodyMs) unread.close()
}

function watchBody(x: Exchange, now: number): void {
  if (x.paused) return
  const { bodyIdleMs, bodyBytesPerSecondMin } = x.core.limits
  // A stream goes on for as long as its lines do: each of them is a body of its own.
  const begunMs = x.streaming ? (x.partSinceMs ?? now) : x.startedMs
  const received = x.streaming ? x.received - x.receivedBefore : x.received
  const spentMs = now - begunMs
  const idle = now - x.lastByteMs > bodyIdleMs
  const trickles = spentMs > bodyIdleMs && received < (spentMs / 1000) * bodyBytesPerSecondMin
  if (idle || trickles || spentMs > x.route!.door.bodyMs) {
    x.res.close()
    return
  }
  // uWebSockets.js closes a body that is slower than 16 KB/s for 10 s, which honest clients on poor
  // lines are. Pausing and resuming starts its timer anew; ours, above, then decides.
  x.res.pause()
  x.res.resume()
}

/** Operations have deadlines of their own; this is for the one that forgot (every wait has one). */
function watchOperation(x: Exchange, now: number): void {
  const { requestBudgetMs, unknownOutcomeMs } = x.core.limits
  if (now - x.startedMs < requestBudgetMs + unknownOutcomeMs) return
  x.core.log.error(
    { requestId: x.requestId, method: x.method, path: x.path },
    'an operation gave no answer within its budget',
  )
  x.fail(
    x.method === 'GET' || x.method === 'HEAD'
      ? new RequestError('UNAVAILABLE', 'no answer within the time of a request; nothing was done')
      : new RequestError(
          'OUTCOME_UNKNOWN',
          'no answer within the time of a request; repeat it with the same Idempotency-Key',
        ),
  )
}
