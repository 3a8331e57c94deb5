// K1 and K9: every token that a client was told of is in its ledger exactly once, none that was
// refused or rejected is anywhere, one of which nobody knows is there once at most; a batch is
// there whole or not at all, in every answer. What was sent on to another ledger has come there
// once. Source: PROTOCOL 4.1.

import type { MessageResult } from '../../../protocol/message.ts'
import type { OperationHistory, Operation } from '../clients/operation-history.ts'
import type { Ledger } from '../clients/ledger.ts'
import { marksOf, relayedTokens } from '../clients/ledger.ts'
import { finalState } from './fold.ts'
import type { FoldedLog } from './fold.ts'

/** Where a token is: the ledgers that have it, once for each time. */
export type Places = ReadonlyMap<string, readonly string[]>

export function placesOf(log: FoldedLog): Places {
  const places = new Map<string, string[]>()
  for (const actor of log.actors.values()) {
    if (actor.type !== 'ledger') continue
    for (const token of finalState(actor)?.tokens ?? []) {
      const found = places.get(token)
      if (found) found.push(actor.actorId)
      else places.set(token, [actor.actorId])
    }
  }
  return places
}

/** K1 over the tokens as they are in the end. */
export function checkTokens(history: OperationHistory, places: Places): string[] {
  const found: string[] = []
  const expected = new Set<string>()
  for (const operation of history.operations) {
    if (operation.type !== 'ledger') continue
    operation.messages.forEach((message, i) => {
      const tokens = isAppending(message.type) ? marksOf(message.body) : []
      for (const token of tokens) expected.add(token)
      if (message.type === 'send') for (const one of relayedTokens(message.body)) expected.add(one)
      found.push(...problemsOf(operation, i, tokens, places))
    })
  }
  for (const [token, where] of places) {
    if (!expected.has(token)) found.push(`K1: nobody has ever sent ${token}, in ${where.join()}`)
    else if (where.length > 1) found.push(`K1: ${token} is there ${where.length} times`)
  }
  return found
}

function isAppending(type: string): boolean {
  return type === 'append' || type === 'open' || type === 'send'
}

function problemsOf(
  operation: Operation,
  i: number,
  tokens: readonly string[],
  places: Places,
): string[] {
  const { outcome, preview, actorId } = operation
  const result = operation.results[i] ?? null
  const who = `of operation ${operation.id}`
  const there = tokens.filter((token) => places.has(token))
  const found: string[] = []
  const mayBe = !preview && (result === null ? outcome === 'info' : result.success)
  if (!mayBe && there.length > 0) {
    const why = preview ? 'preview' : result === null ? outcome : 'rejected'
    found.push(`K1: ${there.join()} ${who} is there, though its client was told: ${why}`)
  }
  if (result?.success && !preview) {
    for (const token of tokens) {
      const where = places.get(token) ?? []
      if (where.length === 0) found.push(`K1: ${token} ${who} was acknowledged and is lost`)
      else if (actorId !== null && where[0] !== actorId) {
        found.push(`K1: ${token} ${who} is in ${where[0]!}, not in ${actorId}`)
      }
    }
  }
  if (there.length > 0 && there.length < tokens.length) {
    found.push(`K9: of the batch ${tokens.join()} only ${there.join()} is there`)
  }
  return found
}

/** What is read in the end of a ledger, over any member, is what its log says. */
export function checkLastReads(history: OperationHistory, log: FoldedLog): string[] {
  const found: string[] = []
  for (const { id, client, actorId, results, attempts } of history.operations) {
    const shown = client === AT_LAST ? shownTokens(results[0] ?? null) : null
    if (shown === null || actorId === null) continue
    const there = finalState(log.actors.get(actorId))?.tokens ?? []
    if (shown.join() === there.join()) continue
    const over = attempts.at(-1)!.member
    found.push(
      `K1: the last read ${id} of ${actorId} over ${over} shows ${shown.length} tokens of ` +
        `${there.length}: ${shown.join()}, not ${there.join()}`,
    )
  }
  return found
}

/** Client of the reads behind which nothing is changed any more. */
export const AT_LAST = 'at last'

/** K9 over everything that a client was ever shown: a batch stands together, or isn't there. */
export function checkBatches(history: OperationHistory): string[] {
  const batches = new Map<string, number>()
  for (const { messages } of history.operations) {
    for (const { body } of messages) {
      if (body.marks !== undefined && body.token !== undefined) batches.set(body.token, body.marks)
    }
  }
  const found: string[] = []
  for (const operation of history.operations) {
    operation.results.forEach((result) => {
      for (const broken of brokenBatches(shownTokens(result), batches)) {
        found.push(`K9: operation ${operation.id} was shown the batch ${broken} in parts`)
      }
    })
  }
  return found
}

/** The tokens that a read was shown. */
export function shownTokens(result: MessageResult | null): readonly string[] | null {
  if (!result?.success) return null
  const { tokens } = (result.data ?? {}) as Partial<Ledger>
  return tokens ?? null
}

function brokenBatches(
  tokens: readonly string[] | null,
  batches: ReadonlyMap<string, number>,
): string[] {
  const broken: string[] = []
  tokens?.forEach((token, at) => {
    const [base, place] = token.split('.') as [string, string | undefined]
    const size = batches.get(base)
    if (place === undefined || size === undefined) return
    const first = at - Number(place)
    const isWhole = Array.from({ length: size }, (_, i) => tokens[first + i] === `${base}.${i}`)
    if (isWhole.includes(false)) broken.push(base)
  })
  return broken
}

/**
 * Each message of an effect ends in one entry at its target, taken or rejected (PROTOCOL 3.6); one
 * that goes by a number may find nobody there, and then none of it does anything.
 */
export function checkRelays(log: FoldedLog): string[] {
  const found: string[] = []
  const taken = new Map<string, number>()
  const effects = effectsOf(log)
  for (const [shard, entries] of log.shards) {
    for (const { entry, offset } of entries) {
      // To whom a number leads is noted where the effect comes from, for no actor.
      if (!entry.s || entry.n === 0) continue
      const from = entry.s.slice(0, 3).join('/')
      taken.set(from, (taken.get(from) ?? 0) + 1)
      if (!effects.has(from))
        found.push(`K1: what ${shard}/${offset} took of ${from} was never sent`)
    }
  }
  for (const [from, { messages, byKey }] of effects) {
    const times = taken.get(from) ?? 0
    if (times === messages || (byKey && times === 0)) continue
    found.push(`K1: of the ${messages} messages of effect ${from} ${times} were taken`)
  }
  return found
}

interface Sent {
  readonly messages: number
  readonly byKey: boolean
}

/** Messages to ledgers that committed entries have sent: by shard, offset, index. */
function effectsOf(log: FoldedLog): Map<string, Sent> {
  const effects = new Map<string, Sent>()
  for (const [shard, entries] of log.shards) {
    for (const { entry, offset } of entries) {
      entry.e?.forEach(({ to, messages }, index) => {
        // What the runtime sends to keys is told by their rows.
        if (messages[0]!.type.startsWith('!')) return
        const byKey = 'key' in to
        effects.set(`${shard}/${offset}/${index}`, { messages: messages.length, byKey })
      })
    }
  }
  return effects
}
