// The history of a run: every operation of every client, from its invocation to what its client has
// come to know of it. The clients write it; the checkers see nothing else of the clients. Source:
// PROTOCOL 4.1.

import type { MessageResult, Reply } from '../../../protocol/message.ts'
import type { Position } from '../../../protocol/ids.ts'
import type { LedgerBody } from './ledger.ts'

export interface OperationMessage {
  readonly type: string
  readonly body: LedgerBody
}

/**
 * What a client knows. `ok`: it was answered (a rejection is an answer). `fail`: it surely did not
 * happen. `info`: nobody knows.
 */
export type OperationOutcome = 'ok' | 'fail' | 'info'

/** One request that a client made, perhaps several times under one key. */
export interface Operation {
  readonly id: number
  readonly client: string
  readonly type: string
  /** Actor as it was addressed: UUID, number, `new`, or a flag's key. */
  readonly address: string
  readonly messages: readonly OperationMessage[]
  readonly key: string | null
  readonly preview: boolean
  readonly invokedMs: number
  /** Infinity while it is open, and for ever when its outcome is `info`. */
  returnedMs: number
  outcome: OperationOutcome
  /** UUID of the actor that answered. */
  actorId: string | null
  /** By message; null: nothing was recorded for it, as far as its client knows. */
  readonly results: (MessageResult | null)[]
  position: Position | null
  /** Why it failed, or nobody knows. */
  why: string
  /** Replies to repeats under the same key that differ from the first. */
  readonly otherReplies: string[]
  readonly attempts: Attempt[]
}

/** One time that a request was sent. */
export interface Attempt {
  readonly member: string
  readonly sentMs: number
  reply: Reply | null
}

/** Codes of messages for which nothing was recorded: a repeat may end otherwise. */
const UNRECORDED = new Set([
  'UNAVAILABLE',
  'TOO_BUSY',
  'TOO_LARGE',
  'INTERNAL_ERROR',
  'QUARANTINED',
  'STORAGE_FULL',
])

export function isRecorded(result: MessageResult): boolean {
  return result.success || !result.errors.some(({ code }) => UNRECORDED.has(code))
}

/** A look at a ledger in the graph, which waits for a position of the client's own write. */
export interface Look {
  readonly id: number
  readonly client: string
  readonly ledgerId: string
  readonly position: Position
  /** null: the ledger isn't shown. */
  readonly shown: ShownLedger | null
}

/** A ledger as the graph shows it. */
export interface ShownLedger {
  /** How many tokens its own node says it has, struck ones included. */
  readonly size: number
  /** Its token nodes, in the ledger's order. */
  readonly tokens: readonly string[]
}

export class OperationHistory {
  readonly operations: Operation[] = []
  readonly looks: Look[] = []

  begin(
    what: Pick<
      Operation,
      'client' | 'type' | 'address' | 'messages' | 'key' | 'preview' | 'invokedMs'
    >,
  ): Operation {
    const operation: Operation = {
      ...what,
      id: this.operations.length,
      returnedMs: Infinity,
      outcome: 'info',
      actorId: null,
      results: what.messages.map(() => null),
      position: null,
      why: 'open',
      otherReplies: [],
      attempts: [],
    }
    this.operations.push(operation)
    return operation
  }

  /** An attempt has been answered; null: its connection was lost, or its client has given up. */
  answered(operation: Operation, attempt: Attempt, reply: Reply | null, nowMs: number): void {
    attempt.reply = reply
    if (reply?.outcome === 'answered') this.#results(operation, reply)
    if (operation.outcome === 'ok') return
    if (operation.results.every((result) => result !== null)) {
      operation.outcome = 'ok'
      operation.returnedMs = nowMs
      operation.why = ''
    } else this.#settle(operation, nowMs)
  }

  #results(operation: Operation, reply: Extract<Reply, { outcome: 'answered' }>): void {
    const { results, key } = operation
    operation.actorId ??= reply.actorId
    reply.results.forEach((told, i) => {
      // What its edge refuses goes without its type; a station puts it back, and so does this.
      const result = told.type === '' ? { ...told, type: operation.messages[i]!.type } : told
      if (!isRecorded(result)) return
      const known = results[i] ?? null
      if (known === null) results[i] = result
      else if (key !== null && JSON.stringify(known) !== JSON.stringify(result)) {
        operation.otherReplies.push(`message ${i}: ${JSON.stringify(result)}`)
      }
    })
    operation.position ??= reply.position
  }

  /** Only when every attempt was refused did it surely not happen. */
  #settle(operation: Operation, nowMs: number): void {
    const { attempts, results } = operation
    const isRefused = attempts.every(({ reply }) => reply !== null && reply.outcome !== 'unknown')
    const last = attempts.at(-1)?.reply
    operation.why = whyOf(last ?? null)
    operation.outcome = isRefused && results.every((result) => result === null) ? 'fail' : 'info'
    operation.returnedMs = operation.outcome === 'fail' ? nowMs : Infinity
  }
}

function whyOf(reply: Reply | null): string {
  if (reply === null) return 'connection lost'
  if (reply.outcome !== 'answered') return `${reply.error.code} ${reply.error.message}`
  return reply.results.map((r) => (r.success ? 'done' : r.errors[0]!.code)).join(', ')
}
