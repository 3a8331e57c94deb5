// The actor system as the stations of node/ see it: ask an actor, read the maps of the `system`
// shard. What is behind it (edge, wire, shards, journal) is cluster/'s own matter.

import type { Behaviour, ConfigurationView } from '../protocol/behaviour.ts'
import type { Attributes } from '../protocol/attributes.ts'
import type { CallerSession, GraphAces, Message, Refusals, Reply } from '../protocol/message.ts'
import type { Position } from '../protocol/ids.ts'

/** One request to one actor. */
export interface ActorRequest {
  readonly type: string
  /** UUID, natural key, or a virtual id (`new`). */
  readonly id: string
  /**
   * 1 to LIMITS.actors.messagesMax messages, already shape-checked with `Behaviour.check`. Under an
   * `idempotencyKey` all that the caller has sent.
   */
  readonly messages: readonly Message[]
  /** Which of them are answered with a refusal instead of being run: that is remembered too. */
  readonly refused?: Refusals
  /** The caller's `Idempotency-Key`, or null. Its scope is made of `by` and the address. */
  readonly idempotencyKey: string | null
  /** Hash of the whole request body (any text; only compared). Needed only with a key. */
  readonly bodyHash: string
  readonly by: string
  /** The caller's session; needed for what changes configuration (Envelope). */
  readonly session?: CallerSession
  /** What the caller may see of the graph; needed for `query` messages (Envelope). */
  readonly graphAces?: GraphAces
  /** What the caller is said to be, as far as these entries go by it (Envelope). */
  readonly graphAttributes?: Attributes
  readonly preview: boolean
  readonly budgetMs: number
  readonly trace: string
}

/** One configuration actor as every member has it in memory. */
export interface SystemEntry<T = unknown> {
  readonly key: string
  readonly actorId: string
  /** Version of the actor: its ETag. */
  readonly version: number
  readonly value: T
}

/** The maps of the `system` shard, followed from its log before this member serves. */
export interface SystemView extends ConfigurationView {
  get<T>(type: string, key: string): SystemEntry<T> | null
  find<T>(type: string, name: string): SystemEntry<T> | null
  all<T>(type: string): Iterable<SystemEntry<T>>
  /** Entries whose key starts with `prefix`, by code point order of their keys. */
  withPrefix<T>(type: string, prefix: string): Iterable<SystemEntry<T>>
  /** Called after each change, in log order. Returns the way to stop. */
  onChange(type: string, changed: (key: string, entry: SystemEntry | null) => void): () => void
}

export interface ActorSystem {
  /** Sends messages to an actor and waits for the reply, at most `budgetMs`. Never throws. */
  ask(request: ActorRequest): Promise<Reply>
  readonly system: SystemView
  readonly behaviours: ReadonlyMap<string, Behaviour>
  /** Newest committed offset of every shard: what a consistency token may name at most. */
  heads(): readonly Position[]
}
