// The sessions of one identity: their ids, so that it can see them and end them, and so that it has
// no more than so many. An actor of the hashed shards, under an id that is made of the identity. An
// id is put down before its session is made: what a crash leaves leads nowhere, and goes with what
// has expired when the identity signs in again. What is pushed out is told by the outbox. Source:
// CONTRACT 1.8, PROTOCOL 3.0 "Sessions".

import { createHash } from 'node:crypto'
import { LIMITS } from '../../../config/limits.ts'
import type {
  ActorRecord,
  Behaviour,
  Decision,
  Effect,
  RuntimeCall,
  Turn,
} from '../../../protocol/behaviour.ts'
import { recordShapes } from '../../../protocol/entry/record-shape.ts'
import { RequestError, assert, errorItem } from '../../../protocol/errors.ts'
import { formatUuid } from '../../../protocol/ids.ts'
import type { Message } from '../../../protocol/message.ts'
import type { Subject } from './grants.ts'

export const SESSION_LIST = 'auth-session-list'

/** Type of the sessions' actors (`session.ts`, which uses this file). */
const SESSION = 'auth-session'

export interface ListedSession {
  readonly sessionId: string
  readonly isPat: boolean
  /** From then on nothing of it is good; milliseconds since 1970. */
  readonly untilMs: number
}

/** What puts one down. */
export interface AddBody extends ListedSession {
  /**
   * By the clock of the member that makes it. The list's own time never goes back: had its owner's
   * clock been ahead for a moment, what is put down since would count as over until then.
   */
  readonly atMs?: number
}

export interface SessionListState {
  /** The one that was added first is first. */
  readonly sessions: readonly ListedSession[]
}

/** What a turn tells its edge. */
export interface SessionListAnswer {
  /** Of a read alone. */
  readonly sessions: readonly ListedSession[]
  /** Still good, and ended to make room. */
  readonly pushedOut: readonly string[]
}

type ListRecord =
  | ({ readonly t: 'added' } & ListedSession)
  | { readonly t: 'removed'; readonly ids: readonly string[] }

/** Stored for good: only added to at its end. */
const SHAPES = recordShapes<ListRecord>([
  { id: 1, t: 'added', members: ['sessionId', 'isPat', 'untilMs'] },
  { id: 2, t: 'removed', members: ['ids'] },
])

const MESSAGES = ['add', 'touch', 'remove', 'read']

export const sessionListBehaviour: Behaviour<SessionListState> = {
  type: SESSION_LIST,
  home: 'shards',
  isInternal: true,
  messageTypes: MESSAGES,
  creates: ['add', 'touch', 'remove'],
  isRead: (messageType) => messageType === 'read',
  check: ({ type }) =>
    MESSAGES.includes(type)
      ? null
      : [errorItem('INVALID_MESSAGE_BODY', `a list of sessions has no message "${type}"`)],
  chosenKey: () => null,
  mayTake: () => [],
  decide,
  shapes: SHAPES,
  evolve: (state, record) => evolve(state, record as unknown as ListRecord),
  isDeleted: () => false,
  keys: () => [],
  naturalKeys: () => [],
  toSnapshot: (state) => state,
  fromSnapshot: (snapshot) => snapshot as SessionListState,
  nodeTypes: [],
  touched: () => [],
  project: () => null,
  nodes: () => [],
  history: () => [],
}

/** A UUID of version 8 (RFC 9562 5.8): the same for an identity, wherever it is made. */
export function sessionListId({ kind, identity }: Pick<Subject, 'kind' | 'identity'>): string {
  const bytes = createHash('sha256').update(`sessions of ${kind}/${identity}`).digest()
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return formatUuid(bytes)
}

const NONE: SessionListState = { sessions: [] }

function* decide(
  before: SessionListState | null,
  { type, body }: Message,
  turn: Turn,
): Generator<RuntimeCall, Decision<SessionListState>, unknown> {
  const state = before ?? NONE
  if (type === 'read') return { ok: true, records: [], state, data: { ...state, pushedOut: [] } }
  if (type === 'remove') {
    const { sessionId } = body as { readonly sessionId: string }
    return decided(state, [{ t: 'removed', ids: [sessionId] }])
  }
  const { sessionId, isPat, untilMs, atMs = turn.nowMs } = body as AddBody
  const added: ListRecord = { t: 'added', sessionId, isPat, untilMs }
  if (type === 'touch') return decided(state, [added])
  assert(type === 'add', `a message "${type}" of a list of sessions`)
  return add(state, added, Math.min(atMs, turn.nowMs))
}

function add(
  state: SessionListState,
  added: Extract<ListRecord, { t: 'added' }>,
  nowMs: number,
): Decision<SessionListState> {
  const { sessionExpiredTogetherMax, sessionsOfIdentityMax, patsOfIdentityMax } = LIMITS.access
  // Members' clocks differ: one that has just expired may still be good where it is renewed.
  const isOver = ({ untilMs }: ListedSession): boolean =>
    untilMs + LIMITS.access.sessionKeptMs <= nowMs
  const expired = state.sessions.filter(isOver).slice(0, sessionExpiredTogetherMax)
  const left = state.sessions.filter((one) => !expired.includes(one))
  const own = left.filter(({ isPat }) => isPat === added.isPat)
  const max = added.isPat ? patsOfIdentityMax : sessionsOfIdentityMax
  const tooMany = Math.max(0, own.length + 1 - max)
  if (added.isPat && own.filter(({ untilMs }) => untilMs > nowMs).length >= max) {
    const what = `there are ${max} personal access tokens already, the most; delete one first`
    throw new RequestError('INVALID_STATE', what)
  }
  const pushed = own.toSorted((a, b) => Number(a.untilMs > nowMs) - Number(b.untilMs > nowMs))
  const pushedOut = pushed.slice(0, tooMany)
  const gone = [...expired, ...pushedOut]
  const records: ListRecord[] = [added]
  if (gone.length > 0) records.unshift({ t: 'removed', ids: gone.map((one) => one.sessionId) })
  const toldTo = (one: ListedSession, type: string): Effect => ({
    to: { type: SESSION, id: one.sessionId },
    messages: [{ type, body: {} }],
  })
  const effects = [
    ...expired.map((one) => toldTo(one, 'expire')),
    ...pushedOut.map((one) => toldTo(one, 'expel')),
  ]
  const stillGood = pushedOut.filter(({ untilMs }) => untilMs > nowMs)
  const told = stillGood.map(({ sessionId }) => sessionId)
  return { ...decided(state, records, told), effects }
}

function decided(
  before: SessionListState,
  records: readonly ListRecord[],
  pushedOut: readonly string[] = [],
): Extract<Decision<SessionListState>, { ok: true }> {
  const state = records.reduce<SessionListState>(evolve, before)
  const data: Omit<SessionListAnswer, 'sessions'> = { pushedOut }
  return { ok: true, records: records as unknown as ActorRecord[], state, data }
}

function evolve(state: SessionListState | null, record: ListRecord): SessionListState {
  const { sessions } = state ?? NONE
  if (record.t === 'removed') {
    return { sessions: sessions.filter(({ sessionId }) => !record.ids.includes(sessionId)) }
  }
  assert(record.t === 'added', `a record "${String(record['t' as never])}" of a list of sessions`)
  const { sessionId, isPat, untilMs } = record
  const at = sessions.findIndex((one) => one.sessionId === sessionId)
  const one = { sessionId, isPat, untilMs }
  return { sessions: at < 0 ? [...sessions, one] : sessions.with(at, one) }
}
