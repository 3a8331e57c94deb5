// A session: what stands behind a code, an access token and a refresh token, as an actor of the
// hashed shards. Its UUID is the first 16 bytes of every token of it, and its turns are the one
// place where a code is used up, a token rotates or all of it ends. It keeps hashes alone. What is
// refused here leaves no entry: whoever sends nonsense grows nothing.
// Source: specification "Tokens and sessions", CONTRACT 1.11, PROTOCOL 3.0 "Sessions".
//
//   (none) -- authorize --> asked -- exchange --> open -- end, expel, expire --> ended
//   (none) -- open -------------------------------^  ^-- refresh, renew
//   a used code or a rotated refresh token that comes again: open --> ended

import { LIMITS } from '../../../config/limits.ts'
import type {
  Behaviour,
  Decision,
  Effect,
  RecordMeta,
  RuntimeCall,
  Turn,
} from '../../../protocol/behaviour.ts'
import { recordShapes } from '../../../protocol/entry/record-shape.ts'
import { RequestError, assert, errorItem } from '../../../protocol/errors.ts'
import type { Message } from '../../../protocol/message.ts'
import { isSameHash } from '../token.ts'
import { isChallengeOf } from './challenge.ts'
import { endOf, openedSession } from './session-state.ts'
import type {
  AuthorizeBody,
  ExchangeBody,
  IssuedAt,
  KeptAccess,
  KeptRefresh,
  LiveSession,
  Made,
  MadeRefresh,
  OpenBody,
  RefreshBody,
  RenewBody,
  SessionState,
} from './session-state.ts'
import { SESSION_LIST, sessionListId } from './session-list.ts'
import { REVOCATION } from './revocation.ts'

export const SESSION = 'auth-session'

type SessionRecordOf =
  | { readonly t: 'asked'; readonly session: LiveSession }
  | { readonly t: 'opened'; readonly session: LiveSession }
  | {
      readonly t: 'issued'
      readonly access: KeptAccess
      readonly former: KeptAccess | null
      readonly refresh: KeptRefresh | null
    }
  | { readonly t: 'renewed'; readonly untilMs: number }
  | { readonly t: 'used' }
  | { readonly t: 'ended'; readonly why: string }

/** Stored for good: only added to at its end. */
const SHAPES = recordShapes<SessionRecordOf>([
  { id: 1, t: 'asked', members: ['session'] },
  { id: 2, t: 'opened', members: ['session'] },
  { id: 3, t: 'issued', members: ['access', 'former', 'refresh'] },
  { id: 4, t: 'renewed', members: ['untilMs'] },
  { id: 5, t: 'used', members: [] },
  { id: 6, t: 'ended', members: ['why'] },
])

const MESSAGES = [
  ...['open', 'authorize', 'exchange', 'refresh', 'renew', 'used'],
  ...['end', 'expel', 'expire', 'read'],
]

export const sessionBehaviour: Behaviour<SessionState> = {
  type: SESSION,
  home: 'shards',
  isInternal: true,
  messageTypes: MESSAGES,
  creates: ['open', 'authorize'],
  isRead: (messageType) => messageType === 'read',
  // Stations alone send these messages, in the shapes that are declared here.
  check: ({ type }) =>
    MESSAGES.includes(type)
      ? null
      : [errorItem('INVALID_MESSAGE_BODY', `a session has no message "${type}"`)],
  chosenKey: () => null,
  mayTake: () => [],
  decide,
  shapes: SHAPES,
  evolve: (state, record, meta) => evolve(state, record as unknown as SessionRecordOf, meta),
  isDeleted: ({ status }) => status === 'ended',
  countsUntilMs: (last) => {
    return last.status === 'ended' ? 0 : Math.max(endOf(last), last.longestMs ?? 0)
  },
  keys: () => [],
  naturalKeys: () => [],
  toSnapshot: (state) => state,
  fromSnapshot: (snapshot) => snapshot as SessionState,
  nodeTypes: [],
  touched: () => [],
  project: () => null,
  nodes: () => [],
  history: () => [],
}

function* decide(
  state: SessionState | null,
  message: Message,
  turn: Turn,
): Generator<RuntimeCall, Decision<SessionState>, unknown> {
  const { type, body } = message
  if (type === 'open' || type === 'authorize') {
    assert(state === null, 'the UUID of a session is made anew for each')
    return type === 'open' ? open(body as OpenBody, turn) : authorize(body as AuthorizeBody, turn)
  }
  if (state === null || state.status === 'ended') {
    throw new RequestError('NOT_FOUND', 'there is no such session')
  }
  switch (type) {
    case 'read':
      return { ok: true, records: [], state, data: { session: state } }
    case 'exchange':
      return exchange(state, body as ExchangeBody, turn)
    case 'refresh':
      return refresh(state, body as RefreshBody, turn)
    case 'renew':
      return renew(state, body as RenewBody, turn)
    case 'used':
      return decided(state, { t: 'used' }, turn)
    case 'end':
      return end(state, 'ended', turn)
    // What only frees room goes unannounced: other members see it when their lease is over.
    case 'expel':
      return decided(state, { t: 'ended', why: 'pushed out' }, turn)
    default:
      assert(type === 'expire', `a message "${type}" of a session`)
      if (endOf(state) > turn.nowMs) refuse('the session has not expired')
      return decided(state, { t: 'ended', why: 'expired' }, turn)
  }
}

function open(body: OpenBody, turn: Turn): Decided {
  const session = openedSession(body, turn.nowMs)
  return { ...decided(null, { t: 'opened', session }, turn), data: { atMs: turn.nowMs } }
}

function authorize({ subject, eras, code }: AuthorizeBody, turn: Turn): Decided {
  const session: LiveSession = {
    ...{ ...subject, grant: 'authorization_code', description: null, eras },
    ...{ status: 'asked', createdAtMs: turn.nowMs, usedAtMs: turn.nowMs },
    code: { ...code, untilMs: turn.nowMs + LIMITS.access.codeMs },
    ...{ access: null, former: null, refresh: null },
  }
  return { ...decided(null, { t: 'asked', session }, turn), data: { atMs: turn.nowMs } }
}

function exchange(state: LiveSession, body: ExchangeBody, turn: Turn): Decided {
  const { code } = state
  if (code === null || !isSameHash(code.hash, body.hash)) return refuse('the code is not known')
  // RFC 6749 4.1.2: what was issued for it is revoked; whoever was first may be the thief.
  if (state.status === 'open') {
    return end(state, 'the code was used a second time; its session was ended', turn, true)
  }
  if (code.untilMs <= turn.nowMs) refuse('the code has expired; ask for another')
  if (state.clientId !== body.clientId) refuse('the code was issued to another client')
  if (code.redirectUri !== body.redirectUri) {
    refuse('redirect_uri is not the one that the code was asked for with')
  }
  // RFC 9700 2.1.1: a verifier for a code without a challenge means that the challenge was taken
  // out of the authorization request.
  if (code.challenge === null && body.verifier !== null) {
    refuse('code_verifier was sent for a code that was asked for without a code_challenge')
  }
  if (code.challenge !== null) {
    if (body.verifier === null) refuse('code_verifier is missing')
    if (!isChallengeOf(code.challenge, body.verifier)) {
      refuse('code_verifier does not fit the code_challenge')
    }
  }
  return issue(state, { ...body, scope: state.scope }, turn)
}

function refresh(state: LiveSession, body: RefreshBody, turn: Turn): Decided {
  const kept = state.refresh
  if (kept === null || kept.family !== body.family) return refuse('the refresh token is not known')
  // RFC 9700 4.14.2: it was rotated, so two have it.
  if (!isSameHash(kept.hash, body.hash)) {
    return end(state, 'the refresh token was used before; its session was ended', turn, true)
  }
  if (kept.untilMs <= issuedAt(body, turn)) refuse('the refresh token has expired; sign in again')
  if (state.clientId !== body.clientId) {
    refuse('the refresh token was issued to another client')
  }
  const scope = body.scope === undefined ? state.scope : body.scope
  const next = { ...body.refresh, family: kept.family }
  return issue(state, { ...body, refresh: next, scope }, turn)
}

function issuedAt({ atMs }: IssuedAt, { nowMs }: Turn): number {
  return Math.min(atMs ?? nowMs, nowMs)
}

interface Issue extends IssuedAt {
  readonly access: Made
  readonly refresh: MadeRefresh | null
  readonly scope: string | null
}

function issue(state: LiveSession, of: Issue, turn: Turn): Decided {
  const { access, refresh: next, scope } = of
  const nowMs = issuedAt(of, turn)
  const last = state.access
  const until = nowMs + LIMITS.access.formerTokenMs
  const former = last && { ...last, untilMs: Math.min(last.untilMs, until) }
  const record: SessionRecordOf = {
    t: 'issued',
    access: { hash: access.hash, untilMs: nowMs + access.lifeMs, scope },
    former,
    refresh: next && {
      hash: next.hash,
      family: next.family,
      untilMs: nowMs + next.lifeMs,
    },
  }
  const issued = decided(state, record, turn, (after) => {
    const was = state.status === 'asked' ? null : listedEnd(state, next)
    const untilMs = listedEnd(after, next)
    return was === untilMs ? [] : [isListed(after, untilMs, turn)]
  })
  // An answer is kept with its entry: what its edge has no use for is left out.
  return { ...issued, data: { session: { ...issued.state, code: null, former: null } } }
}

/**
 * The end that the list is told, later than the real one by less than a thirtieth of its life: who
 * refreshes every hour has it written down once a day. By its real end the session itself goes.
 */
function listedEnd(session: LiveSession, next: MadeRefresh | null): number {
  const endMs = endOf(session)
  const unitMs = Math.max(1, Math.floor((next?.lifeMs ?? 0) / LISTED_PARTS))
  return Math.ceil(endMs / unitMs) * unitMs
}

const LISTED_PARTS = 30

function renew(state: LiveSession, { untilMs }: RenewBody, turn: Turn): Decided {
  if (state.access === null || state.refresh !== null || state.grant !== 'pat') {
    return refuse('only personal access tokens are renewed')
  }
  if (state.access.untilMs <= turn.nowMs) refuse('the token has expired; make another')
  return decided(state, { t: 'renewed', untilMs }, turn, (after) => [
    isListed(after, untilMs, turn),
  ])
}

/** The end, and what tells it to all members even if its edge dies (PROTOCOL 3.6 "Outbox"). */
function end(state: LiveSession, why: string, turn: Turn, isRefusal = false): Decided {
  const value = { at: new Date(turn.nowMs).toISOString() }
  const revoked: Effect = {
    to: { type: REVOCATION, key: turn.actorId },
    messages: [{ type: 'put', body: { value, ifAbsent: true } }],
  }
  const removed: Effect = {
    to: { type: SESSION_LIST, id: sessionListId(state) },
    messages: [{ type: 'remove', body: { sessionId: turn.actorId } }],
  }
  const effects = state.status === 'asked' ? [removed] : [revoked, removed]
  const ended = decided(state, { t: 'ended', why }, turn, () => effects)
  return isRefusal ? { ...ended, data: { ended: why } } : ended
}

/** The list knows when the session ends, to leave it out then. */
function isListed(after: LiveSession, untilMs: number, turn: Turn): Effect {
  const body = { sessionId: turn.actorId, isPat: after.grant === 'pat', untilMs }
  return {
    to: { type: SESSION_LIST, id: sessionListId(after) },
    messages: [{ type: 'touch', body }],
  }
}

type Decided = Extract<Decision<SessionState>, { ok: true }>

function decided(
  state: LiveSession | null,
  record: SessionRecordOf,
  turn: Turn,
  effectsOf: (after: LiveSession) => readonly Effect[] = () => [],
): Decided {
  const after = evolve(state, record, { timeMs: turn.nowMs })
  const effects = effectsOf(after.status === 'ended' ? state! : after)
  return {
    ok: true,
    records: [record],
    state: after,
    data: { session: after },
    ...(effects.length > 0 && { effects }),
  }
}

/** Thrown, a refusal is written nowhere: nothing has changed, and nobody asks again. */
function refuse(why: string): never {
  throw new RequestError('INVALID_STATE', why)
}

function evolve(
  state: SessionState | null,
  record: SessionRecordOf,
  { timeMs }: Pick<RecordMeta, 'timeMs'>,
): SessionState {
  if (record.t === 'asked' || record.t === 'opened') return record.session
  // What was before it may have gone already (`countsUntilMs`).
  if (record.t === 'ended') return { status: 'ended' }
  assert(state !== null && state.status !== 'ended', `a record "${record.t}" of a session`)
  switch (record.t) {
    case 'issued': {
      const { access, former, refresh: next } = record
      const issued = { status: 'open', access, former, refresh: next, usedAtMs: timeMs } as const
      return withLongest(state, { ...state, ...issued })
    }
    case 'renewed':
      return withLongest(state, {
        ...state,
        access: { ...state.access!, untilMs: record.untilMs },
      })
    default:
      return { ...state, usedAtMs: timeMs }
  }
}

/** It may be given an earlier end: then it keeps the latest that it has had. */
function withLongest(before: LiveSession, after: LiveSession): LiveSession {
  const longestMs = Math.max(endOf(before), before.longestMs ?? 0)
  return longestMs > endOf(after) ? { ...after, longestMs } : after
}
