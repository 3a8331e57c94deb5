// Work: one envelope on its way through an activation, and what its turns have gathered so far.

import type { ActorRecord, RuntimeCall, Decision, NaturalKey } from '../../../protocol/behaviour.ts'
import type { Envelope, MessageResult, WireReply } from '../../../protocol/message.ts'
import type { AliasRow, Maybe } from '../../../storage/journal.ts'

/** What a `?preview` changes, seen by the later messages of its own request and by nobody else. */
export interface PreviewState {
  state: unknown
  version: number
  timeMs: number
}

/** A natural key that this turn has taken on its way; what becomes of it the decision says. */
export interface TakenKey extends NaturalKey {
  /** In another shard: it was claimed there (ARCHITECTURE 4 "Apart"). */
  readonly isApart: boolean
}

export interface Work {
  readonly envelope: Envelope
  readonly respond: (reply: WireReply) => void
  /** Message of the envelope at which the work stands. */
  i: number
  readonly results: MessageResult[]
  /** Newest entry that the results were computed on. */
  gate: number
  /** Newest entry that holds one of the results; 0: nothing was committed for it. */
  position: number
  keys: readonly string[]
  preview: PreviewState | null
  /** Nothing of it was done and it may be tried again: the answer to all of it. */
  refusal: WireReply | null
  /**
   * It was dropped with the speculative state that it ran on, or its time is over: it begins again,
   * or never does.
   */
  isOver: boolean
  /** Calls off the end of its time, which counts from when it first had to wait. */
  endDeadline: (() => void) | null
  /** It waits for whether the message took effect before: nobody may say that nothing was done. */
  isLooking: boolean
  /** Alias of the key of a create that commits with the first message. */
  createKey: { readonly key: string; readonly base: AliasRow | null } | null

  /** See `ageOf`; '' before its first turn. It stays the same when a turn begins again. */
  age: string

  // The turn under way
  generator: Generator<RuntimeCall, Decision<unknown>, unknown> | null
  input: unknown
  nowMs: number
  startedMs: number
  /** By `idOf`. */
  readonly taken: Map<string, TakenKey>
  readonly bases: Map<string, AliasRow | null>
  counters: Record<string, number> | null
}

export function makeWork(envelope: Envelope, respond: (reply: WireReply) => void): Work {
  return {
    envelope,
    respond,
    i: 0,
    results: [],
    gate: 0,
    position: 0,
    keys: NONE,
    preview: null,
    refusal: null,
    isOver: false,
    endDeadline: null,
    isLooking: false,
    createKey: null,
    age: '',
    generator: null,
    input: undefined,
    nowMs: 0,
    startedMs: 0,
    taken: new Map(),
    bases: new Map(),
    counters: null,
  }
}

/**
 * Orders the turns of all shards by when they began, the lesser the older; an actor has one at a
 * time. Ids can't say it: those of callers are hashes. Clocks that differ make it unfair by as
 * much, never wrong.
 */
export function ageOf(beganMs: number, actorId: string): string {
  return String(beganMs).padStart(15, '0') + actorId
}

/** The turn gives back what it has reserved and begins again once `until`, then asked, has come. */
export class TurnAgain extends Error {
  readonly until: () => Promise<unknown>

  constructor(until: () => Promise<unknown>) {
    super('an older turn has a key that this one wants')
    this.name = 'TurnAgain'
    this.until = until
  }
}

/**
 * What a turn does when something that it has waited for is there. All that a turn does behind a
 * wait goes through here: when its work was dropped meanwhile (rolled back, sealed, abandoned), or
 * has waited for too long, it never goes on, for nothing that it would take or decide could be
 * given back or be true.
 */
export function resumed<T, U>(work: Work, use: (value: T) => Maybe<U>): (value: T) => Maybe<U> {
  return (value) => (work.isOver ? new Promise(NEVER) : use(value))
}

const NEVER = (): void => undefined
const NONE: readonly string[] = []
export const NO_RECORDS: readonly ActorRecord[] = []

/**
 * Id of the message at which the work stands: the envelope's, with `#i` from the second on that may
 * commit something.
 */
export function messageIdOf(work: Work): string {
  const { messageId, places } = work.envelope
  const place = places === undefined ? work.i : places[work.i]!
  return place === 0 ? messageId.id : `${messageId.id}#${place}`
}
