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
  /** Returns the present owner of a shard, or null when none is known to be alive. */
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
    if ((this.#inFlight.get(shard) ?? 0) >= LIMITS.routing.shardInFlightMax) {
      const text = `${LIMITS.routing.shardInFlightMax} requests are waiting for this shard; try again`
      return Promise.resolve({ outcome: 'refused', error: errorItem('TOO_BUSY', text) })
    }
    return new Promise((resolve) => this.#begin(envelope, shard, resolve))
  }

  /** An envelope of the runtime's own making: relays, claims. Not bounded by callers' bounds. */
  send(envelope: Envelope, respond: (reply: Reply) => void): void {
    this.#begin(envelope, shardOfAddress(this.#options, envelope.to), respond)
  }

  #begin(envelope: Envelope, shard: number, done: (reply: Reply) => void): void {
    const pending: PendingRequest = {
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
    this.#pending.add(pending)
    this.#inFlight.set(shard, (this.#inFlight.get(shard) ?? 0) + 1)
    this.#copy(pending)
    this.#tick()
  }

  #copy(pending: PendingRequest): void {
    const { clock, route, send, deliversOnce } = this.#options
    const nowMs = clock.monotonicMs()
    const to = route(pending.shard)
    if (to === null) {
      pending.againAtMs = nowMs + MOVED_WAIT_MS
      return
    }
    const number = pending.copies.length
    let { envelope } = pending
    if (number > 0 || (envelope.fresh && !deliversOnce(to.incarnation))) {
      const { fresh: _, ...rest } = envelope
      envelope = { ...rest, copy: number, budgetMs: Math.max(0, pending.deadlineMs - nowMs) }
    }
    pending.lastSentMs = nowMs
    pending.againAtMs = Infinity
    pending.open++
    const copy: Copy = { to: to.incarnation, sentMs: nowMs, isOpen: true }
    pending.copies.push(copy)
    send(to, pending.shard, envelope, (reply) => this.#answered(pending, copy, reply))
  }

  #answered(pending: PendingRequest, copy: Copy, reply: WireReply): void {
    if (pending.ended || !copy.isOpen) return
    copy.isOpen = false
    pending.open--
    if (reply.outcome !== 'unsent' || !reply.away) pending.awaySinceMs = Infinity
    const nowMs = this.#options.clock.monotonicMs()
    switch (reply.outcome) {
      case 'answered':
      case 'unknown':
        this.#silence.answered(nowMs - copy.sentMs)
        if (isFinal(reply)) this.#end(pending, reply)
        else this.#refused(pending, copy, reply)
        return
      case 'moved':
        if (reply.taken) pending.lostBefore = pending.copies.length
        this.#moved(pending, copy, reply)
        return
      case 'unsent':
        this.#unsent(pending, reply.away === true)
        return
      case 'see':
        if (pending.envelope.relay) this.#end(pending, leadsTo(reply.actorId))
        else this.#seeOther(pending, reply.actorId)
        return
      case 'refused':
        this.#refused(pending, copy, reply)
    }
  }

  /**
   * "Nothing was done" is said, of a request or a part of it, only when no other copy can have run,
   * or can still run (PROTOCOL 3.6 Edge 3). Who refuses for want of room or of a store has not
   * looked for what a copy of before may have done: it is asked again.
   */
  #refused(pending: PendingRequest, copy: Copy, reply: Reply): void {
    pending.kept = together(pending.kept, reply)
    if (isFinal(pending.kept)) return this.#end(pending, pending.kept)
    const isLater = pending.copies.indexOf(copy) >= pending.lostBefore
    if (isLater && hasLooked(reply)) pending.lostBefore = 0
    if (pending.open > 0) return
    if (pending.lostBefore === 0) this.#end(pending, pending.kept)
    else if (isLater) pending.againAtMs = this.#options.clock.monotonicMs() + LIMITS.routing.retryMs
    else this.#copy(pending)
  }

  /** Without the wire nobody else can be asked: its callers shall not wait for long. */
  #unsent(pending: PendingRequest, away: boolean): void {
    const nowMs = this.#options.clock.monotonicMs()
    pending.againAtMs = nowMs + LIMITS.routing.retryMs
    if (!away) return
    pending.awaySinceMs = Math.min(pending.awaySinceMs, nowMs)
    if (nowMs - pending.awaySinceMs < LIMITS.routing.wireAwayMs) return
    if (pending.open === 0 && pending.lostBefore === 0) this.#refuse(pending)
  }

  /** To another owner at once, to the same one a bit later. */
  #moved(pending: PendingRequest, copy: Copy, { shard, owner }: Moved): void {
    // Of the shard that the copy went to: the request may have gone on to another one since.
    if (owner) this.#options.learn(shard, owner)
    const next = this.#options.route(pending.shard)
    if (next !== null && next.incarnation !== copy.to && pending.open === 0) this.#copy(pending)
    else pending.againAtMs = this.#options.clock.monotonicMs() + MOVED_WAIT_MS
  }

  /**
   * Where the key leads to: the request stays with that actor. No copy of before has done anything,
   * and none that comes from now on asks for the key again.
   */
  #seeOther(pending: PendingRequest, actorId: string): void {
    if ('id' in pending.envelope.to) {
      // A copy of before it was known: it may be what the last word has waited for.
      if (pending.open > 0 || pending.againAtMs !== Infinity) return
      if (pending.kept !== null && pending.lostBefore === 0) this.#end(pending, pending.kept)
      else this.#copy(pending)
      return
    }
    this.#leave(pending.shard)
    pending.envelope = { ...pending.envelope, to: { type: pending.envelope.to.type, id: actorId } }
    pending.shard = shardOf(placeOfActor(actorId), this.#options.shards)
    this.#inFlight.set(pending.shard, (this.#inFlight.get(pending.shard) ?? 0) + 1)
    this.#copy(pending)
  }

  /**
   * That incarnation is dead for certain: its copies will not be answered, and it may have been
   * one of them that killed it, so they count (PROTOCOL 3.11).
   */
  died(incarnation: string): void {
    for (const pending of this.#pending) {
      let lost = 0
      for (const copy of pending.copies) {
        if (!copy.isOpen || copy.to !== incarnation) continue
        copy.isOpen = false
        lost++
      }
      if (lost === 0) continue
      pending.open -= lost
      pending.envelope = { ...pending.envelope, crashes: pending.envelope.crashes + 1 }
      pending.lostBefore = pending.copies.length
      if (pending.open === 0) this.#copy(pending)
    }
  }

  /** The wire may have lost what was on its way: everything that is open goes once more. */
  resend(): void {
    for (const pending of this.#pending) {
      if (pending.copies.some((copy) => copy.isOpen && !this.#options.deliversOnce(copy.to))) {
        this.#copy(pending)
      }
    }
  }

  /** This incarnation of the member is over: what it holds for callers can't be told any more. */
  abandon(): void {
    for (const pending of this.#pending) {
      if (pending.open === 0 && pending.lostBefore === 0) this.#refuse(pending)
      else this.#unknown(pending)
    }
  }

  #leave(shard: number): void {
    const left = this.#inFlight.get(shard)! - 1
    if (left === 0) this.#inFlight.delete(shard)
    else this.#inFlight.set(shard, left)
  }

  #end(pending: PendingRequest, reply: Reply): void {
    pending.ended = true
    this.#pending.delete(pending)
    this.#leave(pending.shard)
    pending.done(reply)
  }

  /** One timer for all requests, running only while there are some. */
  #tick(): void {
    if (this.#ticking || this.#pending.size === 0) return
    this.#ticking = true
    this.#options.clock.after(TICK_MS, () => {
      this.#ticking = false
      const nowMs = this.#options.clock.monotonicMs()
      for (const pending of this.#pending) {
        if (nowMs >= pending.deadlineMs) this.#expired(pending)
        else if (nowMs >= pending.againAtMs) this.#copy(pending)
        else if (pending.open > 0) {
          const silentMs = nowMs - pending.lastSentMs
          if (silentMs >= this.#silence.againMs(pending.copies.length)) this.#copy(pending)
        }
      }
      this.#tick()
    })
  }

  /** Budget over: with a copy open nobody knows; else nothing was done. */
  #expired(pending: PendingRequest): void {
    if (pending.open > 0 || pending.lostBefore > 0) this.#unknown(pending)
    else this.#refuse(pending)
  }

  #unknown(pending: PendingRequest): void {
    const text = 'no answer in time: this may have taken effect; repeat it with the same key'
    const details = { messageId: pending.envelope.messageId.id }
    this.#end(pending, { outcome: 'unknown', error: errorItem('OUTCOME_UNKNOWN', text, details) })
  }

  /** No copy has done, or can do, more than what is kept says. */
  #refuse(pending: PendingRequest): void {
    const { kept } = pending
    if (kept !== null && (kept.outcome === 'answered' || isRetryable(kept.error.code))) {
      this.#end(pending, kept)
      return
    }
    const isWireDown =
      pending.awaySinceMs !== Infinity || this.#options.isCutOff?.(pending.shard) === true
    const text = isWireDown
      ? 'the wire to the member that serves this shard is down; nothing was done, try again'
      : 'no member serves this shard at the moment; nothing was done, try again'
    this.#end(pending, { outcome: 'refused', error: errorItem('UNAVAILABLE', text) })
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
