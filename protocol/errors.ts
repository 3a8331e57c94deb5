// The error table: every code a caller can meet, with its HTTP status and what the caller should do
// next. Stations choose a code, node/http turns it into a status line. Source: CONTRACT 1.13.

/** What a caller should do with a failure: change the request, try the same one again, or ask. */
export type Advice = 'change' | 'retry' | 'repeat-with-key'

interface ErrorRow {
  readonly status: number
  readonly advice: Advice
}

const change = (status: number): ErrorRow => ({ status, advice: 'change' })
/** Nothing was done; the same request may be sent again after `Retry-After`. */
const retry = (status: number): ErrorRow => ({ status, advice: 'retry' })

export const ERRORS = {
  MALFORMED_REQUEST: change(400),
  INVALID_MESSAGE_BODY: change(400),
  INVALID_QUERY: change(400),
  INVALID_FILTER: change(400),
  INVALID_PARAMETERS: change(400),
  INVALID_PASSWORD: change(400),
  DUPLICATE_ALIAS: change(400),
  INVALID_REGISTRY_VALUE: change(422),
  WEAK_PASSWORD: change(422),
  UNAUTHENTICATED: change(401),
  AUTH_FAILED: change(401),
  FORBIDDEN: change(403),
  UNAUTHORIZED_MESSAGE: change(403),
  FORBIDDEN_NODE: change(403),
  FORBIDDEN_FIELD: change(403),
  SYSTEM_ROLE: change(403),
  SYSTEM_CLIENT: change(403),
  NOT_FOUND: change(404),
  METHOD_NOT_ALLOWED: change(405),
  NOT_ACCEPTABLE: change(406),
  CONFLICT: change(409),
  ALREADY_EXISTS: change(409),
  LAST_OWNER: change(409),
  DUPLICATE_ID: change(409),
  QUARANTINED: change(409),
  VOID: change(409),
  TOO_LARGE: change(413),
  UNSUPPORTED_MEDIA_TYPE: change(415),
  UPGRADE_REQUIRED: change(426),
  INVALID_COMMAND: change(422),
  INVALID_STATE: change(422),
  NOTHING_TO_INVOICE: change(422),
  UNDEFINED_ACTOR_TYPE: change(422),
  NOT_AVAILABLE: change(422),
  IDEMPOTENCY_MISMATCH: change(422),
  TOO_BUSY: retry(429),
  RATE_LIMITED: retry(429),
  INTERNAL_ERROR: change(500),
  COMPONENT_ERROR: change(500),
  POISONED: change(500),
  UNAVAILABLE: retry(503),
  INDEX_BEHIND: retry(503),
  OUTCOME_UNKNOWN: { status: 504, advice: 'repeat-with-key' },
  STORAGE_FULL: retry(507),
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof ERRORS

/** One failure as the caller sees it. `code` is usually of the table; a rule may bring its own. */
export interface ErrorItem {
  readonly code: string
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>>
}

export function errorItem(
  code: ErrorCode,
  message: string,
  details?: Readonly<Record<string, unknown>>,
): ErrorItem {
  return details === undefined ? { code, message } : { code, message, details }
}

/** HTTP status of a code; codes outside the table (a rule's own) and UNDEFINED_x_TYPE are 422. */
export function statusOf(code: string): number {
  return code in ERRORS ? ERRORS[code as ErrorCode].status : 422
}

/** True when the same request may simply be sent again: nothing was done. */
export function isRetryable(code: string): boolean {
  return code in ERRORS && ERRORS[code as ErrorCode].advice === 'retry'
}

/**
 * A refusal on its way to the caller. Thrown by stations for the world's mistakes, never for ours.
 */
export class RequestError extends Error {
  readonly errors: readonly ErrorItem[]
  constructor(code: ErrorCode, message: string, details?: Readonly<Record<string, unknown>>) {
    super(message)
    this.errors = [errorItem(code, message, details)]
  }
  get status(): number {
    return statusOf(this.errors[0]!.code)
  }
}

/**
 * The refusal of a caller who lacks an entry; `more` follows it in the message. `details.needs` has
 * it for programs, and for the challenge of RFC 6750.
 */
export function lacking(ace: string, more = ''): RequestError {
  return new RequestError('FORBIDDEN', `this needs the ACE ${ace}${more}`, { needs: ace })
}

/**
 * Our own mistake: a state that can't be. Stops what it happens in; never shown as the caller's.
 */
export class AssertionError extends Error {}

export function assert(condition: unknown, what: string): asserts condition {
  if (!condition) throw new AssertionError(what)
}
