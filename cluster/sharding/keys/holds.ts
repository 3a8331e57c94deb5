// The question `!holds`: whether an actor holds a natural key by a message, asked by the key's
// shard about an old claim that was never confirmed. Source: ARCHITECTURE 4 "Apart", model-checked
// as `keys`.

import { encodeEntry } from '../../../protocol/entry/entry.ts'
import type { Entry } from '../../../protocol/entry/entry.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { MessageResult } from '../../../protocol/message.ts'
import type { Maybe } from '../../../storage/journal.ts'
import type { Activation } from '../turn/activation.ts'
import type { Joining, ShardContext } from '../core.ts'
import type { Dedup } from '../turn/dedup.ts'
import { plainEntry } from '../turn/entry-maker.ts'
import { idOf } from './keys.ts'
import { resumed } from '../turn/work.ts'
import type { Work } from '../turn/work.ts'

const HOLDS = '!holds'

interface KeyQuestion {
  readonly keyType: string
  readonly key: string
  readonly messageId: string
}

export function isQuestion({ envelope }: Work): boolean {
  return envelope.messages[0]!.type === HOLDS
}

/** Whose actors are asked. */
export interface HoldsHost {
  readonly context: Pick<ShardContext, 'clock'>
  /** The shard's clock, milliseconds (PROTOCOL 3.0). */
  clockMs(): number
  join(joining: Joining): number
}

export class Holds {
  readonly #shard: HoldsHost
  readonly #dedup: Dedup

  constructor(shard: HoldsHost, dedup: Dedup) {
    this.#shard = shard
    this.#dedup = dedup
  }

  /**
   * Gives the work its result; "no" voids the message. While the message is under way it may come
   * to hold the key: yes, as for a claim that is young. `unread`: told when the store was away.
   */
  answer(activation: Activation, work: Work, unread: (error: unknown) => void): Maybe<void> {
    const { keyType, key, messageId } = work.envelope.messages[0]!.body as KeyQuestion
    const { n } = activation
    const holds = activation.held.get(idOf(keyType, key))?.messageId === messageId
    const answer = (data: boolean): void => {
      work.gate = Math.max(work.gate, activation.newest)
      work.results.push({ type: HOLDS, success: true, data })
    }
    const decide = (wasTaken: boolean): Maybe<void> => {
      // Something was decided while the store was asked: all is looked at again.
      if (activation.n !== n) return this.answer(activation, work, unread)
      if (wasTaken) return answer(holds)
      if (isUnderWay(activation, messageId)) return answer(true)
      this.#makeVoid(activation, work, messageId)
      answer(false)
    }
    const known = holds || this.#dedup.isKnown(activation, messageId)
    if (!(known instanceof Promise)) return decide(known)
    return known.then(resumed(work, decide), unread)
  }

  #makeVoid(activation: Activation, work: Work, messageId: string): void {
    const shard = this.#shard
    const text = 'this message came too late: its key was given up; use a new Idempotency-Key'
    // Times of an actor's entries don't fall, and a turn that waits has had its own already.
    const turn = activation.running?.generator ? activation.running : null
    const nowMs = turn?.nowMs ?? shard.context.clock.nowMs()
    work.nowMs = Math.max(nowMs, activation.lastTimeMs)
    const errors = [errorItem('VOID', text)]
    const result: MessageResult = { type: '!void', success: false, errors }
    const entry: Entry = { ...plainEntry(shard, activation, work, result), m: messageId, l: 1 }
    const { state } = activation
    shard.join({ entry, bytes: encodeEntry(entry), activation, state, bases: work.bases })
  }
}

/** Whether the message is one of a request that runs, or waits for its turn. */
function isUnderWay({ running, mailbox }: Activation, messageId: string): boolean {
  const [id] = messageId.split('#')
  const has = ({ envelope }: Work): boolean => envelope.messageId.id === id && !envelope.preview
  return (running !== null && has(running)) || mailbox.some(has)
}
