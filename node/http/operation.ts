// The form of an HTTP operation: stations declare tables of these, node/http serves them and the
// OpenAPI document is made from them. A station never sees a socket.

import type { TSchema } from '@sinclair/typebox'
import type { Identity } from '../access/identity.ts'

export interface OperationRequest {
  readonly identity: Identity
  /** Path parameters by name; `{**rest}` holds the rest of the path with its slashes. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  header(name: string): string
  /** Parsed and checked JSON body; undefined without one. */
  readonly body: unknown
  /** Raw body bytes, for hashes; empty without a body. */
  readonly bodyBytes: Uint8Array
  readonly requestId: string
  /** Remaining time. */
  readonly budgetMs: number
  /** True once the caller has gone; what was begun still ends. */
  readonly aborted: () => boolean
}

export interface OperationResponse {
  readonly status: number
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
  write(line: string): Promise<void> | void
}

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** `/resources/registry/{**key}`, `/resources/actors/{type}/{id}`. */
  readonly path: string
  readonly summary: string
  /** `none`: no token asked for. */
  readonly access: 'none' | 'token'
  readonly body?: {
    readonly schema?: TSchema
    readonly type: 'json' | 'form' | 'ndjson'
    readonly required: boolean
  }
  readonly response?: TSchema
  handle(request: OperationRequest): OperationResponse | Promise<OperationResponse>
  /** Instead of `handle` for `Content-Type: application/x-ndjson`. */
  readonly stream?: (request: OperationRequest, lines: LineStream) => Promise<void>
}
