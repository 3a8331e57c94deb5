// Messages, envelopes and replies: what travels from the edge (the member with the caller's
// connection) to the owner of an actor's shard, and back. Source: PROTOCOL 3.6, CONTRACT 1.3.

import type { Attributes } from './attributes.ts'
import type { ErrorItem } from './errors.ts'
import type { Position } from './ids.ts'

export interface Message {
  readonly type: string
  readonly body: unknown
}

/** Where an envelope goes: an actor by its UUID, or by a natural key of its type. */
export type Address =
  | { readonly type: string; readonly id: string }
  | { readonly type: string; readonly key: string }

/** Texts of entries (`graph/order:query`), list by list. */
export type GraphAces = readonly (readonly string[])[]

export interface MessageId {
  /** 32 hex digits: a hash of (scope, key), or a UUID made at the edge without its dashes. */
  readonly id: string
  /** `caller` ids are remembered 24 h, `edge` ids 10 min of the shard's clock (PROTOCOL 3.6). */
  readonly kind: 'caller' | 'edge'
}

/**
 * The session in which configuration is changed, as its member knows it. Whether those it is of
 * still stand the owner asks by its own maps (PROTOCOL 3.0).
 */
export interface CallerSession {
  /** UUID. */
  readonly id: string
  readonly kind: 'client' | 'principal'
  /** The client that the session was issued to. */
  readonly clientId: string
  /** ACEs that were asked for; null: all that the identity has. */
  readonly scope: string | null
  /** Its identity and its client as they were when it was issued. */
  readonly eras: readonly [identity: string, client: string]
}

/** All messages of one request to one actor. */
export interface Envelope {
  readonly messageId: MessageId
  readonly to: Address
  /**
   * Set when the envelope's first message creates the actor under a virtual id (`new`): `to.id`
   * then was made by this edge, and a repeat of the same key finds the actor that was made first.
   */
  readonly virtual: boolean
  /** Number of this copy, from 0: a resend is the next one (PROTOCOL 3.6). */
  readonly copy: number
  /**
   * Set by an edge whose wire delivers each copy once (a call inside the process): an id that it
   * has just made can't be in any journal, so the owner need not look. Never leaves the process.
   */
  readonly fresh?: true
  /**
   * Set on messages of another actor's outbox: source shard, offset, index of the effect. Under a
   * natural key such an envelope only asks which actor that is.
   */
  readonly relay?: readonly [shard: number, offset: number, index: number]
  readonly messages: readonly Message[]
  /**
   * The number of each message among those that may commit something, where that isn't its place
   * here: reads stand between them. A message's id is told by it (PROTOCOL 3.6).
   */
  readonly places?: readonly number[]
  /**
   * By message: what the edge answers to it; null where it goes to the actor. Only under a caller's
   * key: the owner records such an answer, unless it has one already (PROTOCOL 3.6). Of the message
   * itself nothing travels, not even a type that no actor knows.
   */
  readonly refused?: Refusals
  /** Hash of the whole request body; a repeat of the id with another is IDEMPOTENCY_MISMATCH. */
  readonly bodyHash: string
  /** Remaining time in milliseconds, never a timestamp. */
  readonly budgetMs: number
  /** Identity (client or principal id) on whose behalf this is done. */
  readonly by: string
  /**
   * The caller's session, on what goes to configuration: its owner asks by its own maps whether it
   * may (PROTOCOL 3.0). Absent: the runtime's own, a sign-in included.
   */
  readonly session?: CallerSession
  /**
   * What the caller may see of the graph: lists of access control entries, what is seen must be
   * granted by each. Only with `query` messages, which answer nothing without (CONTRACT 1.3).
   */
  readonly graphAces?: GraphAces
  /** What the caller is said to be, as far as these entries go by it; absent: by nothing. */
  readonly graphAttributes?: Attributes
  readonly preview: boolean
  /** How often an incarnation died while this was outstanding (PROTOCOL 3.11). */
  readonly crashes: number
  /** Request id for logs over members. */
  readonly trace: string
}

/** What became of one message, as the caller sees it (CONTRACT 1.3 `results[i]`). */
export type MessageResult =
  | { readonly type: string; readonly success: true; readonly data?: unknown }
  | { readonly type: string; readonly success: false; readonly errors: readonly ErrorItem[] }

/** The answer to each message that is not to be run, by its place; null for the others. */
export type Refusals = readonly (MessageResult | null)[]

/** The answer to an envelope as its caller gets it. */
export type Reply =
  | {
      readonly outcome: 'answered'
      /** UUID of the actor; null when there is none (a refused `create`). */
      readonly actorId: string | null
      /** Natural keys of the actor after the last message, first the one shown in `paths`. */
      readonly keys: readonly string[]
      readonly results: readonly MessageResult[]
      /** Where this can be read in the journal; null when nothing was committed for it. */
      readonly position: Position | null
    }
  /** Nothing was done, for certain: 404 by key, 413, 429, 503, 507, budget over. */
  | { readonly outcome: 'refused'; readonly error: ErrorItem }
  /** Unknown outcome: 504 (PROTOCOL 3.2.6). */
  | { readonly outcome: 'unknown'; readonly error: ErrorItem }

/** An answer of an owner on the wire: a reply, or where the request belongs. */
export type WireReply =
  | Reply
  /**
   * Not mine (any more): ask the owner of that epoch, where it is told. `taken`: this copy was
   * begun, and may be in the log; only an owner that is asked from now on can tell.
   */
  | {
      readonly outcome: 'moved'
      readonly shard: number
      readonly taken?: true
      readonly owner?: { readonly incarnation: string; readonly epoch: number }
    }
  /** This copy has certainly not left: no owner runs it. `away`: the wire itself is away. */
  | { readonly outcome: 'unsent'; readonly away?: true }
  /** The key leads to an actor of another shard: send it there. */
  | { readonly outcome: 'see'; readonly actorId: string }
