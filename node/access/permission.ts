// What the owner of the `system` shard asks before a change of configuration, by its own maps: a
// member that lags behind, or is wrong, has let the request through, and may not speak for its
// caller. Source: PROTOCOL 3.0 "The system shard", CONTRACT 1.14.

import { LIMITS } from '../../config/limits.ts'
import { narrow, parseScope } from '../../protocol/ace.ts'
import type { Acl } from '../../protocol/ace.ts'
import { type Attributes, NO_ATTRIBUTES } from '../../protocol/attributes.ts'
import type { ConfigurationView, Turn } from '../../protocol/behaviour.ts'
import { aclOfClient } from './client.ts'
import type { Client } from './client.ts'
import type { Session } from './session.ts'

/** What a client's session may do: what the client may, cut to the scope that it asked for. */
export function aclOfSession(
  { scope }: Pick<Session, 'scope'>,
  client: Client,
  view: ConfigurationView,
  attributes: Attributes = NO_ATTRIBUTES,
): Acl {
  const acl = aclOfClient(client, view, attributes)
  if (scope === null) return acl
  const scopes = parseScope(scope)
  return narrow(acl, scopes.ok ? scopes.aces : [])
}

/**
 * Why the caller of this turn may not do what needs this permission; null: it may. A session that
 * has ended of late by this clock still counts: its end is the edge's to see, and clocks differ.
 */
export function refusalOf(
  view: ConfigurationView,
  { by, session, nowMs }: Pick<Turn, 'by' | 'session' | 'nowMs'>,
  resource: string,
  permission: string,
): string | null {
  const found = session === undefined ? null : view.get<Session>('session', session)
  if (found === null) return 'the session of this request is not known: it was ended'
  const { identity, kind, expiresAt } = found.value
  const isOver = Date.parse(expiresAt) + LIMITS.redis.sealAgeMs < nowMs
  if (isOver || kind !== 'client' || identity !== by) return 'the session is not of this request'
  const client = view.get<Client>('client', identity)
  if (client === null || client.value.suspendedAt !== null) {
    return 'the identity of this request is gone or suspended'
  }
  return aclOfSession(found.value, client.value, view).covers(resource, permission)
    ? null
    : `this needs the ACE ${resource}:${permission}`
}
