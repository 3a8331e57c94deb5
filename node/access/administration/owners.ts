// One owner always stays who can still sign in, or nobody could ever mend anything: decided by the
// owner of the system shard, over what its turns have decided, so that two requests at once don't
// remove the last two. Source: CONTRACT 1.8 "one owner stays".

import type { ConfigurationView } from '../../../protocol/behaviour.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { ErrorItem } from '../../../protocol/errors.ts'
import { canVerify } from '../client-keys.ts'
import { aclOfClient, authMethodOf } from '../client.ts'
import type { Client } from '../client.ts'
import { OWNER_ROLE } from '../role.ts'
import type { Principal } from '../principal.ts'

type Kind = 'client' | 'principal'

/** May do everything, by itself, for as long as nobody changes it. */
function standsAsClient(client: Client, view: ConfigurationView): boolean {
  if (client.suspendedAt !== null || !client.roles.includes(OWNER_ROLE)) return false
  if (!client.properties.grantTypes.includes('client_credentials')) return false
  const method = authMethodOf(client)
  const canSignIn =
    method === 'private_key_jwt'
      ? (client.properties.jwks?.keys ?? []).some(canVerify)
      : method !== 'none' && client.secrets.some(({ expiresAt }) => expiresAt === null)
  return canSignIn && aclOfClient(client, view).everything
}

/** A temporary password doesn't count: it ends by itself. */
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
  const isLost = before !== null && standsAsClient(before, view)
  if (!isLost || (after !== null && standsAsClient(after, view))) return null
  return refusalWithout(view, 'client', key)
}

/** Refuses a change of a principal that would leave no owner; null: one stays. */
export function refusalOfLastPrincipal(
  view: ConfigurationView,
  { key, before, after }: OwnerChange<Principal>,
): ErrorItem | null {
  const isLost = before !== null && standsAsPrincipal(before)
  if (!isLost || (after !== null && standsAsPrincipal(after))) return null
  return refusalWithout(view, 'principal', key)
}

/** Clients first: there are few of them, and the search ends with the first that is found. */
function refusalWithout(view: ConfigurationView, kind: Kind, without: string): ErrorItem | null {
  for (const { key, value } of view.all<Client>('client')) {
    if (!(kind === 'client' && key === without) && standsAsClient(value, view)) return null
  }
  for (const { key, value } of view.all<Principal>('principal')) {
    if (!(kind === 'principal' && key === without) && standsAsPrincipal(value)) return null
  }
  const what = `this is the last active identity with the role ${OWNER_ROLE} that can sign in`
  return errorItem('LAST_OWNER', `${what}; make another one first`)
}
