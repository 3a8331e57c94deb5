// What an actor type does: the contract between the actor runtime (cluster/), which knows no
// business word, and the types (commerce/, the stations of node/). A behaviour is pure: decide is
// a generator that yields what it needs on the way and returns records, answer and effects; time,
// ids and identity come in with the turn. Source: ARCHITECTURE 2, PROTOCOL 3.0, 3.6.

import type { ErrorItem } from './errors.ts'
import type { NodeType } from './graph/node-type.ts'
import type { Address, CallerSession, Message } from './message.ts'
import type { RecordShapes } from './entry/record-shape.ts'

/** One event of an actor. Plain JSON; `t` names its kind; the rest is the kind's own. */
export interface ActorRecord {
  readonly t: string
  readonly [member: string]: unknown
}

/** What a turn brings from the world. */
export interface Turn {
  readonly actorId: string
  /** Natural key by which an actor of the `system` shard is told; null for all others. */
  readonly key: string | null
  /** Milliseconds since 1970, never below the actor's last time. */
  readonly nowMs: number
  /** Identity id of the caller. */
  readonly by: string
  /** The caller's session; absent: what the runtime does by itself, a sign-in included. */
  readonly session?: CallerSession
  readonly messageId: string
  /** Number of records the actor has before this message. */
  readonly version: number
  readonly preview: boolean
  /** New UUIDv7, seeded by message id and version: the same turn makes the same ids again. */
  readonly newId: () => string
  /** The hook table; empty until rules join (commerce/README.md "Hooks"). */
  readonly hooks: { has(hook: string): boolean }
}

/** A call of decide to the runtime on its way. Only this actor waits; its shard goes on. */
export type RuntimeCall =
  /** Take a natural key for this actor. Answer: `true`, or `false` when another actor has it. */
  | { readonly call: 'reserve'; readonly keyType: string; readonly key: string }
  /**
   * The next generated number of this shard with that prefix, already reserved. Answer: the text.
   */
  | { readonly call: 'number'; readonly keyType: string; readonly prefix: string }
  /** Effects of the rules of a hook. Answer: `unknown[]`. */
  | { readonly call: 'effects'; readonly hook: string; readonly payload: unknown }
  /**
   * Checkpoints of this actor, oldest first, at most `limit`, newest kept. Answer: `Checkpoint[]`.
   */
  | { readonly call: 'checkpoints'; readonly limit: number }
  /** This actor's state as it was right after a checkpoint. Answer: the state, or null: no such. */
  | { readonly call: 'state-at'; readonly checkpointId: string }
  /** Read of the actor's own graph node for `query` inside the turn. Answer: the nested result. */
  | { readonly call: 'query'; readonly node: unknown; readonly state: unknown }
  /**
   * The configuration as the owner of its shard has it: all that is committed, and what its turns
   * have decided since. Answer: `ConfigurationView`, true until decide yields again.
   */
  | { readonly call: 'configuration' }

/** Configuration actors in memory. */
export interface ConfigurationView {
  get<T>(type: string, key: string): { readonly value: T } | null
  /** The one that has the name (`Behaviour.names`), or null. */
  find<T>(type: string, name: string): { readonly key: string; readonly value: T } | null
  /** Those of a type, in no order. */
  all<T>(type: string): Iterable<{ readonly key: string; readonly value: T }>
  size(type: string): number
}

export interface Checkpoint {
  readonly checkpointId: string
  readonly timestamp: string
  readonly metadata: Readonly<Record<string, unknown>>
}

/** A message to another actor (or to a key) that leaves after the commit (PROTOCOL 3.6 outbox). */
export interface Effect {
  readonly to: Address
  readonly messages: readonly Message[]
}

/** A name by which one actor is told from all others: unique among the keys of its type. */
export interface NaturalKey {
  readonly keyType: string
  readonly key: string
}

/**
 * A refusal is recorded, and the answer to every repeat: what may be tried again (`isRetryable`) is
 * none, and is thrown as a RequestError.
 */
export type Decision<S> =
  | {
      readonly ok: true
      /** Empty for messages that change nothing (`query`, `getCheckpoints`): no entry then. */
      readonly records: readonly ActorRecord[]
      /** The state after the records: equal to folding them with `evolve` (a property test). */
      readonly state: S
      readonly data?: unknown
      readonly effects?: readonly Effect[]
    }
  | { readonly ok: false; readonly errors: readonly ErrorItem[] }

/** What a record was committed with; handed to `evolve` and to the journal. */
export interface RecordMeta {
  readonly actorId: string
  /** The record's own version: 1 for an actor's first record. */
  readonly version: number
  readonly timeMs: number
  readonly by: string
  /** Message id of the entry: all records of an entry share one checkpoint. */
  readonly messageId: string
}

/** A graph node by its type and its id within the actor. */
export interface NodeRef {
  readonly node: string
  readonly id: string
}

/** A graph node's content. `doc` holds the node type's fields, and the ids its edges go by. */
export interface NodeDoc extends NodeRef {
  readonly doc: Readonly<Record<string, unknown>>
}

/**
 * State of an actor whose home is the system shard. SystemView shows `key` and `value`, and drops
 * the entry while `deleted`: a tombstone keeps the version rising when its key is written again.
 */
export interface SystemState<T = unknown> {
  readonly key: string
  readonly value: T
  readonly deleted: boolean
}

/** The messages of a type as JSON Schemas (OpenAPI 3.1), with an example each. */
export interface MessageDescriptions {
  /** By name; they refer to each other as `#/components/schemas/<name>`. */
  readonly schemas: Readonly<Record<string, object>>
  /** Name of the one that any message fits. */
  readonly union: string
}

export interface Behaviour<S = unknown> {
  readonly type: string
  /**
   * `system`: lives in the system shard and is told by its key, not by UUID (PROTOCOL 3.0). Its
   * state is a SystemState, and decide gets the tombstone of a deleted one: a `put` revives it.
   */
  readonly home: 'shards' | 'system'
  /** Stations alone send it messages: it has no address and no events that callers could name. */
  readonly isInternal?: true
  /** Message types this actor answers, for ACEs and for UNAUTHORIZED_MESSAGE / unknown types. */
  readonly messageTypes: readonly string[]
  /** Message types that make the actor when it is not there (`create`, a registry `put`). */
  readonly creates: readonly string[]
  /** True for messages that commit nothing and may run again (`query`, `getCheckpoints`). */
  isRead(messageType: string): boolean
  /**
   * Shape check at the edge, before any entry: bad bodies never reach a mailbox. Returns the
   * errors (400 INVALID_MESSAGE_BODY, 422 INVALID_COMMAND), or null. May be asked again; pure.
   */
  check(message: Message): readonly ErrorItem[] | null
  /** What `check` goes by, for people and generators. */
  readonly describe?: () => MessageDescriptions
  /** The natural key that a creating message chooses (an order's `orderNumber`), or null. */
  chosenKey(message: Message): NaturalKey | null
  /**
   * All natural keys that a message asks for by name, whether it gets them or not: lines of bulk
   * that name one of them wait for each other. Bodies that `check` refuses come here as well.
   */
  mayTake(message: Message): readonly NaturalKey[]
  /** `state` null: the actor is not there (never made). Must not change `state`. */
  decide(
    state: S | null,
    message: Message,
    turn: Turn,
  ): Generator<RuntimeCall, Decision<S>, unknown>
  /** The members of its records by position; without them they are stored by name. */
  readonly shapes?: RecordShapes
  /** Folds one record. May change and return the given state: the caller owns it. */
  evolve(state: S | null, record: ActorRecord, meta: RecordMeta): S
  /** True of a record that makes the state a tombstone; absent: no record of the type does. */
  isDeletion?(record: ActorRecord): boolean
  /** True when the state is a tombstone: messages get 404, `create` 409, nodes are gone. */
  isDeleted(state: S): boolean
  /**
   * Present: actors of the type are forgotten some time after their end (PROTOCOL 3.12). Until when
   * (milliseconds since 1970) what an actor was before its end could count, were it believed again.
   * Such a type has no nodes and no natural keys, no relayed message makes an actor of it, and its
   * last record is applied to any state, null among them.
   */
  countsUntilMs?(last: S): number
  /** Keys that lead to the actor, as answers and paths show them: first the one its path has. */
  keys(state: S): readonly string[]
  /**
   * The natural keys that an actor in this state has. What a message took (`reserve`, `number`) and
   * the state after it doesn't have is given back, and so is what only the state before it had. Of
   * a deleted one nothing is asked: its keys stay taken.
   */
  naturalKeys(state: S): readonly NaturalKey[]
  /**
   * Names beside its key by which the maps find an actor of the system shard; one actor's alone as
   * far as `decide` sees to it. Absent: it has none.
   */
  names?(state: S): readonly string[]
  /** JSON form for snapshots, and back. */
  toSnapshot(state: S): unknown
  fromSnapshot(snapshot: unknown): S
  /** Node types this actor type brings to the graph. */
  readonly nodeTypes: readonly NodeType[]
  /** Nodes that a record adds, changes or removes (PROTOCOL 3.13.1): row-stored nodes only. */
  touched(record: ActorRecord, actorId: string): readonly NodeRef[]
  /** A node's content in a state, or null when it is not (or no longer) there. */
  project(state: S, ref: NodeRef): NodeDoc | null
  /**
   * All row-stored nodes of a state, in the order in which nested lists show them: for rebuilds,
   * removals and `query` inside a turn.
   */
  nodes(state: S): readonly NodeRef[]
  /**
   * History nodes (journal and activity entries) that one record shows, in order: they are never
   * rows, they are read from the actor's records (ARCHITECTURE 5).
   */
  history(record: ActorRecord, meta: RecordMeta): readonly NodeDoc[]
}
