// Dedup: whether a message took effect on an actor before, and what its caller was told then. It is
// asked before every bound. Source: PROTOCOL 3.6 (owner 2).

import { errorItem } from '../../../protocol/errors.ts'
import { decodeEntry } from '../../../protocol/entry/entry.ts'
import type { MessageResult } from '../../../protocol/message.ts'
import type { EntryRow, Maybe } from '../../../storage/journal.ts'
import { isBefore } from './activation.ts'
import type { Activation } from './activation.ts'
import { stored } from '../core.ts'
import type { ShardContext } from '../core.ts'
import type { LoadedEntry } from './loading.ts'
import type { Mark, SpilledMarks } from './marks.ts'
import { markDay } from './marks.ts'
import { messageIdOf } from './work.ts'
import type { Work } from './work.ts'

/** What is answered to a message that is known. */
export interface Recalled {
  readonly result: MessageResult
  readonly keys: readonly string[]
  /** Where the answer stands in the log; 0: it doesn't. */
  readonly offset: number
  /** The entry by which it is known: no answer before that is committed. */
  readonly gate: number
  /** The key was used with another body: what is said to all of the request. */
  readonly isOther?: true
}

/** Whose actors' messages are looked for. */
export interface DedupHost {
  readonly context: Pick<ShardContext, 'journal'>
  readonly spilled: SpilledMarks
  /** The shard's clock, milliseconds (PROTOCOL 3.0). */
  clockMs(): number
  /** Entries of an actor that are decided but not yet in the derived rows, oldest first. */
  unflushed(actorId: string): readonly LoadedEntry[]
}

export class Dedup {
  readonly #shard: DedupHost

  constructor(shard: DedupHost) {
    this.#shard = shard
  }

  /** The recorded answer of the message at which the work stands, or null: it is new. */
  recall(activation: Activation, work: Work): Maybe<Recalled | null> {
    const messageId = messageIdOf(work)
    const { relay } = work.envelope
    const mark = activation.marks.find(messageId, this.#shard.clockMs())
    if (mark) return this.#answerOf(activation, work, mark)
    if (relay && wasTaken(activation, relay, work.i)) return relayed(activation)
    return this.#findSpilled(activation, messageId, (spilled) =>
      spilled ? this.#answerOf(activation, work, spilled) : null,
    )
  }

  /**
   * Of a request that begins with a read: what is answered to all of it when its key was used with
   * another body; else null. Told by the first message that may commit something, which has an
   * answer of its own whenever one behind it has.
   */
  otherBody(activation: Activation, work: Work): Maybe<Recalled | null> {
    const { messageId, messages, bodyHash, preview } = work.envelope
    // What may commit is looked up itself, and a request that only reads runs again.
    const { behaviour } = activation
    if (bodyHash === '' || preview || !behaviour.isRead(messages[0]!.type)) return null
    if (messages.every(({ type }) => behaviour.isRead(type))) return null
    const told = (mark: Mark | null): Recalled | null =>
      mark !== null && isOther(mark, bodyHash) ? mismatch(work, mark) : null
    const mark = activation.marks.find(messageId.id, this.#shard.clockMs())
    return mark ? told(mark) : this.#findSpilled(activation, messageId.id, told)
  }

  /** Whether the message took effect on the actor, or was refused by it, and is remembered. */
  isKnown(activation: Activation, messageId: string): Maybe<boolean> {
    if (activation.marks.find(messageId, this.#shard.clockMs())) return true
    return this.#findSpilled(activation, messageId, (spilled) => spilled !== null)
  }

  /** The mark of a message that has left the window, if it did. */
  #findSpilled<T>(
    activation: Activation,
    messageId: string,
    use: (mark: Mark | null) => Maybe<T>,
  ): Maybe<T> {
    if (!activation.marks.spilled) return use(null)
    // Looked at before the rows are read: what is gone from here is durable, and the read sees it.
    const unflushed = this.#shard.spilled.find(activation.id, messageId)
    if (unflushed) return use(unflushed)
    return this.#readSpilled(activation, messageId, use)
  }

  /**
   * Marks that fell out of the window are kept by the day of the shard's clock: today's and
   * yesterday's.
   */
  #readSpilled<T>(
    activation: Activation,
    messageId: string,
    use: (mark: Mark | null) => Maybe<T>,
  ): Maybe<T> {
    const { derived } = this.#shard.context.journal
    const day = markDay(this.#shard.clockMs())
    const today = stored(derived.mark(activation.id, day, messageId))
    const before = (bytes: Uint8Array | null): Maybe<T> => {
      if (bytes) return use(parseMark(bytes))
      if (day === 0) return use(null) // the clock starts with the shard: there is no day before
      const yesterday = stored(derived.mark(activation.id, day - 1, messageId))
      if (yesterday instanceof Promise) return yesterday.then((b) => use(b && parseMark(b)))
      return use(yesterday && parseMark(yesterday))
    }
    return today instanceof Promise ? today.then(before) : before(today)
  }

  /** null: what was answered has gone, and with it the message. */
  #answerOf(activation: Activation, work: Work, mark: Mark): Maybe<Recalled | null> {
    const { keys, offset } = mark
    const gate = offset
    if (isOther(mark, work.envelope.bodyHash)) return mismatch(work, mark)
    if (mark.result) return { result: mark.result, keys, offset, gate }
    const unflushed = this.#shard.unflushed(activation.id)
    const rows = stored(
      this.#shard.context.journal.derived.entries(activation.id, {
        order: 'ascending',
        after: mark.n - 1,
        bytesMax: 1,
      }),
    )
    const answer = (some: readonly EntryRow[]): Recalled | null => {
      const mayBeGone = mark.passing ?? activation.forgottenFrom > 0
      const result = fromEntry(mark, [...some, ...unflushed], mayBeGone)
      return result && { result, keys, offset, gate }
    }
    return rows instanceof Promise ? rows.then(answer) : answer(rows)
  }
}

function isOther(mark: Mark, bodyHash: string): boolean {
  return mark.bodyHash !== '' && bodyHash !== '' && mark.bodyHash !== bodyHash
}

function mismatch({ envelope, i }: Work, { offset: gate }: Mark): Recalled {
  const text = 'this Idempotency-Key was used before with another body; use a new key'
  const errors = [errorItem('IDEMPOTENCY_MISMATCH', text)]
  const { type } = envelope.messages[i]!
  return { result: { type, success: false, errors }, keys: [], offset: 0, gate, isOther: true }
}

/** A relay's offsets never expire: what is at or below the last one taken was taken. */
function wasTaken(
  activation: Activation,
  [shard, offset, index]: readonly [number, number, number],
  message: number,
): boolean {
  return !isBefore(activation.relays.get(shard), [offset, index, message])
}

function relayed(activation: Activation): Recalled {
  return {
    result: { type: '!relayed', success: true },
    keys: activation.keys,
    offset: activation.newest,
    gate: activation.newest,
  }
}

function parseMark(bytes: Uint8Array): Mark {
  return JSON.parse(Buffer.from(bytes).toString()) as Mark
}

/**
 * Answers too long for a mark are read from their entry. The shard's clock may have stood still for
 * days while a server's goes on, so an entry that passes may be gone, and its number another's,
 * while the mark still counts; then nobody repeats the message any more: it is new (PROTOCOL 3.12
 * "What expires"). Of an actor that has ended they go at once, and what is new is refused by it.
 */
function fromEntry(
  mark: Mark,
  rows: readonly { readonly body: Uint8Array }[],
  mayBeGone: boolean,
): MessageResult | null {
  for (const { body } of rows) {
    const entry = decodeEntry(body)
    if (entry.n === mark.n && entry.m === mark.messageId) return entry.a
  }
  if (mayBeGone) return null
  throw new Error(`the entry of a recorded answer is missing: ${mark.messageId}`)
}
