// When an identity was active last, and when each of its client secrets was right last: an actor of
// the hashed shards for each identity, under an id that is made of it. So neither the identity,
// whose ETag stays, nor the log of the `system` shard knows of it. Source: CONTRACT 1.8 "Last use".
//
// - A time never goes back: of two the later one counts, in whatever order they come. Only one that
//   is more than a day ahead (LIMITS.access.activityAheadMs) gives way: it was written by a clock
//   that was wrong, and would stand for as long as that was ahead.
// - It is never ahead of the clock of the shard's owner.
// - What is less than an hour newer (LIMITS.access.activityEveryMs) is refused without an entry, so
//   an identity costs an entry an hour, and one more for each of its secrets, whatever it does and
//   on however many members.
// - It ends with its identity, by that one's outbox, and then takes nothing more.

import { createHash } from 'node:crypto'
import { LIMITS } from '../../../config/limits.ts'
import type {
  ActorRecord,
  Behaviour,
  Decision,
  Effect,
  NodeRef,
  RecordMeta,
  RuntimeCall,
  Turn,
} from '../../../protocol/behaviour.ts'
import { recordShapes } from '../../../protocol/entry/record-shape.ts'
import { RequestError, assert, errorItem } from '../../../protocol/errors.ts'
import { formatUuid } from '../../../protocol/ids.ts'
import type { Message } from '../../../protocol/message.ts'
import { activityNode } from './node.ts'

export const ACTIVITY = 'identity-activity'

export interface Identified {
  readonly kind: 'client' | 'principal'
  readonly identity: string
}

export interface Activity extends Identified {
  readonly actorId: string
  /** Milliseconds since 1970, as all times here. */
  readonly activeAtMs: number
  readonly changedAtMs: number
  /** By the ids of a client's secrets: when each was right last. */
  readonly secrets: Readonly<Record<string, number>>
}

export type ActivityState = Activity | { readonly ended: true }

export interface UsedBody extends Identified {
  /** When, by the clock of the member that saw it. */
  readonly atMs: number
  /** The secret that was right; null: a token was used, or somebody signed in otherwise. */
  readonly secretId: string | null
  /** Ids of all secrets that the client has: times of others give way to these. */
  readonly secretIds: readonly string[]
}

/** What `read` tells. */
export type ActivityAnswer = Pick<Activity, 'activeAtMs' | 'secrets'>

/** What `used` tells: the time that counts now. It is kept with the entry, so no more. */
export interface UsedAnswer {
  readonly atMs: number
}

type ActivityRecord =
  | ({ readonly t: 'begun' } & Identified)
  | { readonly t: 'used'; readonly atMs: number }
  | { readonly t: 'secretUsed'; readonly secretId: string; readonly atMs: number }
  | { readonly t: 'secretsForgotten'; readonly ids: readonly string[] }
  | { readonly t: 'ended' }

/** Stored for good: only added to at its end. */
const SHAPES = recordShapes<ActivityRecord>([
  { id: 1, t: 'begun', members: ['kind', 'identity'] },
  { id: 2, t: 'used', members: ['atMs'] },
  { id: 3, t: 'secretUsed', members: ['secretId', 'atMs'] },
  { id: 4, t: 'secretsForgotten', members: ['ids'] },
  { id: 5, t: 'ended', members: [] },
])

const MESSAGES = ['used', 'read', 'end']

export const activityBehaviour: Behaviour<ActivityState> = {
  type: ACTIVITY,
  home: 'shards',
  isInternal: true,
  messageTypes: MESSAGES,
  creates: ['used', 'end'],
  isRead: (messageType) => messageType === 'read',
  check: ({ type }) =>
    MESSAGES.includes(type)
      ? null
      : [errorItem('INVALID_MESSAGE_BODY', `an identity's activity has no message "${type}"`)],
  chosenKey: () => null,
  mayTake: () => [],
  decide,
  shapes: SHAPES,
  evolve: (state, record, meta) => evolve(state, record as unknown as ActivityRecord, meta),
  isDeletion: ({ t }) => t === 'ended',
  isDeleted: (state) => 'ended' in state,
  keys: () => [],
  naturalKeys: () => [],
  toSnapshot: (state) => state,
  fromSnapshot: (snapshot) => snapshot as ActivityState,
  nodeTypes: [activityNode],
  touched: (_, actorId) => [nodeOf(actorId)],
  nodes: (state) => ('ended' in state ? [] : [nodeOf(state.actorId)]),
  project: (state, { node, id }) => {
    if ('ended' in state || node !== activityNode.name || id !== state.actorId) return null
    const { kind, identity, activeAtMs, changedAtMs } = state
    const times = { lastActiveAt: textOf(activeAtMs), lastModified: textOf(changedAtMs) }
    return { node, id, doc: { identityActivityId: id, kind, identityId: identity, ...times } }
  },
  history: () => [],
}

const textOf = (ms: number): string => new Date(ms).toISOString()

function nodeOf(actorId: string): NodeRef {
  return { node: activityNode.name, id: actorId }
}

/** A UUID of version 8 (RFC 9562 5.8): the same for an identity, wherever it is made. */
export function activityId({ kind, identity }: Identified): string {
  const bytes = createHash('sha256').update(`activity of ${kind}/${identity}`).digest()
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return formatUuid(bytes)
}

/** What an identity's deletion tells it. */
export function endOfActivity(of: Identified): Effect {
  return {
    to: { type: ACTIVITY, id: activityId(of) },
    messages: [{ type: 'end', body: {} }],
  }
}

function* decide(
  state: ActivityState | null,
  { type, body }: Message,
  turn: Turn,
): Generator<RuntimeCall, Decision<ActivityState>, unknown> {
  if (state !== null && 'ended' in state) {
    throw new RequestError('NOT_FOUND', 'this identity was deleted')
  }
  if (type === 'end') return decided(state, [{ t: 'ended' }], turn)
  if (type === 'used') return used(state, body as UsedBody, turn)
  assert(type === 'read', `a message "${type}" of an identity's activity`)
  if (state === null) throw new RequestError('NOT_FOUND', 'this identity was never active')
  const { activeAtMs, secrets } = state
  return { ok: true, records: [], state, data: { activeAtMs, secrets } }
}

function used(before: Activity | null, body: UsedBody, turn: Turn): Decision<ActivityState> {
  const { kind, identity, secretId, secretIds } = body
  const { activityEveryMs, activityAheadMs, secretsOfClientMax } = LIMITS.access
  // The clock of the member that saw it may be ahead.
  const atMs = Math.min(body.atMs, turn.nowMs)
  const isDue = (lastMs = -Infinity): boolean =>
    atMs >= lastMs + activityEveryMs || atMs + activityAheadMs < lastMs
  const secrets = before?.secrets ?? {}
  const records: ActivityRecord[] = before === null ? [{ t: 'begun', kind, identity }] : []
  if (isDue(before?.activeAtMs)) records.push({ t: 'used', atMs })
  if (secretId !== null && secretIds.includes(secretId) && isDue(secrets[secretId])) {
    const others = Object.keys(secrets).filter((id) => id !== secretId)
    const gone = others.filter((id) => !secretIds.includes(id))
    if (others.length >= secretsOfClientMax) records.push({ t: 'secretsForgotten', ids: gone })
    records.push({ t: 'secretUsed', secretId, atMs })
  }
  // Thrown, it is written nowhere.
  if (records.length === 0) throw new RequestError('INVALID_STATE', 'it was written a while ago')
  const data: UsedAnswer = { atMs }
  return { ...decided(before, records, turn), data }
}

function decided(
  before: ActivityState | null,
  records: readonly ActivityRecord[],
  { actorId, nowMs: timeMs }: Turn,
): Extract<Decision<ActivityState>, { ok: true }> {
  const state = records.reduce<ActivityState | null>(
    (so, record) => evolve(so, record, { actorId, timeMs }),
    before,
  )!
  return { ok: true, records: records as unknown as readonly ActorRecord[], state }
}

function evolve(
  state: ActivityState | null,
  record: ActivityRecord,
  { actorId, timeMs }: Pick<RecordMeta, 'actorId' | 'timeMs'>,
): ActivityState {
  if (record.t === 'ended') return { ended: true }
  if (record.t === 'begun') {
    const { kind, identity } = record
    return { kind, identity, actorId, activeAtMs: 0, changedAtMs: timeMs, secrets: {} }
  }
  assert(state !== null && !('ended' in state), `a record "${record.t}" of nothing`)
  const { activeAtMs, secrets } = state
  // That it may become so was decided when it was written.
  if (record.t === 'used') return { ...state, activeAtMs: record.atMs, changedAtMs: timeMs }
  if (record.t === 'secretsForgotten') {
    return { ...state, changedAtMs: timeMs, secrets: without(secrets, record.ids) }
  }
  return {
    ...{ ...state, changedAtMs: timeMs, activeAtMs: Math.max(activeAtMs, record.atMs) },
    secrets: { ...secrets, [record.secretId]: record.atMs },
  }
}

function without(
  secrets: Activity['secrets'],
  ids: readonly string[],
): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(secrets).filter(([id]) => !ids.includes(id)))
}
