// What the parts of one shard share: what it has from its member, and the words between them. What
// each needs of the shard itself it declares beside its class.

import type { Behaviour, ConfigurationView, Effect } from '../../protocol/behaviour.ts'
import { RequestError, errorItem } from '../../protocol/errors.ts'
import type { ErrorItem } from '../../protocol/errors.ts'
import type { Entry } from '../../protocol/entry/entry.ts'
import type { Log } from '../../protocol/log.ts'
import type { Attributes } from '../../protocol/attributes.ts'
import type { Envelope, GraphAces, WireReply } from '../../protocol/message.ts'
import type { AliasRow, Journal, Maybe, Tenure } from '../../storage/journal.ts'
import type { Clock } from '../clock.ts'
import type { CommittedEntry } from '../committed-entry.ts'
import type { ActivationMemory } from './turn/activation-memory.ts'
import type { Activation } from './turn/activation.ts'
import type { LoadedEntry } from './turn/loading.ts'
import type { Committer } from './commit/committer.ts'
import type { Work } from './turn/work.ts'

/** Rules of hooks (commerce/README.md "Hooks"); an empty table answers `has` with false. */
export interface HookTable {
  has(hook: string): boolean
  effects(hook: string, payload: unknown): Promise<readonly unknown[]> | readonly unknown[]
}

/** Evaluates a `query` message on one actor's own nodes (CONTRACT 1.3). */
export type ActorQuery = (request: {
  readonly behaviour: Behaviour
  readonly state: unknown
  /** Before this request; null: the actor was not made yet. */
  readonly before: unknown
  readonly actorId: string
  readonly node: unknown
  /** What the caller may see of the graph; empty: nothing. */
  readonly aces: GraphAces
  /** What the caller is said to be, as far as the entries go by it. */
  readonly attributes: Attributes
  /** The actor's entries so far, oldest first, page by page. */
  readonly entries: () => AsyncIterable<readonly LoadedEntry[]>
}) => unknown

/**
 * Told of committed entries, in order, at once: for what every member follows in memory. `body` is
 * their group as it stands in the log: who keeps state of its own folds copies out of it, for what
 * the entries hold may be part of the runtime's state.
 */
export type OnCommitted = (
  shard: number,
  entries: readonly CommittedEntry[],
  first: number,
  body: Uint8Array,
) => void

/** What a shard has from its member. */
export interface ShardContext {
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly journal: Journal
  /** Number of shards, a power of two. */
  readonly shards: number
  /** How long message ids that an edge has made are known, by the shard's clock. */
  readonly edgeMarkMs: number
  /** What the activations of all its shards take. */
  readonly activationMemory: ActivationMemory
  readonly clock: Clock
  readonly newUuid: () => string
  readonly committer: Committer
  readonly hooks: HookTable
  readonly query: ActorQuery
  readonly log: Log
  /** Sends an envelope of this member's own making and waits for its end. */
  readonly send: (envelope: Envelope, respond: (reply: WireReply) => void) => void
  /**
   * Whether an answer that commits nothing may be released in this epoch, asked right before: a
   * lease that stands or, embedded, the epoch as the store has it now. False: the caller is told
   * `moved`; ending a tenure that is over for good is up to who answers.
   */
  readonly mayRead: (shard: number, epoch: number) => Maybe<boolean>
  /**
   * A request by a key is sent on to the actor that the key leads to, and does nothing before: the
   * owner that takes over here may find another actor under the key (PROTOCOL 3.6 Edge 2).
   * Embedded nobody takes over while the caller waits.
   */
  readonly sendsOnByKey: boolean
  /**
   * The configuration with all that is committed, for turns of its shard; a promise while it is
   * read. Rejects with a RequestError when it can't be.
   */
  readonly configuration: () => Maybe<ConfigurationView>
  /** Whether a turn may begin: false once the lease is over. Embedded: always. */
  readonly mayServe: () => boolean
  /** Milliseconds for which they might begin: by these the clock of a shard goes. */
  readonly servedMs: () => number
  /**
   * A new tenure of a shard of ours, so that what was sent in the old one is false for ever
   * (PROTOCOL 3.2.5). null: it is not ours any more; embedded, that the store raises it itself.
   * Rejects when that can't be said now.
   */
  readonly reclaim: (shard: number) => Promise<Tenure | null>
  readonly onCommitted: OnCommitted
  /** A shard that was served is no longer ours. A claim that fails rejects instead. */
  readonly onStepDown: (shard: number, why: string) => void
}

/** One decided entry before it has its place. */
export interface Joining {
  readonly entry: Entry
  readonly bytes: Uint8Array
  readonly activation: Activation | null
  readonly state: unknown
  readonly bases: ReadonlyMap<string, AliasRow | null>
}

/**
 * `sealed`: on its way to another owner, nothing is decided any more. `stopped`: this tenure is
 * over, and so is its object.
 */
export type ShardState = 'claiming' | 'serving' | 'sealed' | 'stopped'

/** Whose the shard is now. */
export interface NextOwner {
  readonly incarnation: string
  readonly epoch: number
}

export interface Reservation {
  readonly work: Work
  /** `isDropped`: the speculative state is gone; who waits has to begin again, elsewhere. */
  readonly waiting: ((isDropped: boolean) => void)[]
}

/** An answer without an entry: nothing was done, for certain. */
export function refused(error: ErrorItem): WireReply {
  return { outcome: 'refused', error }
}

/**
 * The same answer about a request of which a part may be in the log: "nothing was done" can't be
 * said, and only an owner that is asked from now on can tell more.
 */
export function doubted(reply: WireReply): WireReply {
  if (reply.outcome === 'moved') return { ...reply, taken: true }
  if (reply.outcome !== 'refused') return reply
  const text = 'part of this request took effect; repeat it with the same Idempotency-Key'
  return { outcome: 'unknown', error: errorItem('OUTCOME_UNKNOWN', text) }
}

/** A read that the store did not answer: nothing was done, and asking again may help. */
export function stored<T>(read: Maybe<T>): Maybe<T> {
  if (!(read instanceof Promise)) return read
  return read.catch((): never => {
    throw new RequestError('UNAVAILABLE', 'the journal could not be read; nothing was done')
  })
}

/** Effects of an entry that tell a key in another shard what became of its claim. */
export function keyEffect(
  message: '!confirm' | '!free',
  key: { readonly keyType: string; readonly key: string },
  actorId: string,
  messageId: string,
): Effect {
  return {
    to: { type: key.keyType, key: key.key },
    messages: [{ type: message, body: { actorId, messageId } }],
  }
}
