// Checkpoints of an actor: the answer that lists them, and what a rewind to one of them is made of.
// Source: CONTRACT 1.3, PROTOCOL 3.12.

import { LIMITS } from '../../config/limits.ts'
import type { RuntimeCall, Decision, NodeRef } from '../../protocol/behaviour.ts'
import { RequestError } from '../../protocol/errors.ts'
import { sameJson } from './difference.ts'

/** The message `getCheckpoints`: the newest, oldest first. */
export function* decideCheckpoints<S>(state: S): Generator<RuntimeCall, Decision<S>, unknown> {
  const data = yield { call: 'checkpoints', limit: LIMITS.protocol.checkpointsMax }
  return { ok: true, records: [], state, data }
}

/** The state at a checkpoint, or NOT_FOUND. `what` names the actor: `order O1`. */
export function* stateAt<S>(
  checkpointId: string,
  what: string,
): Generator<RuntimeCall, S, unknown> {
  const then = (yield { call: 'state-at', checkpointId }) as S | null
  if (then !== null) return then
  throw new RequestError(
    'NOT_FOUND',
    `${what} has no checkpoint ${checkpointId}: getCheckpoints lists them`,
    { member: 'checkpointId' },
  )
}

/** Nodes that came, changed or went; a child that is as it is now keeps its time of change. */
export function settleMap<T extends { readonly modifiedMs: number }>(
  node: string,
  now: ReadonlyMap<string, T>,
  target: Map<string, T>,
  nowMs: number,
): NodeRef[] {
  const changed: NodeRef[] = []
  for (const [id, child] of target) {
    const current = now.get(id)
    if (current !== undefined && sameJson({ ...child, modifiedMs: current.modifiedMs }, current)) {
      target.set(id, current)
    } else {
      target.set(id, { ...child, modifiedMs: nowMs })
      changed.push({ node, id })
    }
  }
  for (const id of now.keys()) if (!target.has(id)) changed.push({ node, id })
  return changed
}
