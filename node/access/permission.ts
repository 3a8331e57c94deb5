// What a session may do; and what the owner of the `system` shard asks before a change of
// configuration, by its own maps: a member that lags behind, or is wrong, has let the request
// through, and may not speak for everybody. Source: PROTOCOL 3.0 "The system shard", CONTRACT 1.8,
// 1.14.

import { narrow, parseScope } from '../../protocol/ace.ts'
import type { Ace, Acl } from '../../protocol/ace.ts'
import { type Attributes, NO_ATTRIBUTES } from '../../protocol/attributes.ts'
import type { ConfigurationView, Turn } from '../../protocol/behaviour.ts'
import { aclOfClient } from './client.ts'
import { aclOfPrincipal } from './principal.ts'
import { REVOCATION } from './sessions/revocation.ts'
import { stillStanding } from './sessions/standing.ts'
import type { Standing } from './sessions/standing.ts'

/**
 * What a session may do: a client's what the client may, a person's what its roles grant, as far as
 * the client's registered scopes go; cut to the scope that was asked for.
 */
export function aclOfSession(
  scope: string | null,
  { client, principal }: Standing,
  view: ConfigurationView,
  attributes: Attributes = NO_ATTRIBUTES,
): Acl {
  const acl =
    principal === null
      ? aclOfClient(client, view, attributes)
      : cutTo(aclOfPrincipal(principal, view), client.properties.scopes?.join(' ') ?? null)
  return cutTo(acl, scope)
}

/** No more than the scope says; of one that can't be read nothing. */
export function cutTo(acl: Acl, scope: string | null): Acl {
  if (scope === null) return acl
  const scopes = parseScope(scope)
  return narrow(acl, scopes.ok ? scopes.aces : [])
}

/** An entry that would open nothing: it goes by an attribute that the identity hasn't. */
export function lacksAttribute(acl: Acl, { attribute }: Ace): boolean {
  return attribute !== null && !Object.hasOwn(acl.attributes, attribute)
}

type Calling = Pick<Turn, 'by' | 'session'>

/**
 * What the caller of this turn may do, or why nothing. That the session was there its member says;
 * that it has not been revoked of late, that its identity and client are those of then, and what
 * they may, is asked here.
 */
export function aclOfCaller(view: ConfigurationView, { by, session }: Calling): Acl | string {
  if (session === undefined) return 'this request has no session'
  if (view.get(REVOCATION, session.id) !== null) return 'the session of this request was ended'
  const standing = stillStanding({ ...session, identity: by }, view)
  if (standing === null) return 'the identity of this request is gone, suspended or another'
  return aclOfSession(session.scope, standing, view)
}
