// What the OAuth endpoints ask of sessions, and what they are told: sign-ins, codes, tokens and
// their rotation. Each is decided in one place, the turn of the session's actor; what is refused
// there comes back as a value, what can't be told is a RequestError. Source: CONTRACT 1.11, RFC
// 6749, RFC 7636, RFC 9700.

/** Whom a session is for. */
export interface Subject {
  /** Id of the client or principal that acts. */
  readonly identity: string
  readonly kind: 'client' | 'principal'
  /** Client that the tokens are issued to; for `kind: 'client'` the identity itself. */
  readonly clientId: string
  /** ACEs as asked for; null: all that the identity has, whatever that comes to be. */
  readonly scope: string | null
}

/** What a consented authorization request leaves until its code is brought back. */
export interface Authorization extends Subject {
  /** As the request had it; the token request must bring the same (RFC 6749 4.1.3). */
  readonly redirectUri: string
  /** `code_challenge` of method S256; null: the request had none (RFC 7636 4.4). */
  readonly challenge: string | null
}

/** A token request by code. The client is authenticated already, or is a public one. */
export interface CodeUse {
  readonly code: string
  readonly clientId: string
  readonly redirectUri: string
  /** `code_verifier`; null: none was sent. */
  readonly verifier: string | null
  /** The client is registered for `refresh_token`: a refresh token goes along. */
  readonly withRefresh: boolean
}

/** A token request by refresh token. The client is authenticated already, or is a public one. */
export interface RefreshUse {
  readonly refreshToken: string
  readonly clientId: string
  /**
   * Whether a scope that was asked for may be had of the one that was granted; null where none was
   * asked for. Returns the scope of the new access token, or why not (`invalid_scope`).
   */
  readonly narrowed: ((granted: string | null) => Narrowed) | null
}

export type Narrowed =
  | { readonly ok: true; readonly scope: string | null }
  | { readonly ok: false; readonly reason: string }

/** What a session shows of itself: nothing that opens anything. */
export interface SessionRecord extends Subject {
  readonly sessionId: string
  /** How it came to be: `client_credentials`, `authorization_code`, `pat`. */
  readonly grant: string
  /** Milliseconds since 1970, as all times here. */
  readonly createdAtMs: number
  /** To the hour, more or less. */
  readonly lastUsedAtMs: number
  /** From then on nothing of it is good: neither the access token, nor the refresh token. */
  readonly expiresAtMs: number
  /** Of a personal access token. */
  readonly description: string | null
}

/** Tokens as they were issued; they are kept nowhere. */
export interface IssuedTokens {
  readonly session: SessionRecord
  readonly accessToken: string
  /** Seconds for which the access token is good. */
  readonly expiresIn: number
  /** null: none is issued. */
  readonly refreshToken: string | null
  /** ACEs of this access token; null: all that the identity has. */
  readonly scope: string | null
}

/** Nothing was issued. What ends a session on the way (a code or token used twice) has ended it. */
export interface GrantRefusal {
  readonly refused: 'invalid_grant' | 'invalid_scope'
  /** For people; no part of a secret is in it. */
  readonly reason: string
}

/** Whom a change is for, and its request id. */
export interface SessionOrigin {
  readonly trace: string
}

/**
 * Sessions as the endpoints use them. All methods throw RequestError where it can't be told (429,
 * 503, 504), and never a refusal; when they return, what they say is durable.
 */
export interface SessionGrants {
  /** A session with its access token at once, without a refresh token (client_credentials). */
  open(
    subject: Subject & { readonly grant: 'client_credentials' },
    origin: SessionOrigin,
  ): Promise<IssuedTokens>
  /** A session that waits for its code to be brought back, for LIMITS.access.codeMs. */
  authorize(authorization: Authorization, origin: SessionOrigin): Promise<{ readonly code: string }>
  /** A code for tokens, once: its second use ends the session (RFC 6749 4.1.2). */
  exchange(use: CodeUse, origin: SessionOrigin): Promise<IssuedTokens | GrantRefusal>
  /** New tokens for a refresh token; an old one ends the session (RFC 9700 4.14.2). */
  refresh(use: RefreshUse, origin: SessionOrigin): Promise<IssuedTokens | GrantRefusal>
  /** The session of an access or refresh token, over or not; null: it is no token of ours. */
  find(token: string): Promise<SessionRecord | null>
  /** Ends a session: its tokens are refused by every member from now on, within a second. */
  end(sessionId: string, origin: SessionOrigin): Promise<void>
}
