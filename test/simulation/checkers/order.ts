// K2: operations of one ledger take effect one after the other, in an order that agrees with time,
// and each was answered as its place in the log says. It trusts the offsets that clients were told,
// and is quick. Source: PROTOCOL 4.1.

import type { OperationHistory, Operation } from '../clients/operation-history.ts'
import { stateAround } from './fold.ts'
import type { FoldedLog } from './fold.ts'
import { answerOf, FORBIDDEN } from './sequential.ts'

export function checkOrder(history: OperationHistory, log: FoldedLog): string[] {
  const found: string[] = []
  const byActor = new Map<string, Operation[]>()
  for (const operation of history.operations) {
    for (const other of operation.otherReplies) {
      found.push(`K2: operation ${operation.id} was answered otherwise when repeated: ${other}`)
    }
    const { position, actorId } = operation
    if (operation.outcome !== 'ok' || position === null || operation.preview) continue
    const actor = actorId ?? actorAt(log, position.shard, position.offset)
    if (actor === null) {
      found.push(`K2: operation ${operation.id} has a position that is not in the log`)
      continue
    }
    found.push(...answerInLog(operation, actor, log))
    if (isVoided(operation)) continue
    const list = byActor.get(actor)
    if (list) list.push(operation)
    else byActor.set(actor, [operation])
  }
  for (const operations of byActor.values()) found.push(...againstTime(operations))
  return found
}

function actorAt(log: FoldedLog, shard: number, offset: number): string | null {
  const placed = log.shards.get(shard)?.[offset - 1]
  return placed?.offset === offset ? placed.entry.p : null
}

/** The entry at an operation's position holds the answer that its client got. */
function answerInLog(operation: Operation, actorId: string, log: FoldedLog): string[] {
  const { shard, offset } = operation.position!
  const placed = log.shards.get(shard)?.[offset - 1]
  const who = `operation ${operation.id} at ${shard}/${offset}`
  if (placed?.offset !== offset) return [`K2: ${who} is not in the log`]
  const { entry } = placed
  if (entry.p !== actorId) return [`K2: ${who} is an entry of ${entry.p}, not of ${actorId}`]
  const last = operation.results.at(-1) ?? null
  const isOfLast = operation.messages.length === 1
  if (isOfLast && JSON.stringify(last) !== JSON.stringify(entry.a)) {
    return [`K2: ${who} was answered ${JSON.stringify(last)}, recorded ${JSON.stringify(entry.a)}`]
  }
  const isApart = [FORBIDDEN, 'POISONED'].some((code) => isRefusedWith(operation, code))
  if (isVoided(operation) || isApart) return []
  const actor = log.actors.get(actorId)
  if (!isOfLast || !actor || operation.type !== 'ledger') return []
  const around = stateAround(actor, offset)
  if (around === null) return []
  const expected = answerOf(around.before, operation.messages[0]!, actorId)
  if (expected === null || JSON.stringify(expected) === JSON.stringify(last)) return []
  return [`K2: ${who} was answered ${JSON.stringify(last)}, not ${JSON.stringify(expected)}`]
}

/**
 * Its message was given up before it came, maybe long before under a key that is used again: where
 * that is recorded says nothing of when it was asked for, nor of what it would have met.
 */
function isVoided(operation: Operation): boolean {
  return isRefusedWith(operation, 'VOID')
}

/** What its edge refused, or what kept killing its owner, says nothing of the state either. */
function isRefusedWith({ results }: Operation, code: string): boolean {
  const last = results.at(-1)
  return last?.success === false && last.errors[0]!.code === code
}

/** If A had returned before B was invoked, A stands before B; no two stand in one place. */
function againstTime(operations: readonly Operation[]): string[] {
  const found: string[] = []
  const offsetOf = ({ position }: Operation): number => position!.offset
  const byOffset = operations.toSorted((a, b) => offsetOf(a) - offsetOf(b))
  let lastInvoked: Operation | null = null
  for (const operation of byOffset) {
    if (lastInvoked && operation.returnedMs < lastInvoked.invokedMs) {
      found.push(
        `K2: operation ${operation.id} had returned before ${lastInvoked.id} was invoked, ` +
          `and stands behind it (${offsetOf(operation)} and ${offsetOf(lastInvoked)})`,
      )
    }
    if (!lastInvoked || operation.invokedMs > lastInvoked.invokedMs) lastInvoked = operation
  }
  byOffset.forEach((operation, i) => {
    const before = byOffset[i - 1]
    if (before && offsetOf(before) === offsetOf(operation)) {
      found.push(`K2: operations ${before.id} and ${operation.id} stand in one place`)
    }
  })
  return found
}
