// What goes into an answer before it meets a socket: status lines, error bodies, encoders. The
// exchange writes it.

import type { TSchema } from '@sinclair/typebox'
import fastJson from 'fast-json-stringify'
import type { Schema } from 'fast-json-stringify'
import { STATUS_CODES } from 'node:http'
import { statusOf } from '../../protocol/errors.ts'
import type { ErrorItem, RequestError } from '../../protocol/errors.ts'
import type { Operation, OperationResponse } from './operation.ts'

/** Turns a response's value into JSON text. */
export type Encode = (value: unknown) => string

/** An encoder for answers of a schema; values that don't fit it are our mistake and throw. */
export function encoderOf(schema: TSchema | undefined): Encode {
  if (schema === undefined) return JSON.stringify
  // A TypeBox schema is a JSON schema; the packages' types don't know each other.
  return fastJson(schema as unknown as Schema)
}

const STATUS_LINES: readonly string[] = Array.from(
  { length: 600 },
  (_, status) => `${status} ${STATUS_CODES[status] ?? 'Unknown'}`,
)

export function statusLine(status: number): string {
  return STATUS_LINES[status] ?? STATUS_LINES[500]!
}

/** Statuses that say "nothing was done, try again": they carry `Retry-After` (CONTRACT 1.13). */
export function asksToRetry(status: number): boolean {
  return status === 429 || status === 503 || status === 507
}

export const RETRY_AFTER_SECONDS = '1'

export function hasBody(response: OperationResponse): boolean {
  return response.body !== undefined || response.raw !== undefined
}

/** The response of a refusal, in the form of its operation (`Operation.errors`). */
export function refusal(
  error: RequestError,
  requestId: string,
  form: NonNullable<Operation['errors']>,
): OperationResponse {
  if (typeof form === 'function') return form(error)
  const first = error.errors[0]!
  if (form === 'platform')
    return { status: statusOf(first.code), body: errorBody(error, requestId) }
  return {
    status: statusOf(first.code),
    body: { error: oauthError(statusOf(first.code)), error_description: first.message },
  }
}

function oauthError(status: number): string {
  if (status === 401) return 'invalid_token'
  if (status === 429 || status === 503) return 'temporarily_unavailable'
  return status >= 500 ? 'server_error' : 'invalid_request'
}

/** `{errors, requestId}` (CONTRACT 0). */
export function errorBody(
  error: { readonly errors: readonly ErrorItem[] },
  requestId: string,
): { readonly errors: readonly ErrorItem[]; readonly requestId: string } {
  return { errors: error.errors, requestId }
}

/** A longer list of encodings is nobody's honest wish. */
const ACCEPT_CHARS_MAX = 256

/** Whether an Accept-Encoding names gzip with a weight above 0 (RFC 9110 12.5.3). */
export function acceptsGzip(accepted: string): boolean {
  if (accepted === '' || accepted.length > ACCEPT_CHARS_MAX) return false
  for (const choice of accepted.toLowerCase().split(',')) {
    const [coding, weight] = choice.split(';')
    const name = coding!.trim()
    if (name !== 'gzip' && name !== 'x-gzip' && name !== '*') continue
    const q = weight?.trim().startsWith('q=') === true ? Number(weight.trim().slice(2)) : 1
    return q > 0
  }
  return false
}
