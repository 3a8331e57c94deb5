// What was set aside so that the rest could go on: messages that were given up, and actors that the
// graph can't show. Both lists are derived rows, so any member can read them; a message is sent
// again to whoever owns its actor now. Source: PROTOCOL 3.11.

import { decodeParked } from '../../cluster/feed/projection-batch.ts'
import { deadLettersOfAll, replayOf } from '../../cluster/sharding/turn/dead-letters.ts'
import type { DeadLetter } from '../../cluster/sharding/turn/dead-letters.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { ErrorCode } from '../../protocol/errors.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { Envelope, MessageResult, Reply } from '../../protocol/message.ts'
import type { Journal } from '../../storage/journal.ts'

export interface SetAsideOptions {
  readonly journal: Pick<Journal, 'identity' | 'derived'>
  /** Consumer under which the index that is read keeps its parked actors. */
  readonly parkedBy: () => string
  /** Sends an envelope of the runtime's own making to its owner. */
  readonly send: (envelope: Envelope, respond: (reply: Reply) => void) => void
}

/** A dead letter as it is shown. */
export interface DeadLetterRow {
  readonly messageId: string
  readonly type: string
  readonly actorId: string
  readonly reason: string
  readonly at: string
  readonly by: string
  /** False: the message was too large to be kept. */
  readonly canBeReplayed: boolean
}

/** An actor that the graph shows as it was before, or not at all. */
export interface ParkedRow {
  readonly type: string
  readonly actorId: string
  readonly nodes: readonly string[]
  readonly reason: string
}

export class SetAside {
  readonly #options: SetAsideOptions

  constructor(options: SetAsideOptions) {
    this.#options = options
  }

  async deadLetters(): Promise<readonly DeadLetterRow[]> {
    const all = await this.#deadLetters()
    return all.map(({ messageId, type, actorId, reason, timeMs, by, message }) => {
      const at = new Date(timeMs).toISOString()
      return { messageId, type, actorId, reason, at, by, canBeReplayed: message !== null }
    })
  }

  #deadLetters(): Promise<readonly DeadLetter[]> {
    const { derived, identity } = this.#options.journal
    return deadLettersOfAll(derived, identity.shards)
  }

  /** Sends a message once more. Its result, whatever it is, takes it off the list. */
  async replay(actorId: string, messageId: string): Promise<MessageResult> {
    const all = await this.#deadLetters()
    const found = all.find((p) => p.actorId === actorId && p.messageId === messageId)
    if (!found) throw new RequestError('NOT_FOUND', 'there is no such dead letter')
    const { message } = found
    if (message === null) {
      const text = 'this message was too large to be kept; only its sender can repeat it'
      throw new RequestError('CONFLICT', text)
    }
    const reply = await new Promise<Reply>((resolve) => {
      this.#options.send(replayOf({ ...found, message }), resolve)
    })
    if (reply.outcome === 'answered') return reply.results[0]!
    throw new RequestError(reply.error.code as ErrorCode, reply.error.message)
  }

  async parked(): Promise<readonly ParkedRow[]> {
    const { journal, parkedBy } = this.#options
    const { derived, identity } = journal
    const rows: ParkedRow[] = []
    for (let shard = SYSTEM_SHARD; shard < identity.shards; shard++) {
      for (const { body } of await derived.parked(shard, parkedBy())) {
        const { type, actorId, nodes, reason } = decodeParked(body)
        rows.push({ type, actorId, nodes: nodes.map(({ node, id }) => `${node}/${id}`), reason })
      }
    }
    return rows
  }
}
