// Arrivals: finds the actor that an envelope is for, by its id, by a natural key, or as the create
// of a new one, makes sure that it is loaded, and puts the work into its mailbox. The shard decides
// whether it takes envelopes at all. Source: PROTOCOL 3.6 (owner 2, 3), ARCHITECTURE 4.

import { createHash } from 'node:crypto'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError, errorItem } from '../../../protocol/errors.ts'
import { formatUuid, placeOfActor, shardOf } from '../../../protocol/ids.ts'
import type { Envelope, WireReply } from '../../../protocol/message.ts'
import { CREATE_KEY_SUFFIX } from '../../../storage/journal.ts'
import type { AliasRow, Maybe } from '../../../storage/journal.ts'
import { Activation } from './activation.ts'
import { load } from './loading.ts'
import type { LoadSource } from './loading.ts'
import type { OutputGate } from '../commit/output-gate.ts'
import { isKeyMessage } from '../keys/claims.ts'
import type { Claims } from '../keys/claims.ts'
import { refused } from '../core.ts'
import type { ShardContext } from '../core.ts'
import type { HeldEnvelope } from './stash.ts'
import { holderOf } from '../keys/keys.ts'
import type { KeyTable } from '../keys/keys.ts'
import type { Passivation } from './passivation.ts'
import type { Outbox } from '../commit/outbox.ts'
import type { TurnRunner } from './turns.ts'
import { makeWork } from './work.ts'
import type { Work } from './work.ts'

type Respond = (reply: WireReply) => void

/** What arrivals have from their shard. */
export interface ArrivalHost {
  readonly number: number
  readonly context: Pick<
    ShardContext,
    'behaviours' | 'clock' | 'edgeMarkMs' | 'log' | 'sendsOnByKey' | 'shards'
  >
  readonly gate: OutputGate
  readonly keys: KeyTable
  readonly outbox: Pick<Outbox, 'isFull'>
  readonly passivation: Passivation
  readonly loadSource: LoadSource
  /** Counts how often the speculative state was dropped: what was read before is void. */
  readonly speculation: number
  moved(): WireReply
  /** The shard's clock, milliseconds (PROTOCOL 3.0). */
  clockMs(): number
  releaseRead(offset: number, reply: WireReply, respond: Respond): void
}

/** Who takes what has arrived: turns of actors, or the claims of keys. */
export interface ArrivalParts {
  readonly turns: TurnRunner
  readonly claims: Claims
}

/** Where in the shard an envelope goes. */
interface Delivery {
  readonly id: string
  /** Natural key of an actor of the `system` shard. */
  readonly key: string | null
  /** The alias that a create with a caller's key takes; null: it is no such, or it has it. */
  readonly createKey: Creating | null
}

/** A create under way, by its key: every envelope with that key goes to the same actor. */
interface Creating {
  readonly key: string
  /** The actor: the one that the key leads to, else the first envelope's. */
  id: string
  /** The key's row when it leads nowhere; undefined when it leads somewhere, or is not read. */
  base: AliasRow | null | undefined
  isRead: boolean
  /** Envelopes with this key that have not ended. */
  open: number
  /** Envelopes that wait for the row. */
  waiting: HeldEnvelope[] | null
}

/** UUID of an actor of the `system` shard, told by type and key (PROTOCOL 3.0). */
export function systemActorId(type: string, key: string): string {
  const hash = createHash('sha256').update(`${type}\0${key}`).digest()
  hash[6] = (hash[6]! & 0x0f) | 0x80
  hash[8] = (hash[8]! & 0x3f) | 0x80
  return formatUuid(hash)
}

export class Arrivals {
  readonly #shard: ArrivalHost
  readonly #turns: TurnRunner
  readonly #claims: Claims
  readonly #creating = new Map<string, Creating>()

  constructor(shard: ArrivalHost, { turns, claims }: ArrivalParts) {
    this.#shard = shard
    this.#turns = turns
    this.#claims = claims
  }

  receive(envelope: Envelope, respond: Respond): void {
    const { to } = envelope
    if (envelope.budgetMs <= 0) {
      const text = 'the time of this request was over before it began; nothing was done'
      respond(refused(errorItem('UNAVAILABLE', text)))
    } else if ('key' in to) {
      if (isKeyMessage(envelope)) this.#claims.receive(envelope, respond)
      else if (this.#shard.context.behaviours.get(to.type)?.home === 'system') {
        this.#deliver(
          { id: systemActorId(to.type, to.key), key: to.key, createKey: null },
          envelope,
          respond,
        )
      } else this.#byKey(envelope, to, respond)
    } else if (envelope.virtual && envelope.messageId.kind === 'caller' && !envelope.preview) {
      this.#create(envelope, to, respond)
    } else this.#deliver({ id: to.id, key: null, createKey: null }, envelope, respond)
  }

  #byKey(
    envelope: Envelope,
    to: { readonly type: string; readonly key: string },
    respond: Respond,
  ): void {
    const shard = this.#shard
    const found = (row: AliasRow | null): void => {
      const holder = holderOf(row, shard.clockMs())
      if (!holder) {
        const text = `there is no ${to.type} '${to.key}'`
        shard.releaseRead(shard.gate.newest, refused(errorItem('NOT_FOUND', text)), respond)
      } else if (this.#isDelivered(envelope, holder.actorId)) {
        this.#deliver({ id: holder.actorId, key: null, createKey: null }, envelope, respond)
      } else {
        const see: WireReply = { outcome: 'see', actorId: holder.actorId }
        shard.releaseRead(shard.gate.newest, see, respond)
      }
    }
    this.#lookup(to, found, respond)
  }

  /** Whether what came by a key goes to its actor at once; a relay asks only who that is. */
  #isDelivered({ relay }: Envelope, actorId: string): boolean {
    const { number, context } = this.#shard
    if (relay || context.sendsOnByKey) return false
    return shardOf(placeOfActor(actorId), context.shards) === number
  }

  /**
   * A create with a caller's key: a repeat finds the actor that the first one made, or tried to.
   */
  #create(
    envelope: Envelope,
    to: { readonly type: string; readonly id: string },
    respond: Respond,
  ): void {
    const { id: key } = envelope.messageId
    const known = this.#creating.get(key)
    if (known !== undefined) {
      known.open++
      if (known.isRead) this.#deliverCreate(known, { ...envelope, copy: 1 }, respond)
      else if (known.waiting === null) known.waiting = [{ envelope, respond }]
      else known.waiting.push({ envelope, respond })
      return
    }
    const creating: Creating = {
      key,
      id: to.id,
      base: undefined,
      isRead: false,
      open: 1,
      waiting: null,
    }
    this.#creating.set(key, creating)
    const found = (base: AliasRow | null): void => {
      const holder = holderOf(base, this.#shard.clockMs())
      creating.isRead = true
      if (holder) creating.id = holder.actorId
      else creating.base = base
      this.#deliverCreate(creating, holder ? { ...envelope, copy: 1 } : envelope, respond)
      for (const next of creating.waiting ?? []) {
        this.#deliverCreate(creating, { ...next.envelope, copy: 1 }, next.respond)
      }
    }
    this.#lookup({ type: to.type + CREATE_KEY_SUFFIX, key }, found, (reply) => {
      if (this.#creating.get(key) === creating) this.#creating.delete(key)
      respond(reply)
      for (const next of creating.waiting ?? []) next.respond(reply)
    })
  }

  /** Each carries the key's alias, for those before it may end without an entry. */
  #deliverCreate(creating: Creating, envelope: Envelope, respond: Respond): void {
    const createKey = creating.base === undefined ? null : creating
    this.#deliver({ id: creating.id, key: null, createKey }, envelope, (reply) => {
      if (--creating.open === 0 && this.#creating.get(creating.key) === creating) {
        this.#creating.delete(creating.key)
      }
      respond(reply)
    })
  }

  #lookup(
    { type, key }: { readonly type: string; readonly key: string },
    found: (row: AliasRow | null) => void,
    failed: Respond,
  ): void {
    const shard = this.#shard
    const { speculation } = shard
    const wait = { isLate: false, callOff: (): void => undefined }
    const fail = (error: unknown): void => {
      wait.callOff()
      shard.context.log.warn({ err: error, shard: shard.number, key }, 'a key could not be read')
      failed(unavailable(error))
    }
    const looking = shard.keys.lookup(type, key, (row) => {
      if (wait.isLate) return
      wait.callOff()
      if (shard.speculation === speculation) found(row)
      else failed(shard.moved())
    })
    if (!(looking instanceof Promise)) return
    wait.callOff = this.#limit(() => {
      wait.isLate = true
      fail(late())
    })
    looking.catch((error: unknown) => (wait.isLate ? undefined : fail(error)))
  }

  #deliver(to: Delivery, envelope: Envelope, respond: Respond): void {
    const { passivation, context } = this.#shard
    const { id, key, createKey } = to
    let activation = passivation.activations.get(id)
    if (!activation) {
      const behaviour = context.behaviours.get(envelope.to.type)!
      activation = new Activation(behaviour, id, key, context.edgeMarkMs)
      passivation.add(activation)
      if (envelope.fresh && envelope.copy === 0) activation.loaded = true
      else {
        const failure = this.#load(activation)
        if (failure) return respond(failure)
      }
    } else if (activation.behaviour.type !== envelope.to.type) {
      const text = `${id} is not a ${envelope.to.type}`
      respond(refused(errorItem('NOT_FOUND', text)))
      return
    }
    if (activation.mailbox.length + activation.questions.size >= LIMITS.sharding.actorInFlightMax) {
      const text = `this actor has ${LIMITS.sharding.actorInFlightMax} requests waiting; try again`
      respond(refused(errorItem('TOO_BUSY', text)))
      return
    }
    // What comes from other shards' outboxes goes on, else two of them could wait for each other.
    if (!envelope.relay && this.#shard.outbox.isFull) {
      const text = 'too many messages wait for actors of other shards; try again'
      respond(refused(errorItem('TOO_BUSY', text)))
      return
    }
    const work = makeWork(envelope, respond)
    work.createKey = createKey as Work['createKey']
    this.#turns.take(activation, work)
    passivation.touched(activation)
  }

  /** Begins to load; returns the answer to the caller when that has failed already. */
  #load(activation: Activation): WireReply | null {
    const shard = this.#shard
    const { speculation, passivation, context } = shard
    const turns = this.#turns
    const failed = (error: unknown): WireReply => {
      context.log.error({ err: error, actor: activation.id }, 'an actor could not be loaded')
      passivation.forget(activation)
      return unavailable(error)
    }
    let loading: Maybe<void>
    try {
      loading = load(activation, shard.loadSource)
    } catch (error) {
      return failed(error)
    }
    if (loading instanceof Promise) {
      let isOver = false
      const end = (use: () => void): void => {
        callOff()
        if (!isOver && shard.speculation === speculation) use()
        isOver = true
      }
      const fail = (error: unknown): void => {
        if (isOver) return
        const failure = failed(error)
        end(() => turns.abandon(activation, failure))
      }
      const callOff = this.#limit(() => fail(late()))
      loading.then(() => end(() => turns.pump(activation)), fail)
    }
    return null
  }

  #limit(end: () => void): () => void {
    return this.#shard.context.clock.after(LIMITS.sharding.turnMs, end)
  }
}

function late(): Error {
  return new Error(`the journal has not answered for ${LIMITS.sharding.turnMs / 1_000} s`)
}

function unavailable(error: unknown): WireReply {
  if (error instanceof RequestError) return refused(error.errors[0]!)
  const text = 'the journal could not be read; nothing was done, try again'
  return refused(errorItem('UNAVAILABLE', text))
}
