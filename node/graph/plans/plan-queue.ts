// The queue of graph requests: who a caller is to it, its bounds, and what is told who is not
// served. Source: PROTOCOL 3.10.

import { RequestError } from '../../../protocol/errors.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { Flow, QueueBounds } from '../../queues/fair-queue.ts'

/** Of graph requests the groups are identities, and the flows their sessions (`callerOf`). */
export type Caller = Flow

export const GRAPH_QUEUE: QueueBounds = {
  max: LIMITS.graph.queueMax,
  groupMax: LIMITS.graph.queueOfIdentityMax,
}

/** What a caller is told for whom there is no room in the queue. */
export function noRoom(waiting: number): RequestError {
  return new RequestError(
    'TOO_BUSY',
    `too many graph requests are waiting already (${waiting} of all callers, yours among those ` +
      'of whoever has most); nothing was done: try again in a moment, with fewer at once',
  )
}

/** What a caller is told whose time was over before its turn. */
export function neverRun(): RequestError {
  return new RequestError(
    'UNAVAILABLE',
    'the query waited for others until its time was over; it was not run',
  )
}
