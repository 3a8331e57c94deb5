// What all exchanges of one server share: its bounds, clock, log and state. The server owns it;
// exchanges count themselves in and out.

import type { ReleasingSet, Slotted } from '../../protocol/releasing-map.ts'
import type { RequestError } from '../../protocol/errors.ts'
import type { Identity } from '../access/identity.ts'
import type { LIMITS } from '../../config/limits.ts'
import type { Counter, Histogram } from '../metrics.ts'
import type { Encode } from './answer.ts'
import type { AnswerHeaders } from './guard/answer-headers.ts'
import type { Cors } from './guard/cors.ts'
import type { RateLimit } from './guard/rate-limit.ts'
import type { Packing } from './packing.ts'
import type { Peers } from './peer.ts'
import type { UnreadAnswers } from './unread.ts'
import type { Operation } from './operation.ts'
import type { ShapeCheck } from '../../protocol/json/validation.ts'

export interface Clock {
  /** Milliseconds since 1970. */
  nowMs(): number
  /** Milliseconds from any start, never going back. */
  monotonicMs(): number
}

/** The part of a logger that this folder uses (pino's has it). */
export interface Log {
  error(fields: object, message: string): void
  warn(fields: object, message: string): void
  info(fields: object, message: string): void
}

/**
 * Whose token this is; '' when none was sent. A promise only while the answer isn't at hand.
 * `addressOf` the caller, asked where it matters: strangers of one network share what is done for
 * them; empty where nobody can tell.
 */
export type Authenticate = (
  authorization: string,
  addressOf?: () => string,
) => Identity | RequestError | Promise<Identity | RequestError>

/** The bounds of this folder, and those of others that it keeps to; a test may have its own. */
export type HttpLimits = {
  readonly [
    Name in
      | keyof typeof LIMITS.http
      | 'jsonDepthMax'
      | 'requestBudgetMs'
      | 'systemStaleMs'
      | 'unknownOutcomeMs'
  ]: number
}

/** One row of the table with what was compiled from it. */
export interface Route {
  readonly operation: Operation
  readonly check: ShapeCheck | null
  readonly encode: Encode
  readonly counts: RouteCounts
  readonly door: Door
}

/** What a request of one operation may bring; of all of them, a table (`doors.ts`). */
export interface Door {
  /** Bytes of a body, packed and unpacked. */
  readonly bytesMax: number
  /** Whether a gzip body is unpacked. */
  readonly packed: boolean
  /** From the head to the last byte of its body. */
  readonly bodyMs: number
}

/** Bytes of bodies that are still arriving, of those who share a bound. */
export interface BodyPool {
  readonly bytesMax: number
  bytes: number
}

/** Requests of one route by status, and how long they took. */
export interface RouteCounts {
  readonly seconds: Histogram
  /** The counter of a status, made when it first appears. */
  status(status: number): Counter
}

/** State of one server. */
export interface HttpCore {
  readonly limits: HttpLimits
  readonly clock: Clock
  readonly log: Log
  readonly authenticate: Authenticate
  readonly newRequestId: () => string
  /** What all answers have. */
  readonly headers: AnswerHeaders
  readonly cors: Cors
  /** Requests in a minute: of a caller, and of an address to operations that sign in. */
  readonly rates: { readonly client: RateLimit | null; readonly signIn: RateLimit | null }
  /** Counts of requests that met no operation. */
  readonly strays: RouteCounts
  /** Exchanges that outlived the callback they began in. */
  readonly open: ReleasingSet<Slotted>
  /** Bodies of callers with a token, half-sent lines of their streams, bodies of all others. */
  readonly bodies: {
    readonly known: BodyPool
    readonly lines: BodyPool
    readonly strangers: BodyPool
  }
  /** Bytes that streams have read ahead, all together. */
  readAheadBytes: number
  readonly peers: Peers
  /** Answers that are being packed. */
  readonly packing: Packing
  /** Answers that their clients have not taken yet. */
  readonly unread: UnreadAnswers
  /** Requests that came in this turn of the loop. */
  arrivedTogether: number
  /** Number of this turn. */
  turn: number
  /** True while uWebSockets.js is calling us: the socket is corked already. */
  corked: boolean
  /** Most operations are still to come: what isn't known may be soon. */
  starting: boolean
  /** Shutting down: every answer closes its connection. */
  closing: boolean
  /** Connections that are idle may be closed after this time, on the monotonic clock. */
  quietFromMs: number
}
