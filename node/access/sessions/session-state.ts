// What a session keeps, what is asked of it and what it tells: the words between its actor
// (`session.ts`) and its edge (`sessions.ts`). Source: CONTRACT 1.11.

import type { Subject } from './grants.ts'

/** An identity and a client as they were: another era, and the session is over (`standing.ts`). */
export type Eras = readonly [identity: string, client: string]

/** A hash, and until when (milliseconds since 1970) what it is of is good. */
export interface Kept {
  readonly hash: string
  readonly untilMs: number
}

export interface KeptAccess extends Kept {
  /** ACEs of it: a refresh may ask for fewer than its session has. */
  readonly scope: string | null
}

interface KeptCode extends Kept {
  readonly redirectUri: string
  readonly challenge: string | null
}

export interface KeptRefresh extends Kept {
  /** Of the part that all refresh tokens of a session share: one of them, if not the newest. */
  readonly family: string
}

/** A session before its end. */
export interface LiveSession extends Subject {
  readonly status: 'asked' | 'open'
  readonly grant: string
  readonly description: string | null
  readonly eras: Eras
  readonly createdAtMs: number
  readonly usedAtMs: number
  /** Its hash stays when it was used: who brings it again ends the session. */
  readonly code: KeptCode | null
  readonly access: KeptAccess | null
  /** The access token before, good for a moment: requests under way have it. */
  readonly former: KeptAccess | null
  readonly refresh: KeptRefresh | null
  /** The latest end that it has had, where that is later than the present one. */
  readonly longestMs?: number
}

export type SessionState = LiveSession | { readonly status: 'ended' }

export interface OpenBody {
  readonly subject: Subject
  readonly grant: string
  readonly description: string | null
  readonly eras: Eras
  /** Made for a time from its turn on, or up to a moment that was chosen. */
  readonly access: Made | Kept
}

export interface AuthorizeBody {
  readonly subject: Subject
  readonly eras: Eras
  readonly code: Omit<KeptCode, 'untilMs'>
}

/** A token that the edge has made: its hash, and how long it is to live. */
export interface Made {
  readonly hash: string
  readonly lifeMs: number
}

/** What tokens are issued by. */
export interface IssuedAt {
  /**
   * By the clock of the member that makes the tokens. A session's own time never goes back: had its
   * owner's clock been ahead for a moment, what is issued since would live for as long besides.
   */
  readonly atMs?: number
}

export interface MadeRefresh extends Made {
  readonly family: string
}

export interface ExchangeBody extends IssuedAt {
  readonly hash: string
  readonly clientId: string
  readonly redirectUri: string
  readonly verifier: string | null
  readonly access: Made
  readonly refresh: MadeRefresh | null
}

export interface RefreshBody extends IssuedAt {
  readonly hash: string
  readonly family: string
  readonly clientId: string
  /** ACEs of the new access token; absent: all that the session has. */
  readonly scope?: string | null
  readonly access: Made
  readonly refresh: Made
}

export interface RenewBody {
  readonly untilMs: number
}

/** What the turn that makes a session tells: an answer is kept with its entry, so no more. */
export interface MadeAnswer {
  readonly atMs: number
}

/** What the others tell their edge; a refusal that ends nothing is the message's error. */
export type SessionAnswer =
  | { readonly session: SessionState }
  /** It was refused, and the session ended for it. */
  | { readonly ended: string }

/** From then on nothing of it is good. */
export function endOf(session: LiveSession): number {
  const { code, access, status } = session
  if (status === 'asked') return code?.untilMs ?? 0
  return Math.max(access?.untilMs ?? 0, session.refresh?.untilMs ?? 0)
}

/** A session as it is right after it was opened, at the time that its turn tells. */
export function openedSession(
  { subject, grant, description, eras, access }: OpenBody,
  atMs: number,
): LiveSession {
  return {
    ...{ ...subject, grant, description, eras },
    ...{ status: 'open', createdAtMs: atMs, usedAtMs: atMs },
    access: {
      hash: access.hash,
      untilMs: 'lifeMs' in access ? atMs + access.lifeMs : access.untilMs,
      scope: subject.scope,
    },
    ...{ code: null, former: null, refresh: null },
  }
}
