// Configuration actors: one generic behaviour for all that is kept as a value under a key (registry
// entries, clients, roles, sessions, ...). Their stations check values and serve HTTP; the log of
// the system shard is the one order of such changes. Two messages: `put` writes the whole value,
// `delete` takes it away; the ETag is the actor's version. Source: ARCHITECTURE 2, PROTOCOL 3.0,
// CONTRACT 0 "ETags".

import type { ActorRequest } from '../cluster/actor-system.ts'
import { LIMITS } from '../config/limits.ts'
import type {
  ActorRecord,
  RuntimeCall,
  Behaviour,
  ConfigurationView,
  Decision,
  Effect,
  NodeRef,
  RecordMeta,
  SystemState,
  Turn,
} from '../protocol/behaviour.ts'
import type { NodeType } from '../protocol/graph/node-type.ts'
import { assert, errorItem } from '../protocol/errors.ts'
import type { ErrorItem } from '../protocol/errors.ts'
import type { CallerSession, Message, Reply } from '../protocol/message.ts'
import { recordShapes } from '../protocol/entry/record-shape.ts'
import type { ShapeError } from '../protocol/json/validation.ts'

/** When a write takes effect; without a condition always. */
export interface WriteCondition {
  /** ETags of which one must be the newest (`If-Match`). */
  readonly ifMatch?: readonly string[]
  /** The key must be free (`If-None-Match: *`). */
  readonly ifAbsent?: boolean
  /** What is there must not be secret: whoever writes it openly has seen no secret there. */
  readonly ifOpen?: boolean
}

export interface PutBody<T> extends WriteCondition {
  readonly value: T
}

/** ETag of a configuration actor's version, quotes included (RFC 9110 8.8.3). */
export function etagOf(version: number): string {
  return `"${version}"`
}

/**
 * Reads `If-Match` and `If-None-Match`. `If-Match: *` sets no condition: it upserts (CONTRACT 0).
 * Weak tags count as strong ones: a proxy that compresses marks them so.
 */
export function readCondition(ifMatch: string, ifNoneMatch: string): WriteCondition {
  if (ifNoneMatch.trim() === '*') return { ifAbsent: true }
  const wanted = ifMatch.trim()
  if (wanted === '' || wanted === '*') return {}
  return { ifMatch: wanted.split(',').map((tag) => tag.trim().replace(/^W\//, '')) }
}

/** A `put` as a request to the actor system; for internal writes without a caller's key. */
export function putRequest<T>(
  type: string,
  key: string,
  body: PutBody<T>,
  origin: Origin,
): ActorRequest {
  return systemRequest(type, key, { type: 'put', body }, origin)
}

/** A `delete` as a request to the actor system. */
export function deleteRequest(
  type: string,
  key: string,
  condition: WriteCondition,
  origin: Origin,
): ActorRequest {
  return systemRequest(type, key, { type: 'delete', body: condition }, origin)
}

function systemRequest(type: string, id: string, message: Message, origin: Origin): ActorRequest {
  return {
    type,
    id,
    messages: [message],
    idempotencyKey: null,
    bodyHash: '',
    by: origin.by,
    ...(origin.session !== undefined && { session: origin.session }),
    preview: false,
    budgetMs: LIMITS.sharding.requestBudgetMs,
    trace: origin.trace,
  }
}

/**
 * Why the one message of a request had no effect; null: it had. A refusal comes in two forms: of
 * the request, and as the message's own result (a turn that could not read the configuration).
 */
export function failureOf(reply: Reply): ErrorItem | null {
  if (reply.outcome !== 'answered') return reply.error
  const result = reply.results[0]!
  return result.success ? null : result.errors[0]!
}

/** Whom a write is for. */
export interface Origin {
  readonly by: string
  readonly trace: string
  /** Of the caller; absent: the runtime writes by itself, or signs somebody in. */
  readonly session?: CallerSession
}

/** A change as the owner sees it before it decides. */
export interface Change<T> {
  /** By the owner's own maps. */
  readonly view: ConfigurationView
  readonly turn: Turn
  readonly message: Message
  /** null: there is none, or it was deleted. */
  readonly before: T | null
}

/** Why the caller may not do it (as text 403), or null. */
export type Permit<T> = (change: Change<T>) => string | ErrorItem | null

/** What is wrong with a value at its key, or null. */
export type ValueCheck = (value: unknown) => ShapeError | null

/** How the graph shows the actors of a type: as one node each, whose id is the actor's key. */
export interface SystemNode<T> {
  readonly type: NodeType
  /** Its fields, without the id and those of `CHANGE_FIELDS`. Never a secret. */
  doc(value: T): Readonly<Record<string, unknown>>
}

/** Fields that every such node has: when it was changed last, and by whom (an identity's id). */
export const CHANGE_FIELDS: NodeType['fields'] = [
  { name: 'lastModified', type: 'instant' },
  { name: 'lastModifiedBy', type: 'text' },
]

export interface SystemActorOptions<T> {
  /** Names beside the key by which the maps find it; unique as far as `permit` sees to it. */
  readonly names?: (value: T) => readonly string[]
  /** Absent: the graph doesn't show them. */
  readonly node?: SystemNode<T>
  /** What the outbox tells others when the one of that key was deleted. */
  readonly onDeletion?: (key: string) => readonly Effect[]
}

/** Kept with the value: what was written before this was kept has neither. */
interface KeptState<T> extends SystemState<T> {
  readonly changedMs?: number
  readonly changedBy?: string
}

/**
 * What a configuration actor's journal can hold; a value is as its station has it, by names. Of a
 * type that no node shows a deletion has been kept without its key.
 */
type SystemRecord =
  | { readonly t: 'put'; readonly key: string; readonly value: unknown }
  | { readonly t: 'deleted'; readonly key?: string }

/** Stored for good: only added to at its end. */
const SHAPES = recordShapes<SystemRecord>([
  { id: 1, t: 'put', members: ['key', 'value'] },
  { id: 2, t: 'deleted', members: ['key'] },
])

/**
 * The behaviour of one type of configuration actors. `check` guards every `put`, `permit` every
 * change: what an edge has let through is asked again by who owns the configuration.
 */
export function systemActor<T>(
  type: string,
  check: ValueCheck,
  permit: Permit<T>,
  { names, node, onDeletion }: SystemActorOptions<T> = {},
): Behaviour<SystemState<T>> {
  return {
    type,
    home: 'system',
    messageTypes: ['put', 'delete'],
    creates: ['put'],
    isRead: () => false,
    check: (message) => checkMessage(type, check, message),
    chosenKey: () => null,
    mayTake: () => [],
    decide: (state, message, turn) => decide<T>({ type, permit, onDeletion }, state, message, turn),
    shapes: SHAPES,
    evolve: (state, record, meta) => evolve<T>(state, record, meta),
    isDeleted: (state) => state.deleted,
    keys: (state) => [state.key],
    naturalKeys: () => [],
    ...(names && { names: ({ value }: SystemState<T>) => names(value) }),
    toSnapshot: (state) => state,
    fromSnapshot: (snapshot) => snapshot as SystemState<T>,
    ...(node ? shownBy(node) : UNSHOWN),
  }
}

const UNSHOWN = {
  nodeTypes: [],
  touched: () => [],
  project: () => null,
  nodes: () => [],
  history: () => [],
}

type Shown<T> = Pick<
  Behaviour<SystemState<T>>,
  'nodeTypes' | 'touched' | 'project' | 'nodes' | 'history'
>

function shownBy<T>({ type, doc }: SystemNode<T>): Shown<T> {
  const ref = (key: unknown): readonly NodeRef[] =>
    typeof key === 'string' ? [{ node: type.name, id: key }] : []
  return {
    nodeTypes: [type],
    touched: (record) => ref(record['key']),
    nodes: ({ key, deleted }) => (deleted ? [] : ref(key)),
    history: () => [],
    project: (state: KeptState<T>, { node, id }) => {
      if (state.deleted || node !== type.name || id !== state.key) return null
      const { changedMs, changedBy } = state
      const changed = changedMs === undefined ? null : new Date(changedMs).toISOString()
      const own = { [type.idField]: id, ...doc(state.value) }
      return { node, id, doc: { ...own, lastModified: changed, lastModifiedBy: changedBy ?? null } }
    },
  }
}

function checkMessage(
  type: string,
  check: ValueCheck,
  message: Message,
): readonly ErrorItem[] | null {
  if (message.type === 'delete') return null
  if (message.type !== 'put') {
    const what = `${type} has no message "${message.type}"; it has put and delete`
    return [errorItem('INVALID_MESSAGE_BODY', what)]
  }
  const wrong = check((message.body as PutBody<unknown> | undefined)?.value)
  if (wrong === null) return null
  const member = wrong.member === '' ? 'value' : `value.${wrong.member}`
  return [errorItem('INVALID_MESSAGE_BODY', `${member} ${wrong.message}`, { member })]
}

interface Rules<T> {
  readonly type: string
  readonly permit: Permit<T>
  readonly onDeletion: SystemActorOptions<T>['onDeletion'] | undefined
}

function* decide<T>(
  { type, permit, onDeletion }: Rules<T>,
  state: SystemState<T> | null,
  message: Message,
  turn: Turn,
): Generator<RuntimeCall, Decision<SystemState<T>>, unknown> {
  assert(turn.key !== null, `${type} is an actor of the system shard and has a key`)
  const there = state !== null && !state.deleted
  const view = (yield { call: 'configuration' }) as ConfigurationView
  const before = there ? state.value : null
  const why = permit({ view, turn, message, before })
  if (typeof why === 'string') return refuse('FORBIDDEN', why)
  if (why !== null) return { ok: false, errors: [why] }
  if (message.type === 'delete' && !there) {
    return refuse('NOT_FOUND', `there is no ${type} "${turn.key}"`)
  }
  const condition = (message.body ?? {}) as WriteCondition
  if (condition.ifAbsent && there) {
    return refuse('CONFLICT', `${type} "${turn.key}" exists already`)
  }
  if (condition.ifMatch && !(there && condition.ifMatch.includes(etagOf(turn.version)))) {
    const now = there ? `its ETag is now ${etagOf(turn.version)}` : 'it does not exist (any more)'
    return refuse('CONFLICT', `${type} "${turn.key}" has changed: ${now}; read it again`)
  }
  if (condition.ifOpen && there && isSecret(state.value)) {
    return refuse('CONFLICT', `${type} "${turn.key}" is secret by now; nothing was done`)
  }
  const data = { version: turn.version + 1 }
  const record: ActorRecord =
    message.type === 'delete'
      ? { t: 'deleted', key: turn.key }
      : { t: 'put', key: turn.key, value: (message.body as PutBody<T>).value }
  const made = evolve<T>(state, record, { timeMs: turn.nowMs, by: turn.by })
  const effects = made.deleted ? onDeletion?.(turn.key) : undefined
  return { ok: true, records: [record], state: made, data, ...(effects && { effects }) }
}

function isSecret(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && 'isSecret' in value && value.isSecret === true
  )
}

function refuse(code: 'NOT_FOUND' | 'CONFLICT' | 'FORBIDDEN', message: string): Decision<never> {
  return { ok: false, errors: [errorItem(code, message)] }
}

function evolve<T>(
  state: SystemState<T> | null,
  record: ActorRecord,
  { timeMs, by }: Pick<RecordMeta, 'timeMs' | 'by'>,
): KeptState<T> {
  const change = { changedMs: timeMs, changedBy: by }
  if (record.t === 'put') {
    return { key: record['key'] as string, value: record['value'] as T, deleted: false, ...change }
  }
  assert(record.t === 'deleted' && state !== null, `a record "${record.t}" of a system actor`)
  return { ...state, deleted: true, ...change }
}
