// One owner always stays who can still sign in, or nobody could ever mend anything: decided by the
// owner of the system shard, over what its turns have decided, so that two requests at once don't
// remove the last two. An owner is a client that signs in by itself, or a person for whom there is
// a client to sign in with. What ends by itself counts for nothing: temporary passwords, secrets
// that expire, personal access tokens. Source: CONTRACT 1.8 "one owner stays".

import type { ConfigurationView } from '../../../protocol/behaviour.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { ErrorItem } from '../../../protocol/errors.ts'
import { parseAce } from '../../../protocol/ace.ts'
import { canVerify } from '../client-keys.ts'
import { aclOfClient, authMethodOf, isPublic, mayUseCodes } from '../client.ts'
import type { Client } from '../client.ts'
import { canLeadTo } from '../oauth/redirects.ts'
import { OWNER_ROLE } from '../role.ts'
import type { Principal } from '../principal.ts'

/** Of a client: it can show who it is, for as long as nobody changes it. */
function canShowItself(client: Client): boolean {
  const method = authMethodOf(client)
  if (method === 'private_key_jwt') return (client.properties.jwks?.keys ?? []).some(canVerify)
  return client.secrets.some(({ expiresAt }) => expiresAt === null)
}

/** May do everything, by itself. */
function standsAsClient(client: Client, view: ConfigurationView): boolean {
  if (client.suspendedAt !== null || !client.roles.includes(OWNER_ROLE)) return false
  if (!client.properties.grantTypes.includes('client_credentials')) return false
  return canShowItself(client) && aclOfClient(client, view).everything
}

/** A person who signs in with it gets a session that may do all that the person may. */
function letsOwnersIn(client: Client): boolean {
  if (client.suspendedAt !== null || !mayUseCodes(client)) return false
  const { redirectUris, scopes } = client.properties
  if (!redirectUris.some(canLeadTo)) return false
  return (isPublic(client) || canShowItself(client)) && (scopes?.some(isEverything) ?? true)
}

function isEverything(scope: string): boolean {
  const parsed = parseAce(scope)
  return parsed.ok && parsed.ace.path.length === 0
}

/** May do everything, with a client to sign in with. */
function standsAsPrincipal({ suspendedAt, roles, password }: Principal): boolean {
  if (suspendedAt !== null || !roles.includes(OWNER_ROLE)) return false
  return password !== null && password.expiresAt === null
}

export interface OwnerChange<T> {
  readonly key: string
  readonly before: T | null
  readonly after: T | null
}

/** Refuses a change of a client that would leave no owner; null: one stays. */
export function refusalOfLastClient(
  view: ConfigurationView,
  { key, before, after }: OwnerChange<Client>,
): ErrorItem | null {
  const loses = (counts: (client: Client) => boolean): boolean =>
    before !== null && counts(before) && !(after !== null && counts(after))
  const isLost = loses((client) => standsAsClient(client, view)) || loses(letsOwnersIn)
  return isLost ? refusalWith(view, { client: { key, value: after } }) : null
}

/** Refuses a change of a principal that would leave no owner; null: one stays. */
export function refusalOfLastPrincipal(
  view: ConfigurationView,
  { key, before, after }: OwnerChange<Principal>,
): ErrorItem | null {
  const isLost = before !== null && standsAsPrincipal(before)
  if (!isLost || (after !== null && standsAsPrincipal(after))) return null
  return refusalWith(view, { principal: { key, value: after } })
}

/** What becomes of one of them. */
interface Becoming {
  readonly client?: { readonly key: string; readonly value: Client | null }
  readonly principal?: { readonly key: string; readonly value: Principal | null }
}

function refusalWith(view: ConfigurationView, becoming: Becoming): ErrorItem | null {
  // Where none can sign in as it is, no change takes the last one away.
  if (hasOwner(view, becoming) || !hasOwner(view, {})) return null
  const last = `the last active identity with the role ${OWNER_ROLE} that can sign in`
  const what = `this is ${last}, or the last client that such people sign in with`
  const client = 'a client with client_credentials and a secret that does not expire, or a key'
  const person = 'a person with a password that is not temporary'
  const door = 'and a client with authorization_code, a redirect URI and no narrower scopes'
  return errorItem(
    'LAST_OWNER',
    `${what}; make another one first: ${client}; or ${person}, ${door}`,
  )
}

/** Clients first: there are few of them, and the search ends with the first that is found. */
function hasOwner(view: ConfigurationView, { client, principal }: Becoming): boolean {
  let isOpen = false
  for (const value of valuesOf<Client>(view, 'client', client)) {
    if (standsAsClient(value, view)) return true
    isOpen ||= letsOwnersIn(value)
  }
  if (!isOpen) return false
  for (const value of valuesOf<Principal>(view, 'principal', principal)) {
    if (standsAsPrincipal(value)) return true
  }
  return false
}

function* valuesOf<T>(
  view: ConfigurationView,
  type: 'client' | 'principal',
  becoming: { readonly key: string; readonly value: T | null } | undefined,
): Iterable<T> {
  for (const { key, value } of view.all<T>(type)) {
    if (key !== becoming?.key) yield value
  }
  if (becoming !== undefined && becoming.value !== null) yield becoming.value
}
