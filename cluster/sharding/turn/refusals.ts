// Refusals: how a message ends that changes nothing, with an entry or without one, and what the
// sender is told. Source: PROTOCOL 3.6 (owner, steps 2-5; "Outbox"), 3.11.

import { LIMITS } from '../../../config/limits.ts'
import { encodeEntry } from '../../../protocol/entry/entry.ts'
import { RequestError, errorItem, isRetryable } from '../../../protocol/errors.ts'
import type { ErrorItem } from '../../../protocol/errors.ts'
import type { Message, MessageResult } from '../../../protocol/message.ts'
import type { Activation } from './activation.ts'
import { ClaimFailed } from '../keys/claims.ts'
import { refused } from '../core.ts'
import type { Joining, ShardContext } from '../core.ts'
import { refusalOf } from './entry-maker.ts'
import { failure } from './message-result.ts'
import { deadLetterItem } from './dead-letters.ts'
import { messageIdOf } from './work.ts'
import type { Work } from './work.ts'

/** What an entry that says no needs of its shard. */
export interface Refusing {
  readonly context: Pick<ShardContext, 'clock' | 'log'>
  /** The shard's clock, milliseconds (PROTOCOL 3.0). */
  clockMs(): number
  join(joining: Joining): number
}

export class Refusals {
  readonly #shard: Refusing

  constructor(shard: Refusing) {
    this.#shard = shard
  }

  /** The end of a message whose turn threw. */
  failed(activation: Activation, work: Work, message: Message, error: unknown): void {
    if (error instanceof ClaimFailed) {
      const text = 'a key in another shard could not be asked for; nothing was done, try again'
      const { reply } = error
      const item = reply.outcome === 'refused' ? reply.error : errorItem('UNAVAILABLE', text)
      this.refuse(activation, work, message, [item])
      return
    }
    if (error instanceof RequestError) {
      this.refuse(activation, work, message, error.errors)
      return
    }
    this.#shard.context.log.error(
      { err: error, actor: activation.id, message: message.type, trace: work.envelope.trace },
      'a turn failed',
    )
    if (work.envelope.relay) {
      const why = `it could not be processed: ${String(error).slice(0, 1_000)}`
      this.giveUp(activation, work, message, why)
      return
    }
    const text = 'this message could not be processed because of a mistake in Kontor'
    this.refuse(activation, work, message, [errorItem('INTERNAL_ERROR', text)])
  }

  /** The end of a message that has waited for too long. */
  late(activation: Activation, work: Work, message: Message): void {
    this.refuse(activation, work, message, [errorItem('UNAVAILABLE', LATE)])
  }

  /**
   * A refusal without an entry: nothing was done, and a repeat may succeed. Only a relayed message
   * always ends in an entry, so that its relay goes on (PROTOCOL 3.6 "Outbox"); where trying again
   * may help, its relay is told to. What is too large under a caller's key is recorded as well: a
   * repeat is no smaller. Messages of one request take effect in their order, so where trying again
   * may help those behind are refused with it.
   */
  refuse(activation: Activation, work: Work, message: Message, items: readonly ErrorItem[]): void {
    if (work.envelope.relay && isRetryable(items[0]!.code)) {
      work.refusal = refused(items[0]!)
      return
    }
    const isFinal = items[0]!.code === 'TOO_LARGE' && work.envelope.messageId.kind === 'caller'
    if (work.envelope.relay || (isFinal && work.preview === null)) {
      this.record(activation, work, failure(message, items.slice(0, RECORDED_MAX)))
      return
    }
    work.results.push(failure(message, items))
    if (!isRetryable(items[0]!.code)) return
    // What comes behind it would take effect before it: both are repeated.
    const { messages } = work.envelope
    while (work.results.length < messages.length) {
      work.results.push(failure(messages[work.results.length]!, items))
    }
    work.i = messages.length - 1
  }

  /**
   * A message that is given up: it has killed its owner often enough, or nobody would repeat it.
   * What the caller was told is recorded, and the message is kept for a replay (PROTOCOL 3.11).
   */
  giveUp(activation: Activation, work: Work, message: Message, why: string): void {
    this.#shard.context.log.error(
      { actor: activation.id, message: message.type, trace: work.envelope.trace, why },
      'a message was given up',
    )
    const result = failure(message, [deadLetterItem(messageIdOf(work), why)])
    this.record(activation, work, result, message)
  }

  /** An entry that says what the message's sender was told, and changes nothing. */
  record(activation: Activation, work: Work, result: MessageResult, kept?: Message): void {
    work.nowMs = Math.max(this.#shard.context.clock.nowMs(), activation.lastTimeMs)
    const plain = refusalOf(this.#shard, activation, work, result)
    let entry = kept ? { ...plain, x: kept } : plain
    let bytes = encodeEntry(entry)
    if (kept && bytes.length > LIMITS.protocol.entryBytesMax) bytes = encodeEntry((entry = plain))
    this.#shard.join({ entry, bytes, activation, state: activation.state, bases: work.bases })
    work.position = activation.newest
    work.gate = activation.newest
    work.results.push(result)
  }
}

const LATE =
  `what this message needs was not there within ${LIMITS.sharding.turnMs / 1_000} s; ` +
  'nothing was done, try again'

/** Errors of a refusal that its entry keeps: what an entry holds is bounded. */
const RECORDED_MAX = 16
