// The edge: owns a caller's request from its first byte to its reply. It names the message, finds
// the shard, sends a copy to the owner, resends when the owner has moved or is silent, and says
// "nothing was done" only when no copy can still run. It stands between the stations and the wire.
// Source: PROTOCOL 3.6 "Edge", CONTRACT 0 "Idempotency".

import { createHash } from 'node:crypto'
import { LIMITS } from '../config/limits.ts'
import { errorItem, isRetryable } from '../protocol/errors.ts'
import { SYSTEM_SHARD, placeOfActor, placeOfKey, shardOf, toUuid } from '../protocol/ids.ts'
import type { Behaviour } from '../protocol/behaviour.ts'
import type { Address, Envelope, MessageId, Reply, WireReply } from '../protocol/message.ts'
import type { ActorRequest } from './actor-system.ts'
import type { Clock } from './clock.ts'

export interface EdgeOptions {
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly shards: number
  readonly clock: Clock
  readonly newUuid: (tail?: number) => string
  /** The wire delivers each copy exactly once: a call inside the process. */
  readonly deliversOnce: boolean
  /** Sends one copy to the present owner of the shard; false: it has none that we know. */
  readonly send: (shard: number, envelope: Envelope, respond: (reply: WireReply) => void) => boolean
}

interface Asked {
  envelope: Envelope
  shard: number
  readonly deadlineMs: number
  readonly done: (reply: Reply) => void
  /** Copies sent and not answered. */
  open: number
  copies: number
  lastSentMs: number
  /** A refusal of one copy, kept while others are open. */
  refusal: WireReply | null
  ended: boolean
  /** A copy is to be sent again at this time. */
  againAtMs: number
}

const FRESH = { fresh: true } as const
const MOVED_WAIT_MS = 50
const SILENCE_MS = 1_000
const TICK_MS = 50

export class Edge {
  readonly #options: EdgeOptions
  readonly #pending = new Set<Asked>()
  readonly #inFlight = new Map<number, number>()
  #ticking = false

  constructor(options: EdgeOptions) {
    this.#options = options
  }

  get pending(): number {
    return this.#pending.size
  }

  ask(request: ActorRequest): Promise<Reply> {
    const placed = this.#place(request)
    if ('outcome' in placed) return Promise.resolve(placed)
    const { shard } = placed
    if ((this.#inFlight.get(shard) ?? 0) >= LIMITS.shardInFlightMax) {
      const text = `${LIMITS.shardInFlightMax} requests are waiting for this shard; try again`
      return Promise.resolve({ outcome: 'refused', error: errorItem('TOO_BUSY', text) })
    }
    return new Promise((resolve) => this.#begin(placed.envelope, shard, resolve))
  }

  /** An envelope of the runtime's own making: relays, claims. Not bounded by callers' bounds. */
  send(envelope: Envelope, respond: (reply: Reply) => void): void {
    const { to } = envelope
    const behaviour = this.#options.behaviours.get(to.type)
    this.#begin(envelope, this.#shardOf(to, behaviour), respond)
  }

  #shardOf(to: Address, behaviour: Behaviour | undefined): number {
    if (behaviour?.home === 'system') return SYSTEM_SHARD
    const place = 'id' in to ? placeOfActor(to.id) : placeOfKey(to.type, to.key)
    return shardOf(place, this.#options.shards)
  }

  #place(request: ActorRequest): { envelope: Envelope; shard: number } | Reply {
    const { type, id, messages } = request
    const behaviour = this.#options.behaviours.get(type)
    if (!behaviour) {
      return { outcome: 'refused', error: errorItem('NOT_FOUND', `there is no actor type ${type}`) }
    }
    const virtual = behaviour.home === 'shards' && id === 'new'
    const messageId = this.#messageId(request, virtual ? chosen(behaviour, request) : null)
    let to: Address
    if (behaviour.home === 'system') to = { type, key: id }
    else if (virtual) {
      if (!behaviour.creates.includes(messages[0]!.type)) {
        const text = `'new' is nobody yet: the first message must be ${behaviour.creates.join(' or ')}`
        return { outcome: 'refused', error: errorItem('NOT_FOUND', text) }
      }
      to = { type, id: this.#options.newUuid(this.#tail(behaviour, request, messageId)) }
    } else {
      const uuid = toUuid(id)
      to = uuid === null ? { type, key: id } : { type, id: uuid }
    }
    const envelope: Envelope = {
      messageId,
      to,
      virtual,
      copy: 0,
      messages,
      bodyHash: request.idempotencyKey === null ? '' : request.bodyHash,
      budgetMs: request.budgetMs,
      by: request.by,
      preview: request.preview,
      crashes: 0,
      trace: request.trace,
      ...(virtual && this.#options.deliversOnce ? FRESH : null),
    }
    return { envelope, shard: this.#shardOf(to, behaviour) }
  }

  /** The scope of a key: caller, type, and for `new` the number in the body (CONTRACT 0). */
  #messageId(request: ActorRequest, created: string | null): MessageId {
    if (request.idempotencyKey === null || request.preview) {
      return { id: this.#options.newUuid().replaceAll('-', ''), kind: 'edge' }
    }
    const scope = [request.by, request.type, created ?? '', request.idempotencyKey]
    const id = createHash('sha256').update(scope.join('\0')).digest('hex').slice(0, 32)
    return { id, kind: 'caller' }
  }

  /** Last two bytes of a new actor's UUID: where its number, else its create's key lies. */
  #tail(behaviour: Behaviour, request: ActorRequest, messageId: MessageId): number | undefined {
    const key = behaviour.chosenKey(request.messages[0]!)
    if (key) return placeOfKey(key.keyType, key.key)
    if (messageId.kind === 'edge') return undefined
    return placeOfKey(`${behaviour.type}!key`, messageId.id)
  }

  #begin(envelope: Envelope, shard: number, done: (reply: Reply) => void): void {
    const asked: Asked = {
      envelope,
      shard,
      deadlineMs: this.#options.clock.monotonicMs() + envelope.budgetMs,
      done,
      open: 0,
      copies: 0,
      lastSentMs: 0,
      refusal: null,
      ended: false,
      againAtMs: Infinity,
    }
    this.#pending.add(asked)
    this.#inFlight.set(shard, (this.#inFlight.get(shard) ?? 0) + 1)
    this.#copy(asked)
    this.#tick()
  }

  #copy(asked: Asked): void {
    const { clock } = this.#options
    const nowMs = clock.monotonicMs()
    const envelope =
      asked.copies === 0
        ? asked.envelope
        : {
            ...asked.envelope,
            copy: asked.copies,
            budgetMs: Math.max(0, asked.deadlineMs - nowMs),
          }
    asked.lastSentMs = nowMs
    asked.againAtMs = Infinity
    asked.open++
    asked.copies++
    const sent = this.#options.send(asked.shard, envelope, (reply) => this.#answered(asked, reply))
    if (sent) return
    asked.open--
    asked.againAtMs = nowMs + MOVED_WAIT_MS
  }

  #answered(asked: Asked, reply: WireReply): void {
    if (asked.ended) return
    asked.open--
    switch (reply.outcome) {
      case 'answered':
      case 'unknown':
        this.#end(asked, reply)
        return
      case 'moved':
      case 'unsent':
        asked.againAtMs = this.#options.clock.monotonicMs() + MOVED_WAIT_MS
        return
      case 'see':
        this.#seeOther(asked, reply.actorId)
        return
      case 'refused':
        // Said only when no other copy can still run (PROTOCOL 3.6 Edge 3).
        asked.refusal = reply
        if (asked.open === 0) this.#end(asked, reply)
    }
  }

  /** The key leads to an actor of another shard: the request stays with that actor. */
  #seeOther(asked: Asked, actorId: string): void {
    this.#leave(asked.shard)
    asked.envelope = { ...asked.envelope, to: { type: asked.envelope.to.type, id: actorId } }
    asked.shard = shardOf(placeOfActor(actorId), this.#options.shards)
    this.#inFlight.set(asked.shard, (this.#inFlight.get(asked.shard) ?? 0) + 1)
    this.#copy(asked)
  }

  #leave(shard: number): void {
    const left = this.#inFlight.get(shard)! - 1
    if (left === 0) this.#inFlight.delete(shard)
    else this.#inFlight.set(shard, left)
  }

  #end(asked: Asked, reply: Reply): void {
    asked.ended = true
    this.#pending.delete(asked)
    this.#leave(asked.shard)
    asked.done(reply)
  }

  /** One timer for all requests, running only while there are some. */
  #tick(): void {
    if (this.#ticking || this.#pending.size === 0) return
    this.#ticking = true
    this.#options.clock.after(TICK_MS, () => {
      this.#ticking = false
      const nowMs = this.#options.clock.monotonicMs()
      for (const asked of this.#pending) {
        if (nowMs >= asked.deadlineMs) this.#expired(asked)
        else if (nowMs >= asked.againAtMs) this.#copy(asked)
        else if (asked.open > 0 && nowMs - asked.lastSentMs >= SILENCE_MS * 2 ** asked.copies) {
          this.#copy(asked)
        }
      }
      this.#tick()
    })
  }

  /** Budget over: with a copy open nobody knows; else nothing was done. */
  #expired(asked: Asked): void {
    if (asked.open > 0) {
      const text = 'no answer in time: this may have taken effect; repeat it with the same key'
      const details = { messageId: asked.envelope.messageId.id }
      this.#end(asked, { outcome: 'unknown', error: errorItem('OUTCOME_UNKNOWN', text, details) })
      return
    }
    const { refusal } = asked
    if (refusal?.outcome === 'refused' && isRetryable(refusal.error.code)) {
      this.#end(asked, refusal)
      return
    }
    const text = 'no member serves this shard at the moment; nothing was done, try again'
    this.#end(asked, { outcome: 'refused', error: errorItem('UNAVAILABLE', text) })
  }
}

function chosen(behaviour: Behaviour, request: ActorRequest): string {
  return behaviour.chosenKey(request.messages[0]!)?.key ?? 'new'
}
