// What the OAuth endpoints read and refuse: forms, what a client shows of itself, and failures in
// the form of RFC 6749. Source: RFC 6749 2.3, 3.2, 5.2, RFC 7521 4.2, CONTRACT 1.11.

import { LIMITS } from '../../../config/limits.ts'
import type { OperationRequest, OperationResponse } from '../../http/operation.ts'

export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_token_type'
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
      body: { error: this.code, error_description: describable(this.message) },
    }
  }
}

/** RFC 6749 allows printable ASCII without quotes and backslashes in a description. */
export function describable(text: string): string {
  return text.replace(/[^ !#-[\]-~]/g, "'")
}

export type Form = ReadonlyMap<string, string>

/** Members of the form; empty ones count as absent, repeated ones are refused (RFC 6749 3.2). */
export function readForm(request: OperationRequest): Form {
  const { formBytesMax } = LIMITS.access
  if (request.bodyBytes.length > formBytesMax) {
    const most = `a form has at most ${formBytesMax} bytes`
    throw new OAuthError('invalid_request', most, { status: 413 })
  }
  const form = new Map<string, string>()
  for (const [name, value] of request.body as URLSearchParams) {
    if (form.has(name)) throw new OAuthError('invalid_request', `${name} is given twice`)
    form.set(name, value)
  }
  for (const [name, value] of form) if (value === '') form.delete(name)
  return form
}

/** What a client shows of itself: a secret, something that it signed, or nothing but its name. */
export type ShownClient =
  | {
      readonly by: 'secret'
      readonly clientId: string
      readonly secret: string
      /** As it was sent by Basic, where that may be meant. */
      readonly orElse?: string
    }
  | { readonly by: 'assertion'; readonly clientId: string | null; readonly assertion: string }
  | { readonly by: 'name'; readonly clientId: string }

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** In one way, never in two (RFC 6749 2.3); null: in none. */
export function readShownClient(authorization: string, form: Form): ShownClient | null {
  const formId = form.get('client_id')
  const formSecret = form.get('client_secret')
  const assertion = form.get('client_assertion')
  // Whatever is sent as Basic must be right, also what holds nothing.
  const basic = /^basic(\s|$)/i.test(authorization) ? authorization.slice(6).trim() : undefined
  if ([basic, formSecret, assertion].filter((one) => one !== undefined).length > 1) {
    throw new OAuthError(
      'invalid_request',
      'credentials are given twice: choose one of Basic, client_secret and client_assertion',
    )
  }
  if (basic !== undefined) {
    const shown = readBasic(basic)
    if (formId !== undefined && formId !== shown.clientId) {
      throw new OAuthError('invalid_request', 'client_id differs from the one given by Basic')
    }
    return { by: 'secret', ...shown }
  }
  if (assertion !== undefined) {
    if (form.get('client_assertion_type') !== ASSERTION_TYPE) {
      throw new OAuthError('invalid_request', `client_assertion_type should be ${ASSERTION_TYPE}`)
    }
    return { by: 'assertion', clientId: formId ?? null, assertion }
  }
  if (formSecret !== undefined) {
    if (formId === undefined) throw new OAuthError('invalid_request', 'client_id is missing')
    return { by: 'secret', clientId: formId, secret: formSecret }
  }
  return formId === undefined ? null : { by: 'name', clientId: formId }
}

const BASE64 = /^[\w+/-]+=*$/

/**
 * Both parts are form-encoded before they are joined (RFC 6749 2.3.1). Many clients send their
 * secret as it is, with a + or % that stands for itself: so it may be meant as well.
 */
function readBasic(encoded: string): Omit<Extract<ShownClient, { by: 'secret' }>, 'by'> {
  const text = Buffer.from(encoded, 'base64').toString()
  const colon = text.indexOf(':')
  const [clientId, secret] = [text.slice(0, Math.max(colon, 0)), text.slice(colon + 1)].map(
    formDecode,
  )
  if (!BASE64.test(encoded) || colon < 1 || !clientId || !secret) {
    throw new OAuthError('invalid_client', 'Basic should hold base64(client_id:client_secret)')
  }
  const sent = text.slice(colon + 1)
  return { clientId, secret, ...(/[+%]/.test(sent) && { orElse: sent }) }
}

/** What doesn't decode is taken literally. */
function formDecode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}
