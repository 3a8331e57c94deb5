// The edge: owns a caller's request from its first byte to its reply. It sends a copy to the
// shard's owner, resends when the owner has moved, died or is silent, and says "nothing was done"
// only when no copy can still run. Source: PROTOCOL 3.6 "Edge", 3.11.

import { LIMITS } from '../../config/limits.ts'
import { ReleasingSet } from '../../protocol/releasing-map.ts'
import type { Slotted } from '../../protocol/releasing-map.ts'
import { errorItem, isRetryable } from '../../protocol/errors.ts'
import { placeOfActor, shardOf } from '../../protocol/ids.ts'
import type { Envelope, MessageResult, Reply, WireReply } from '../../protocol/message.ts'
import type { ActorRequest } from '../actor-system.ts'
import type { Clock } from '../clock.ts'
import { place, shardOfAddress } from './address.ts'
import type { PlacingOptions } from './address.ts'
import type { Route } from './routes.ts'
import { Silence } from './silence.ts'

export interface EdgeOptions extends PlacingOptions {
  readonly clock: Clock
  /** The present owner of a shard; null: none that we know lives. */
  readonly route: (shard: number) => Route | null
  /** `route` is null because the owner is there and its wire is down; without it never. */
  readonly isCutOff?: (shard: number) => boolean
  /** Sends one copy. The wire delivers it once at most if `deliversOnce` says so. */
  readonly send: (
    to: Route,
    shard: number,
    envelope: Envelope,
    respond: (reply: WireReply) => void,
  ) => void
  /** A copy to this incarnation is a call inside the process: delivered once, never lost. */
  readonly deliversOnce: (incarnation: string) => boolean
  /** An answer has named an owner. */
  readonly learn: (shard: number, route: Route) => void
}

/** One copy that was sent and not answered. */
interface Copy {
  readonly to: string
  readonly sentMs: number
  /** Set while it can't be said that this copy has not run. */
  isOpen: boolean
}

interface PendingRequest extends Slotted {
  envelope: Envelope
  shard: number
  readonly deadlineMs: number
  readonly done: (reply: Reply) => void
  readonly copies: Copy[]
  /** Copies sent and not answered. */
  open: number
  lastSentMs: number
  /**
   * What copies have said that isn't the last word: a refusal, or an answer of which a part may
   * still be done. Told once no other copy can run.
   */
  kept: Reply | null
  /**
   * A copy before this one was begun by an owner that died or stepped down: it may be in the log.
   * Only an owner that was asked after that, and so has read the log to its end, can refuse.
   */
  lostBefore: number
  /** When the wire itself was found to be away, and not been there since; else Infinity. */
  awaySinceMs: number
  ended: boolean
  /** A copy is to be sent again at this time. */
  againAtMs: number
}

const MOVED_WAIT_MS = 50
const TICK_MS = 50

type Moved = Extract<WireReply, { outcome: 'moved' }>

export class Edge {
  readonly #options: EdgeOptions
  readonly #pending = new ReleasingSet<PendingRequest>()
  readonly #inFlight = new Map<number, number>()
  readonly #silence = new Silence()
  #ticking = false

  constructor(options: EdgeOptions) {
    this.#options = options
  }

  get pending(): number {
    return this.#pending.size
  }

  /** What is pending by shard, as its bound counts it; shards without any are left out. */
  get inFlight(): ReadonlyMap<number, number> {
    return this.#inFlight
  }

  ask(request: ActorRequest): Promise<Reply> {
    const placed = place(this.#options, request)
    if ('outcome' in placed) return Promise.resolve(placed)
    const { envelope, shard } = placed
    if ((this.#inFlight.get(shard) ?? 0) >= LIMITS.shardInFlightMax) {
      const text = `${LIMITS.shardInFlightMax} requests are waiting for this shard; try again`
      return Promise.resolve({ outcome: 'refused', error: errorItem('TOO_BUSY', text) })
    }
    return new Promise((resolve) => this.#begin(envelope, shard, resolve))
  }

  /** An envelope of the runtime's own making: relays, claims. Not bounded by callers' bounds. */
  send(envelope: Envelope, respond: (reply: Reply) => void): void {
    this.#begin(envelope, shardOfAddress(this.#options, envelope.to), respond)
  }

  #begin(envelope: Envelope, shard: number, done: (reply: Reply) => void): void {
    const asked: PendingRequest = {
      envelope,
      shard,
      deadlineMs: this.#options.clock.monotonicMs() + envelope.budgetMs,
      done,
      copies: [],
      open: 0,
      lastSentMs: 0,
      kept: null,
      lostBefore: 0,
      awaySinceMs: Infinity,
      ended: false,
      againAtMs: Infinity,
      slot: -1,
    }
    this.#pending.add(asked)
    this.#inFlight.set(shard, (this.#inFlight.get(shard) ?? 0) + 1)
    this.#copy(asked)
    this.#tick()
  }

  #copy(asked: PendingRequest): void {
    const { clock, route, send, deliversOnce } = this.#options
    const nowMs = clock.monotonicMs()
    const to = route(asked.shard)
    if (to === null) {
      asked.againAtMs = nowMs + MOVED_WAIT_MS
      return
    }
    const number = asked.copies.length
    let { envelope } = asked
    if (number > 0 || (envelope.fresh && !deliversOnce(to.incarnation))) {
      const { fresh: _, ...rest } = envelope
      envelope = { ...rest, copy: number, budgetMs: Math.max(0, asked.deadlineMs - nowMs) }
    }
    asked.lastSentMs = nowMs
    asked.againAtMs = Infinity
    asked.open++
    const copy: Copy = { to: to.incarnation, sentMs: nowMs, isOpen: true }
    asked.copies.push(copy)
    send(to, asked.shard, envelope, (reply) => this.#answered(asked, copy, reply))
  }

  #answered(asked: PendingRequest, copy: Copy, reply: WireReply): void {
    if (asked.ended || !copy.isOpen) return
    copy.isOpen = false
    asked.open--
    if (reply.outcome !== 'unsent' || !reply.away) asked.awaySinceMs = Infinity
    const nowMs = this.#options.clock.monotonicMs()
    switch (reply.outcome) {
      case 'answered':
      case 'unknown':
        this.#silence.answered(nowMs - copy.sentMs)
        if (isFinal(reply)) this.#end(asked, reply)
        else this.#refused(asked, copy, reply)
        return
      case 'moved':
        if (reply.taken) asked.lostBefore = asked.copies.length
        this.#moved(asked, copy, reply)
        return
      case 'unsent':
        this.#unsent(asked, reply.away === true)
        return
      case 'see':
        if (asked.envelope.relay) this.#end(asked, leadsTo(reply.actorId))
        else this.#seeOther(asked, reply.actorId)
        return
      case 'refused':
        this.#refused(asked, copy, reply)
    }
  }

  /**
   * "Nothing was done" is said, of a request or a part of it, only when no other copy can have run,
   * or can still run (PROTOCOL 3.6 Edge 3). Who refuses for want of room or of a store has not
   * looked for what a copy of before may have done: it is asked again.
   */
  #refused(asked: PendingRequest, copy: Copy, reply: Reply): void {
    asked.kept = together(asked.kept, reply)
    if (isFinal(asked.kept)) return this.#end(asked, asked.kept)
    const isLater = asked.copies.indexOf(copy) >= asked.lostBefore
    if (isLater && hasLooked(reply)) asked.lostBefore = 0
    if (asked.open > 0) return
    if (asked.lostBefore === 0) this.#end(asked, asked.kept)
    else if (isLater) asked.againAtMs = this.#options.clock.monotonicMs() + LIMITS.wireRetryMs
    else this.#copy(asked)
  }

  /** Without the wire nobody else can be asked: its callers shall not wait for long. */
  #unsent(asked: PendingRequest, away: boolean): void {
    const nowMs = this.#options.clock.monotonicMs()
    asked.againAtMs = nowMs + LIMITS.wireRetryMs
    if (!away) return
    asked.awaySinceMs = Math.min(asked.awaySinceMs, nowMs)
    if (nowMs - asked.awaySinceMs < LIMITS.wireAwayMs) return
    if (asked.open === 0 && asked.lostBefore === 0) this.#refuse(asked)
  }

  /** To another owner at once, to the same one a bit later. */
  #moved(asked: PendingRequest, copy: Copy, { shard, owner }: Moved): void {
    // Of the shard that the copy went to: the request may have gone on to another one since.
    if (owner) this.#options.learn(shard, owner)
    const next = this.#options.route(asked.shard)
    if (next !== null && next.incarnation !== copy.to && asked.open === 0) this.#copy(asked)
    else asked.againAtMs = this.#options.clock.monotonicMs() + MOVED_WAIT_MS
  }

  /**
   * Where the key leads to: the request stays with that actor. No copy of before has done anything,
   * and none that comes from now on asks for the key again.
   */
  #seeOther(asked: PendingRequest, actorId: string): void {
    if ('id' in asked.envelope.to) {
      // A copy of before it was known: it may be what the last word has waited for.
      if (asked.open > 0 || asked.againAtMs !== Infinity) return
      if (asked.kept !== null && asked.lostBefore === 0) this.#end(asked, asked.kept)
      else this.#copy(asked)
      return
    }
    this.#leave(asked.shard)
    asked.envelope = { ...asked.envelope, to: { type: asked.envelope.to.type, id: actorId } }
    asked.shard = shardOf(placeOfActor(actorId), this.#options.shards)
    this.#inFlight.set(asked.shard, (this.#inFlight.get(asked.shard) ?? 0) + 1)
    this.#copy(asked)
  }

  /**
   * That incarnation is dead for certain: its copies will not be answered, and it may have been
   * one of them that killed it, so they count (PROTOCOL 3.11).
   */
  died(incarnation: string): void {
    for (const asked of this.#pending) {
      let lost = 0
      for (const copy of asked.copies) {
        if (!copy.isOpen || copy.to !== incarnation) continue
        copy.isOpen = false
        lost++
      }
      if (lost === 0) continue
      asked.open -= lost
      asked.envelope = { ...asked.envelope, crashes: asked.envelope.crashes + 1 }
      asked.lostBefore = asked.copies.length
      if (asked.open === 0) this.#copy(asked)
    }
  }

  /** The wire may have lost what was on its way: everything that is open goes once more. */
  resend(): void {
    for (const asked of this.#pending) {
      if (asked.copies.some((copy) => copy.isOpen && !this.#options.deliversOnce(copy.to))) {
        this.#copy(asked)
      }
    }
  }

  /** This incarnation of the member is over: what it holds for callers can't be told any more. */
  abandon(): void {
    for (const asked of this.#pending) {
      if (asked.open === 0 && asked.lostBefore === 0) this.#refuse(asked)
      else this.#unknown(asked)
    }
  }

  #leave(shard: number): void {
    const left = this.#inFlight.get(shard)! - 1
    if (left === 0) this.#inFlight.delete(shard)
    else this.#inFlight.set(shard, left)
  }

  #end(asked: PendingRequest, reply: Reply): void {
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
        else if (asked.open > 0) {
          const silentMs = nowMs - asked.lastSentMs
          if (silentMs >= this.#silence.againMs(asked.copies.length)) this.#copy(asked)
        }
      }
      this.#tick()
    })
  }

  /** Budget over: with a copy open nobody knows; else nothing was done. */
  #expired(asked: PendingRequest): void {
    if (asked.open > 0 || asked.lostBefore > 0) this.#unknown(asked)
    else this.#refuse(asked)
  }

  #unknown(asked: PendingRequest): void {
    const text = 'no answer in time: this may have taken effect; repeat it with the same key'
    const details = { messageId: asked.envelope.messageId.id }
    this.#end(asked, { outcome: 'unknown', error: errorItem('OUTCOME_UNKNOWN', text, details) })
  }

  /** No copy has done, or can do, more than what is kept says. */
  #refuse(asked: PendingRequest): void {
    const { kept } = asked
    if (kept !== null && (kept.outcome === 'answered' || isRetryable(kept.error.code))) {
      this.#end(asked, kept)
      return
    }
    const isWireDown =
      asked.awaySinceMs !== Infinity || this.#options.isCutOff?.(asked.shard) === true
    const text = isWireDown
      ? 'the wire to the member that serves this shard is down; nothing was done, try again'
      : 'no member serves this shard at the moment; nothing was done, try again'
    this.#end(asked, { outcome: 'refused', error: errorItem('UNAVAILABLE', text) })
  }
}

/** What a relay by a key is told: nothing was done, and this is its actor (PROTOCOL 3.6 Outbox). */
function leadsTo(actorId: string): Reply {
  return { outcome: 'answered', actorId, keys: [], results: [], position: null }
}

type Answered = Extract<Reply, { outcome: 'answered' }>

/** They leave no entry, as what may be tried again leaves none: another copy may do better. */
const UNRECORDED: ReadonlySet<string> = new Set(['TOO_LARGE', 'QUARANTINED', 'INTERNAL_ERROR'])

/** Whether nothing was recorded for this message by the copy that says so. */
function isUndone(result: MessageResult): boolean {
  if (result.success) return false
  const { code } = result.errors[0]!
  return isRetryable(code) || UNRECORDED.has(code)
}

/** No other copy can say more: all of it is recorded, or nobody knows. */
function isFinal(reply: Reply): boolean {
  return (
    reply.outcome === 'unknown' || (reply.outcome === 'answered' && !reply.results.some(isUndone))
  )
}

/** What two copies say together: what one has recorded the other can't take back. */
function together(kept: Reply | null, reply: Reply): Reply {
  if (kept?.outcome !== 'answered') return reply
  return reply.outcome === 'answered' ? merged(kept, reply) : kept
}

/** Both are of one actor: each message as the copy has it that recorded it. */
function merged(before: Answered, later: Answered): Answered {
  const isBehind = (later.position?.offset ?? 0) >= (before.position?.offset ?? 0)
  const [newer, older] = isBehind ? [later, before] : [before, later]
  const results = newer.results.map((result, i) => (isUndone(result) ? older.results[i]! : result))
  return { ...newer, results }
}

/**
 * Whether an owner has looked for each of the messages: what stands behind one that may be tried
 * again was refused with it, unseen.
 */
function hasLooked(reply: Reply): boolean {
  if (reply.outcome !== 'answered') return !isRetryable(reply.error.code)
  const { results } = reply
  return !results
    .slice(0, -1)
    .some((result) => !result.success && isRetryable(result.errors[0]!.code))
}
