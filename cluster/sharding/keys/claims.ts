// Keys apart: a natural key whose shard is not its actor's. The actor's turn claims it in the key's
// shard, its outbox confirms or frees the claim after the commit, and a claim that was left behind
// is ended only by asking the actor whether it holds the key by that message. Source: ARCHITECTURE
// 4 "Apart", model-checked as `keys`.

import { LIMITS } from '../../../config/limits.ts'
import { errorItem } from '../../../protocol/errors.ts'
import { encodeEntry } from '../../../protocol/entry/entry.ts'
import type { Entry, KeyChange } from '../../../protocol/entry/entry.ts'
import type { Address, Envelope, Message, WireReply } from '../../../protocol/message.ts'
import type { AliasClaim, AliasRow, Maybe } from '../../../storage/journal.ts'
import type { Activation } from '../turn/activation.ts'
import type { OutputGate } from '../commit/output-gate.ts'
import type { Joining, Reservation, ShardContext } from '../core.ts'
import { refused } from '../core.ts'
import { holderOf, idOf } from './keys.ts'
import type { KeyTable } from './keys.ts'
import type { Work } from '../turn/work.ts'
import { messageIdOf, resumed, TurnAgain } from '../turn/work.ts'

interface Key {
  readonly keyType: string
  readonly key: string
}

/** Body of the messages `!claim`, `!look`, `!confirm`, `!free`. */
interface ClaimBody {
  readonly actorId: string
  readonly messageId: string
  /** Of a claiming turn that has keys reserved; an older version says none, and waits. */
  readonly age?: string
}

/** Answer to a `!claim` that may not wait for the turn that has the key reserved. */
const AGAIN = 'again'

/** An envelope to a key from the runtime itself. */
export function isKeyMessage(envelope: Envelope): boolean {
  return 'key' in envelope.to && envelope.messages[0]!.type.startsWith('!')
}

/** A question of the runtime's own that got no answer: the turn that asked is refused. */
export class ClaimFailed extends Error {
  readonly reply: WireReply
  constructor(reply: WireReply) {
    super('a key in another shard could not be asked for')
    this.reply = reply
  }
}

/** How old a turn is that others may wait for: it has keys reserved. */
export function ageOfHolder(
  reserved: ReadonlyMap<string, Reservation>,
  work: Work,
): string | undefined {
  for (const held of reserved.values()) if (held.work === work) return work.age
  return undefined
}

/**
 * Whether a turn may wait for the end of a reservation. Who has keys reserved waits only for a
 * younger turn, whatever their shards are: so no circle of turns that wait is ever closed, and the
 * oldest never gives anything back (model-checked as `waits`).
 */
export function mayWait(age: string | undefined, held: Reservation): boolean {
  return age === undefined || age < held.work.age
}

/** What claims have from a shard: of its own keys, and as one whose turns want another's. */
export interface ClaimHost {
  readonly context: Pick<ShardContext, 'clock' | 'newUuid' | 'send'>
  readonly gate: OutputGate
  readonly keys: KeyTable
  /** Keys that a turn under way has taken; another that asks for one waits for its end. */
  readonly reserved: ReadonlyMap<string, Reservation>
  /** Counts how often the speculative state was dropped: what was read before is void. */
  readonly speculation: number
  moved(): WireReply
  /** The shard's clock, milliseconds (PROTOCOL 3.0). */
  clockMs(): number
  join(joining: Joining): number
  releaseRead(offset: number, reply: WireReply, respond: (reply: WireReply) => void): void
}

export class Claims {
  readonly #shard: ClaimHost

  constructor(shard: ClaimHost) {
    this.#shard = shard
  }

  /**
   * Asks the key's shard for a claim, or just looks. Answer: true when the actor may have it. A
   * turn that fails without an entry leaves its claim: the next turn of its message may go by it
   * already when a word that frees it arrives. Rejects with TurnAgain where the claim may not wait;
   * a look waits for anybody, since who looks has nothing reserved.
   */
  apart(
    wanted: Key,
    asker: { readonly work: Work; readonly activation: Activation; readonly look: boolean },
  ): Promise<boolean> {
    const { work, activation, look } = asker
    const key = { keyType: wanted.keyType, key: wanted.key }
    const age = ageOfHolder(this.#shard.reserved, work)
    const body: ClaimBody = {
      actorId: activation.id,
      messageId: messageIdOf(work),
      ...(age !== undefined && { age }),
    }
    const message = { type: look ? '!look' : '!claim', body }
    return this.#internal({ type: key.keyType, key: key.key }, message).then(
      resumed(work, (answer) => {
        if (answer === AGAIN) {
          throw new TurnAgain(() => this.apart(wanted, { ...asker, look: true }))
        }
        const free = answer === true
        if (free && !look) work.taken.set(idOf(key.keyType, key.key), { ...key, isApart: true })
        return free
      }),
    )
  }

  /** Asks the actor of an old unconfirmed claim whether it holds the key by that message. */
  inquire(key: Key, claim: AliasClaim): Promise<boolean> {
    const type = key.keyType.split('!')[0]!
    return this.#internal(
      { type, id: claim.actorId },
      { type: '!holds', body: { ...key, messageId: claim.messageId } },
    ).then(async (answer) => {
      const holds = answer === true
      if (!holds) await this.#endClaim(key, claim)
      return holds
    })
  }

  /** Handles `!claim`, `!look`, `!confirm` and `!free` in the key's shard. */
  receive(envelope: Envelope, respond: (reply: WireReply) => void): void {
    const shard = this.#shard
    const to = envelope.to as { readonly type: string; readonly key: string }
    const key: Key = { keyType: to.type, key: to.key }
    const id = idOf(key.keyType, key.key)
    const { speculation } = shard
    const again = (isDropped: boolean): void => {
      if (isDropped || shard.speculation !== speculation) respond(shard.moved())
      else this.receive(envelope, respond)
    }
    const wait = (held: Reservation): void => {
      const { type, body } = envelope.messages[0]!
      if (mayWait((body as ClaimBody).age, held)) held.waiting.push(again)
      else respond(answered(type, AGAIN))
    }
    const run = (base: AliasRow | null): Maybe<void> => {
      if (shard.speculation !== speculation) return respond(shard.moved())
      // A turn may have reserved the key while its row was read.
      const held = shard.reserved.get(id)
      if (held) wait(held)
      else return this.#change({ envelope, key, base, again }, respond)
    }
    const failed = (error: unknown): void => {
      const known = error instanceof ClaimFailed ? error.reply : null
      if (known?.outcome === 'refused' || known?.outcome === 'moved') respond(known)
      else respond(refused(errorItem('UNAVAILABLE', 'the key could not be read; try again')))
    }
    const held = shard.reserved.get(id)
    if (held) wait(held)
    else {
      const running = shard.keys.lookup(key.keyType, key.key, run)
      if (running instanceof Promise) running.catch(failed)
    }
  }

  /** The actor said no: the claim goes, by an entry of the key. */
  #endClaim(key: Key, claim: AliasClaim): Promise<void> {
    const shard = this.#shard
    const { speculation } = shard
    return new Promise((resolve, reject) => {
      const end = (base: AliasRow | null): void => {
        if (shard.speculation !== speculation) return reject(new ClaimFailed(shard.moved()))
        const change: KeyChange = {
          ...key,
          change: 'free',
          actorId: claim.actorId,
          by: claim.messageId,
        }
        const offset = this.#join(change, base, shard.context.newUuid())
        shard.gate.wait(offset, (failure) =>
          failure ? reject(new ClaimFailed(failure)) : resolve(),
        )
      }
      const ended = shard.keys.lookup(key.keyType, key.key, end)
      if (ended instanceof Promise) ended.catch(reject)
    })
  }

  /** Sends one message of the runtime's own; resolves with its answer. */
  #internal(to: Address, message: Message): Promise<unknown> {
    const envelope: Envelope = {
      messageId: { id: this.#shard.context.newUuid().replaceAll('-', ''), kind: 'edge' },
      to,
      virtual: false,
      copy: 0,
      messages: [message],
      bodyHash: '',
      budgetMs: LIMITS.sharding.turnMs / 2,
      by: 'kontor',
      preview: false,
      crashes: 0,
      trace: '',
    }
    return new Promise((resolve, reject) => {
      this.#shard.context.send(envelope, (reply) => {
        const result = reply.outcome === 'answered' ? reply.results[0] : undefined
        if (result?.success) resolve(result.data)
        else reject(new ClaimFailed(reply))
      })
    })
  }

  #change(
    asked: {
      readonly envelope: Envelope
      readonly key: Key
      readonly base: AliasRow | null
      readonly again: (isDropped: boolean) => void
    },
    respond: (reply: WireReply) => void,
  ): Maybe<void> {
    const shard = this.#shard
    const { envelope, key, base, again } = asked
    const { type } = envelope.messages[0]!
    const { actorId, messageId } = envelope.messages[0]!.body as ClaimBody
    const clock = shard.clockMs()
    const known = base?.claims.find((c) => c.actorId === actorId && c.messageId === messageId)
    const answer = (offset: number, data: boolean): void =>
      shard.releaseRead(offset, answered(type, data), respond)
    if (type === '!confirm' || type === '!free') {
      if (!known || (type === '!confirm' && known.confirmed)) return answer(shard.gate.newest, true)
      const done: KeyChange = {
        ...key,
        change: type === '!confirm' ? 'confirm' : 'free',
        actorId,
        by: messageId,
      }
      return answer(this.#join(done, base, envelope.messageId.id), true)
    }
    const holder = holderOf(base, clock)
    if (holder && holder.actorId !== actorId) {
      if (holder.confirmed || clock - holder.clock < LIMITS.sharding.claimAgeMs) {
        return answer(shard.gate.newest, false)
      }
      const { speculation } = shard
      return this.inquire(key, holder).then((holds) => {
        if (holds && shard.speculation === speculation) answer(shard.gate.newest, false)
        else again(false)
      })
    }
    if (type === '!look' || known) return answer(shard.gate.newest, true)
    answer(this.#join({ ...key, change: 'claim', actorId }, base, messageId), true)
  }

  /** An entry of a key alone: no actor, no records; it changes the key's row. */
  #join(change: KeyChange, base: AliasRow | null, messageId: string): number {
    const shard = this.#shard
    const entry: Entry = {
      y: change.keyType,
      p: change.actorId,
      v: 0,
      n: 0,
      r: [],
      m: messageId,
      l: 0,
      a: { type: `!${change.change}`, success: true },
      k: [change],
      t: shard.context.clock.nowMs(),
      c: shard.clockMs(),
      b: 'kontor',
    }
    return shard.join({
      entry,
      bytes: encodeEntry(entry),
      activation: null,
      state: null,
      bases: new Map([[idOf(change.keyType, change.key), base]]),
    })
  }
}

function answered(type: string, data: unknown): WireReply {
  const results = [{ type, success: true, data }] as const
  return { outcome: 'answered', actorId: null, keys: [], results, position: null }
}
