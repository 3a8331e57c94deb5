// The form of an HTTP operation: stations declare tables of these, node/http serves them and the
// OpenAPI document is made from them. A station never sees a socket.

import type { TSchema } from '@sinclair/typebox'
import type { ErrorCode, RequestError } from '../../protocol/errors.ts'
import type { Identity } from '../access/identity.ts'

export interface OperationRequest {
  /**
   * Who calls. Reading it is an assertion error in an operation with access `none`, and with access
   * `either` when `isKnown` is false.
   */
  readonly identity: Identity
  /** A token was sent, and it is good. */
  readonly isKnown: boolean
  /** Path parameters by name; `{**rest}` holds the rest of the path with its slashes. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** A header by its lower-case name, repeated ones joined by `, `; empty when it was not sent. */
  header(name: string): string
  /**
   * Parsed and checked JSON body, or the URLSearchParams of a form (a repeated name shows in
   * `getAll`); undefined without a body.
   */
  readonly body: unknown
  /** Why the body is no good, where the operation handles that itself; `body` is undefined then. */
  readonly bodyFault: RequestError | null
  /** Raw body bytes, for hashes; empty without a body. */
  readonly bodyBytes: Uint8Array
  readonly requestId: string
  /**
   * IP address of the caller: what a trusted proxy says, else the other end of the connection. Read
   * it before anything is awaited: empty once the caller has gone, or has its answer.
   */
  readonly address: string
  /** Remaining time, at the moment it is read. */
  readonly budgetMs: number
  /**
   * True once the caller is known to have gone; what was begun still ends. A clean close during a
   * GET, PUT or DELETE shows only when the answer is written.
   */
  readonly aborted: () => boolean
}

export interface OperationResponse {
  readonly status: number
  /** Names in their usual spelling; a value with a line break is our mistake (500). */
  readonly headers?: Readonly<Record<string, string>>
  /** JSON value; undefined: empty body. */
  readonly body?: unknown
  /** Ready-made body instead (with its Content-Type in headers). */
  readonly raw?: string | Uint8Array
}

/** A streamed request and answer (bulk): lines in, lines out, both bounded. */
export interface LineStream {
  /** Lines of the body in order (without the line end), with their number from 1. */
  readonly lines: AsyncIterable<{ readonly number: number; readonly bytes: Buffer | 'too-large' }>
  /** Writes an answer line; resolves when there is room for more. */
  readonly write: (line: string) => Promise<void> | void
  /**
   * Who calls, looked up anew: a stream may outlive its token. A RequestError: the token is good no
   * more, or that can't be told at the moment.
   */
  readonly identityNow: () => Identity | RequestError | Promise<Identity | RequestError>
}

export interface OperationParameter {
  readonly name: string
  readonly in: 'query' | 'header'
  readonly description: string
  readonly required?: boolean
  readonly schema?: TSchema
}

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** `/resources/registry/{**key}`, `/resources/actors/{type}/{id}`. */
  readonly path: string
  readonly summary: string
  /** `none`: no token asked for; `either`: none is needed, one that is sent must be good. */
  readonly access: 'none' | 'either' | 'token'
  /**
   * ACEs that a caller's token must cover, for documents; `handle` is what asks for them. `{type}`
   * in one is that part of the path, `<node>` a thing of the body. Absent: any good token will do.
   */
  readonly permissions?: readonly string[]
  readonly body?: {
    readonly schema?: TSchema
    readonly type: 'json' | 'form' | 'ndjson'
    readonly required: boolean
    /** Code of a body that doesn't fit the schema; MALFORMED_REQUEST by default. */
    readonly code?: ErrorCode
    /** Instead of `schema` in the document, where the handler checks; may refer to `named`. */
    readonly shown?: () => object
    /** A whole body that is no good is refused by `handle`, which may have to remember it. */
    readonly handlesFaults?: true
  }
  /**
   * `sign-in`: who calls is counted by address, more strictly than all else (CONTRACT 0 "Rate
   * limits"); `own`: the operation counts by itself.
   */
  readonly rate?: 'sign-in' | 'own'
  /**
   * How refusals made before `handle` look: `oauth` is `{error, error_description}` (RFC 6749); a
   * function makes the answer itself.
   */
  readonly errors?: 'platform' | 'oauth' | ((refused: RequestError) => OperationResponse)
  /** Query parameters and headers for the OpenAPI document; nothing is checked by them. */
  readonly parameters?: readonly OperationParameter[]
  readonly response?: TSchema
  /** Schemas that the others refer to, as `#/components/schemas/<name>`. */
  readonly named?: () => Readonly<Record<string, object>>
  handle(request: OperationRequest): OperationResponse | Promise<OperationResponse>
  /** Instead of `handle` for `Content-Type: application/x-ndjson`. */
  readonly stream?: (request: OperationRequest, lines: LineStream) => Promise<void>
}
