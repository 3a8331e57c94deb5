// Dead letters: messages of a shard's actors that were given up because they kept killing their
// owner, or failed where nobody would repeat them. What their senders were told is in the log; this
// keeps what a person needs to look at them and to send them again. Source: PROTOCOL 3.11.

import { LIMITS } from '../../../config/limits.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { ErrorItem } from '../../../protocol/errors.ts'
import type { EntryHead } from '../../../protocol/entry/entry.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import type { Envelope, Message } from '../../../protocol/message.ts'
import type { DerivedReader, DerivedRow } from '../../../storage/journal.ts'

/** One message that was given up. */
export interface DeadLetter {
  readonly messageId: string
  readonly type: string
  readonly actorId: string
  /** Natural key of an actor of the `system` shard. */
  readonly key?: string
  readonly reason: string
  /** Milliseconds since 1970. */
  readonly timeMs: number
  /** Identity on whose behalf it was sent. */
  readonly by: string
  /** null: too large to be kept; its sender alone can repeat it. */
  readonly message: Message | null
}

/** Consumer under which the rows are kept. */
export const DEAD_LETTERS = 'poison'
const REPLAY = 'replay-'

/** Why a message is given up that its owner has died of often enough. */
export const KILLED = 'each time that it was tried the process that ran it ended'

/** What the sender of a dead letter is told: the code is the contract's. */
export function deadLetterItem(messageId: string, reason: string): ErrorItem {
  const text = `this message was given up: ${reason}`
  return errorItem('POISONED', text, { messageId })
}

function isDeadLetter({ a }: EntryHead): boolean {
  return !a.success && a.errors[0]?.code === 'POISONED'
}

/** The list of one shard, as its log leaves it. */
export class DeadLetters {
  readonly #actors = new Map<string, readonly DeadLetter[]>()

  /** Rows as they are stored; what the tail has above them is applied again. */
  load(rows: readonly { readonly actorId: string; readonly body: Uint8Array }[]): void {
    for (const { actorId, body } of rows) this.#actors.set(actorId, decode(body))
  }

  /** The row that an entry changes, if any. */
  apply(entry: EntryHead, offset: number): DerivedRow | null {
    const isReplay = entry.m.startsWith(REPLAY)
    // A replay that is given up as well leaves the first on the list.
    if (isReplay === isDeadLetter(entry)) return null
    const actorId = entry.p
    const replayed = isReplay ? entry.m.slice(REPLAY.length) : entry.m
    const others = (this.#actors.get(actorId) ?? []).filter((p) => p.messageId !== replayed)
    const next = isReplay ? others : bounded([...others, deadLetterOf(entry)])
    if (next.length > 0) this.#actors.set(actorId, next)
    else this.#actors.delete(actorId)
    const body = next.length > 0 ? Buffer.from(JSON.stringify(next)) : null
    return { kind: 'parked', consumer: DEAD_LETTERS, actorId, body, offset }
  }

  all(): readonly DeadLetter[] {
    return [...this.#actors.values()].flat()
  }
}

/** The newest ones; of those, the newest messages that a row has room for. */
function bounded(all: readonly DeadLetter[]): readonly DeadLetter[] {
  const newest = all.slice(-LIMITS.sharding.poisonedMax)
  let left = LIMITS.sharding.poisonedBytesMax
  return newest
    .toReversed()
    .map((one) => {
      const bare = one.message === null ? one : { ...one, message: null }
      left -= bytesOf(bare)
      const bytes = bytesOf(one.message)
      if (bytes > left) return bare
      left -= bytes
      return one
    })
    .toReversed()
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1
}

function deadLetterOf(entry: EntryHead): DeadLetter {
  const { details, message } = (entry.a as { errors: readonly ErrorItem[] }).errors[0]!
  return {
    messageId: (details?.['messageId'] as string | undefined) ?? entry.m,
    type: entry.y,
    actorId: entry.p,
    ...(entry.q === undefined ? null : { key: entry.q }),
    reason: message,
    timeMs: entry.t,
    by: entry.b,
    message: entry.x ?? null,
  }
}

function decode(body: Uint8Array): readonly DeadLetter[] {
  return JSON.parse(Buffer.from(body).toString()) as readonly DeadLetter[]
}

/**
 * A dead letter once more, as a message of its own: the recorded answer of the first stays.
 * Its entry, whatever it says, takes the message off the list.
 */
export function replayOf(deadLetter: DeadLetter & { readonly message: Message }): Envelope {
  const { type, actorId, key, messageId, by, message } = deadLetter
  return {
    messageId: { id: REPLAY + messageId, kind: 'caller' },
    to: key === undefined ? { type, id: actorId } : { type, key },
    virtual: false,
    copy: 0,
    messages: [message],
    bodyHash: '',
    budgetMs: LIMITS.sharding.requestBudgetMs,
    by,
    preview: false,
    crashes: 0,
    trace: REPLAY + messageId,
  }
}

/** The dead letters of every shard as the derived rows have them, by any member. */
export async function deadLettersOfAll(
  derived: DerivedReader,
  shards: number,
): Promise<readonly DeadLetter[]> {
  const numbers = [SYSTEM_SHARD, ...Array(shards).keys()]
  const lists: DeadLetter[] = []
  for (const shard of numbers) {
    for (const { body } of await derived.parked(shard, DEAD_LETTERS)) lists.push(...decode(body))
  }
  return lists
}
