// What a refusal says of the token that would have done (WWW-Authenticate). Source: RFC 6750 3,
// CONTRACT 0.

import type { Operation, OperationResponse } from '../operation.ts'

/** RFC 6750 3.1: without credentials no error code. */
export const NO_TOKEN = 'Bearer realm="kontor"'
export const BAD_TOKEN = 'Bearer realm="kontor", error="invalid_token"'

/** Entries that one challenge names. */
const NEEDS_MAX = 10
const SCOPE_CHARS_MAX = 1_024
/** Answers of refusals are read again up to this. */
const ANSWER_CHARS_MAX = 64 * 1024
/** RFC 6750 3: scope-token, so that nothing in it ends the quoted text. */
const SCOPE_TOKEN = /^[!#-[\]-~]+$/
/** Refusals that another scope would have passed, whether they name it or not. */
const BY_SCOPE: ReadonlySet<unknown> = new Set([
  ...['UNAUTHORIZED_MESSAGE', 'FORBIDDEN_NODE', 'FORBIDDEN_FIELD'],
])

interface Told {
  readonly code?: unknown
  readonly details?: { readonly needs?: unknown }
  /** GraphQL has both in there. */
  readonly extensions?: { readonly code?: unknown; readonly details?: { readonly needs?: unknown } }
}

/**
 * The challenge of an answer of 403, or null where no other token would have done. The entries are
 * those that the errors name (`details.needs`), else those of the operation.
 */
export function insufficientScope(
  operation: Pick<Operation, 'permissions'> | undefined,
  params: Readonly<Record<string, string>>,
  response: Pick<OperationResponse, 'body' | 'raw'>,
): string | null {
  const told = errorsOf(response).map(({ code, details, extensions }) => ({
    code: extensions?.code ?? code,
    needs: (extensions?.details ?? details)?.needs,
  }))
  const named = told.flatMap(({ needs }) => (typeof needs === 'string' ? needs.split(' ') : []))
  if (named.length === 0 && !told.some(({ code }) => BY_SCOPE.has(code))) return null
  const needs = named.length > 0 ? named : usualNeeds(operation?.permissions ?? [], params)
  const scope = [...new Set(needs.slice(0, NEEDS_MAX).map(written))].join(' ')
  const known = scope === '' || scope.length > SCOPE_CHARS_MAX ? '' : `, scope="${scope}"`
  return `Bearer realm="kontor", error="insufficient_scope"${known}`
}

/** Those of an answer of ours, which may be text already; of a long one nothing is told. */
function errorsOf({ body, raw }: Pick<OperationResponse, 'body' | 'raw'>): readonly Told[] {
  const isText = typeof raw === 'string' && raw.startsWith('{') && raw.length <= ANSWER_CHARS_MAX
  const { errors = [] } = ((isText ? JSON.parse(raw) : body) ?? {}) as {
    readonly errors?: readonly Told[]
  }
  return errors
}

/** The operation's entries for this path; what only the body tells is covered from above. */
function usualNeeds(
  permissions: readonly string[],
  params: Readonly<Record<string, string>>,
): readonly string[] {
  return permissions.map((permission) => {
    const colon = permission.indexOf(':')
    const path = permission.slice(0, colon).split('/')
    const unknown = path.findIndex((segment) => segment.includes('<'))
    const known = (unknown < 0 ? path : path.slice(0, unknown)).map((segment) =>
      segment.replace(/^\{(?:\*\*)?(\w+)\}$/, (_, name: string) => params[name] ?? ''),
    )
    const what = permission.slice(colon + 1)
    const may = what.startsWith('<') ? '*' : what.replace(/:<.*$/, '')
    return `${known.filter((segment) => segment !== '').join('/')}:${may}`
  })
}

/** The entry, or where it can't be written in a header one above it. */
function written(ace: string): string {
  if (SCOPE_TOKEN.test(ace)) return ace
  const [path = '', may = ''] = ace.split(':')
  const segments = path.split('/')
  const bad = segments.findIndex((segment) => !SCOPE_TOKEN.test(segment))
  const above = (bad < 0 ? segments : segments.slice(0, bad)).join('/')
  return SCOPE_TOKEN.test(may) ? `${above}:${may}` : `${above}:*`
}
