// A key is its caller's own: that it was used with another body is said only to who has done so
// himself, for the same type of actor. Source: CONTRACT 0 "Idempotency".

import type { OperationHistory, Operation } from '../clients/operation-history.ts'

export function checkMismatches({ operations }: OperationHistory): string[] {
  const byKey = Map.groupBy(
    operations.filter(({ key }) => key !== null),
    ({ client, type, key }) => `${client} ${type} ${key}`,
  )
  const found: string[] = []
  for (const alike of byKey.values()) {
    const bodies = new Set(alike.map(bodyOf))
    if (bodies.size > 1) continue
    for (const operation of alike.filter(isMismatch)) {
      found.push(`K2: operation ${operation.id} was refused for a body that nobody has sent`)
    }
  }
  return found
}

function bodyOf({ messages }: Operation): string {
  return JSON.stringify(messages)
}

function isMismatch({ attempts }: Operation): boolean {
  return attempts.some(
    ({ reply }) =>
      reply?.outcome === 'answered' &&
      reply.results.some((r) => !r.success && r.errors[0]!.code === 'IDEMPOTENCY_MISMATCH'),
  )
}
