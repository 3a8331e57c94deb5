// K3: what clients were told of one ledger can be explained by an order of its messages that agrees
// with time; neither the log nor offsets are looked at. Reads show the whole list, so they must
// also be beginnings of one another. Source: PROTOCOL 4.1.

import type { MessageResult } from '../../../protocol/message.ts'
import type { OperationHistory, Operation, OperationMessage } from '../clients/operation-history.ts'
import { marksOf, relayedTokens } from '../clients/ledger.ts'
import type { Ledger } from '../clients/ledger.ts'
import { answerOf, FORBIDDEN, nextState } from './sequential.ts'
import { shownTokens } from './tokens.ts'
import { linearize } from './wgl.ts'
import type { Call } from './wgl.ts'

interface Told {
  readonly operation: Operation
  readonly i: number
}

export function checkLinearizable(history: OperationHistory): string[] {
  const found: string[] = []
  for (const [actorId, told] of byLedger(history)) {
    found.push(...checkReads(actorId, told))
    const result = linearize(callsOf(actorId, told), {
      initial: { ledger: null },
      key: keyOf,
    })
    if (result.verdict === 'not linearizable') {
      found.push(`K3: ledger ${actorId}: no order explains ${result.stuckAt}`)
    } else if (result.verdict === 'too large') {
      found.push(`K3: ledger ${actorId}: its history is too large to be judged`)
    }
  }
  return found
}

/** What each ledger was asked for, as far as its clients know which ledger it was. */
function byLedger(history: OperationHistory): Map<string, Told[]> {
  const found = new Map<string, Told[]>()
  const anywhere: Told[] = []
  for (const operation of history.operations) {
    const { type, outcome, actorId, address } = operation
    if (type !== 'ledger' || outcome === 'fail') continue
    const id = actorId ?? (isUuid(address) ? address : null)
    let told = id === null ? anywhere : found.get(id)
    if (!told) found.set(id!, (told = []))
    for (let i = 0; i < operation.messages.length; i++) told.push({ operation, i })
  }
  // Of what was asked of a number, or made a new one, and was never answered.
  for (const told of found.values()) {
    told.push(...anywhere.filter(({ operation }) => operation.outcome === 'info'))
  }
  for (const [id, told] of found) addRelays(id, told, history)
  return found
}

function isUuid(address: string): boolean {
  return address.length === 36
}

/**
 * Whether nobody has seen a message take effect on a ledger that shows all it has in the end. Of
 * one that may have been deleted, or was read by nobody in the end, nobody sees what came last; how
 * many tokens it has is still said by the answer to the next one.
 */
function unseenOf(told: readonly Told[]): (message: OperationMessage) => boolean {
  // A delete that was refused has taken no list away.
  const isDeleted = told.some(
    ({ operation, i }) =>
      operation.messages[i]!.type === 'delete' && operation.results[i]?.success !== false,
  )
  const isShown = !isDeleted && isReadLast(told)
  const shown = new Set(
    told.flatMap(({ operation, i }) => shownTokens(operation.results[i]!) ?? []),
  )
  return ({ type, body }) => {
    const [token] = marksOf(body)
    return token === undefined ? type === 'read' : isShown && !shown.has(token)
  }
}

/** Whether a list was shown to somebody who asked behind all that was answered. */
function isReadLast(told: readonly Told[]): boolean {
  let readMs = -Infinity
  let answeredMs = -Infinity
  for (const { operation, i } of told) {
    const { results, invokedMs, preview } = operation
    if (!results[i]) continue
    const isShown = !preview && shownTokens(results[i]) !== null
    if (isShown) readMs = Math.max(readMs, invokedMs)
    else answeredMs = Math.max(answeredMs, invokedMs)
  }
  return readMs > -Infinity && readMs >= answeredMs
}

/** Tokens that other ledgers have sent here come in at some time after they were sent. */
function addRelays(actorId: string, told: Told[], history: OperationHistory): void {
  const relays = history.operations.flatMap((operation) =>
    operation.outcome === 'fail'
      ? []
      : operation.messages.flatMap((message) => {
          const { to, toNumber } = message.body
          const isForIt = message.type === 'send' && (to === actorId || toNumber !== undefined)
          if (!isForIt) return []
          const tokens = relayedTokens(message.body)
          return tokens.map((token) => ({ operation: relayOf(operation, token), i: 0 }))
        }),
  )
  told.push(...relays)
}

function relayOf(operation: Operation, token: string): Operation {
  return {
    ...operation,
    messages: [{ type: 'append', body: { token } }],
    results: [null],
    returnedMs: Infinity,
    outcome: 'info',
  }
}

/** A box, so that a ledger that isn't open is a state too. */
interface Held {
  readonly ledger: Ledger | null
}

function callsOf(actorId: string, told: readonly Told[]): Call<Held>[] {
  const isUnseen = unseenOf(told)
  const longest = longestOf(told)
  const calls: Call<Held>[] = []
  const alikes = new Map<string, number>()
  let before: { operation: Operation; call: number } | null = null
  for (const { operation, i } of told.toSorted(byInvocation)) {
    const { preview, invokedMs } = operation
    const result = operation.results[i] ?? null
    let message = operation.messages[i]!
    if (preview && (i > 0 || operation.outcome !== 'ok')) continue
    // Nobody knows of it, and nothing of it was ever seen: it need not have happened.
    if (result === null && isUnseen(message)) continue
    let after: number | null = null
    if (!wasPassedOver(operation, i)) {
      after = before?.operation === operation ? before.call : null
      before = { operation, call: calls.length }
    }
    const isFree = result === null && operation.messages.length === 1
    if (isFree && !longest.includes(marksOf(message.body)[0] ?? '')) {
      // One of several that do the same is as good as another: the first of them comes first.
      const nameless = message.body.token === undefined ? null : { token: '?' }
      message = { ...message, body: { ...message.body, ...nameless } }
      const alike = JSON.stringify(message)
      after = alikes.get(alike) ?? null
      alikes.set(alike, calls.length)
    }
    const explained = message
    calls.push({
      name: `operation ${operation.id}, ${message.type}`,
      invokedMs,
      returnedMs: result === null ? Infinity : operation.returnedMs,
      after,
      step: preview
        ? (held) => previewed(held, operation, actorId)
        : (held) => agreeing(step(held, explained, result, actorId), longest),
    })
  }
  return calls
}

/** Refused without an entry, and those behind it were done: a repeat comes after them. */
function wasPassedOver({ attempts }: Operation, i: number): boolean {
  return attempts.some(({ reply }) => {
    const result = reply?.outcome === 'answered' ? reply.results[i] : undefined
    return result?.success === false && PASSED_OVER.has(result.errors[0]!.code)
  })
}

const PASSED_OVER = new Set(['TOO_LARGE', 'INTERNAL_ERROR'])

function byInvocation(a: Told, b: Told): number {
  const { operation: one } = a
  const { operation: other } = b
  return one.invokedMs - other.invokedMs || one.id - other.id || a.i - b.i
}

/**
 * Lists only grow, so whatever explains the longest one that was shown has its beginnings before it
 * and goes on from it: other orders need not be tried.
 */
function agreeing(held: Held | null, longest: readonly string[]): Held | null {
  const tokens = held?.ledger?.tokens ?? []
  for (let i = Math.min(tokens.length, longest.length) - 1; i >= 0; i--) {
    if (tokens[i] !== longest[i]) return null
  }
  return held
}

function longestOf(told: readonly Told[]): readonly string[] {
  let longest: readonly string[] = []
  for (const { operation, i } of told) {
    const tokens = operation.preview ? null : shownTokens(operation.results[i]!)
    if (tokens !== null && tokens.length > longest.length) longest = tokens
  }
  return longest
}

/** Answers of messages that were recorded as not done, whatever the state. */
const NOT_DONE = new Set(['POISONED', 'VOID', 'IDEMPOTENCY_MISMATCH', FORBIDDEN])

function step(
  held: Held,
  message: OperationMessage,
  result: MessageResult | null,
  actorId: string,
): Held | null {
  const { ledger } = held
  if (result?.success === false && NOT_DONE.has(result.errors[0]!.code)) return held
  if (message.type === 'strike' && isOpen(ledger)) return struck(held, result)
  // Which number it has is a matter of more actors than this one.
  const expected =
    message.type === 'renumber' && isOpen(ledger) ? null : answerOf(ledger, message, actorId)
  if (expected !== null) {
    if (result !== null && !agrees(expected, result)) return null
    if (!expected.success) return held
  } else if (result?.success === false) return held
  return message.type === 'read' ? held : { ledger: nextState(ledger, message, actorId) }
}

/** Which tokens are struck nobody is shown: a strike tells how many there are, like a read. */
function struck(held: Held, result: MessageResult | null): Held | null {
  return !result?.success || result.data === held.ledger!.tokens.length ? held : null
}

function isOpen(ledger: Ledger | null): boolean {
  return ledger !== null && !ledger.deleted
}

/** Every message of a preview has seen what those before it would have done. */
function previewed(held: Held, operation: Operation, actorId: string): Held | null {
  let imagined: Held | null = held
  operation.messages.forEach((message, i) => {
    if (imagined) imagined = step(imagined, message, operation.results[i] ?? null, actorId)
  })
  return imagined === null ? null : held
}

function agrees(expected: MessageResult, result: MessageResult): boolean {
  const tokens = shownTokens(result)
  if (tokens !== null) return tokens.join() === shownTokens(expected)?.join()
  return JSON.stringify(expected) === JSON.stringify(result)
}

function keyOf({ ledger }: Held): string {
  if (ledger === null) return ''
  return `${ledger.deleted ? 'deleted' : 'open'} ${ledger.tokens.join()}`
}

/** Of two reads, the one that began when the other had returned shows at least as much. */
function checkReads(actorId: string, told: readonly Told[]): string[] {
  const reads = told
    .map(({ operation, i }) => ({ operation, tokens: shownTokens(operation.results[i]!) }))
    .filter(({ operation, tokens }) => tokens !== null && !operation.preview)
    .map(({ operation, tokens }) => ({ operation, tokens: tokens! }))
  const found: string[] = []
  const longest = reads.toSorted((a, b) => b.tokens.length - a.tokens.length)[0]
  for (const { operation, tokens } of reads) {
    const isBeginning = tokens.every((token, i) => token === longest!.tokens[i])
    if (!isBeginning) {
      const ids = `${operation.id} and ${longest!.operation.id}`
      found.push(`K3: ledger ${actorId}: reads ${ids} show different orders`)
    }
  }
  return found
}
