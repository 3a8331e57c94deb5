// What the OAuth endpoints read and refuse: forms, client credentials, and failures in the form of
// RFC 6749.

import { LIMITS } from '../../config/limits.ts'
import type { OperationRequest, OperationResponse } from '../http/operation.ts'

export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'temporarily_unavailable'

interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** A refusal of an OAuth endpoint (RFC 6749 5.2): 400, for `invalid_client` 401. */
export class OAuthError extends Error {
  readonly code: OAuthErrorCode
  readonly answer: Answer
  constructor(code: OAuthErrorCode, description: string, answer: Answer = {}) {
    super(description)
    this.code = code
    this.answer = answer
  }

  response(headers: Readonly<Record<string, string>>): OperationResponse {
    const unknownClient = this.code === 'invalid_client'
    return {
      status: this.answer.status ?? (unknownClient ? 401 : 400),
      headers: {
        ...headers,
        ...this.answer.headers,
        ...(unknownClient && { 'WWW-Authenticate': 'Basic realm="kontor", charset="UTF-8"' }),
      },
      // RFC 6749 allows printable ASCII without quotes and backslashes in a description.
      body: { error: this.code, error_description: this.message.replace(/[^ !#-[\]-~]/g, "'") },
    }
  }
}

export type Form = ReadonlyMap<string, string>

/** Members of the form; empty ones count as absent, repeated ones are refused (RFC 6749 3.2). */
export function readForm(request: OperationRequest): Form {
  if (request.bodyBytes.length > LIMITS.access.formBytesMax) {
    throw new OAuthError(
      'invalid_request',
      `a form has at most ${LIMITS.access.formBytesMax} bytes`,
      {
        status: 413,
      },
    )
  }
  const form = new Map<string, string>()
  for (const [name, value] of request.body as URLSearchParams) {
    if (form.has(name)) throw new OAuthError('invalid_request', `${name} is given twice`)
    form.set(name, value)
  }
  for (const [name, value] of form) if (value === '') form.delete(name)
  return form
}

export interface ClientCredentials {
  readonly clientId: string
  readonly clientSecret: string
}

/** Credentials by Basic or in the form, never both (RFC 6749 2.3); null when there are none. */
export function readClientCredentials(authorization: string, form: Form): ClientCredentials | null {
  const formId = form.get('client_id')
  const formSecret = form.get('client_secret')
  const basic = /^basic +(\S+) *$/i.exec(authorization)?.[1]
  if (basic !== undefined) {
    if (formSecret !== undefined) {
      throw new OAuthError('invalid_request', 'credentials are given twice: by Basic and the form')
    }
    const credentials = readBasic(basic)
    if (formId !== undefined && formId !== credentials.clientId) {
      throw new OAuthError('invalid_request', 'client_id differs from the one given by Basic')
    }
    return credentials
  }
  if (formSecret === undefined) return null
  if (formId === undefined) throw new OAuthError('invalid_request', 'client_id is missing')
  return { clientId: formId, clientSecret: formSecret }
}

/** Both parts are form-encoded before they are joined (RFC 6749 2.3.1). */
function readBasic(encoded: string): ClientCredentials {
  const text = Buffer.from(encoded, 'base64').toString()
  const colon = text.indexOf(':')
  const [clientId, clientSecret] = [text.slice(0, Math.max(colon, 0)), text.slice(colon + 1)].map(
    formDecode,
  )
  if (colon < 1 || !clientId || !clientSecret) {
    throw new OAuthError('invalid_client', 'Basic should hold base64(client_id:client_secret)')
  }
  return { clientId, clientSecret }
}

/** Many clients send their secret as it is: what doesn't decode is taken literally. */
function formDecode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}
