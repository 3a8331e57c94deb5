// Identities and roles as HTTP shows them: everything but their secrets. Source: CONTRACT 1.8.

import type { SystemEntry } from '../../cluster/actor-system.ts'
import { formatAce } from '../../protocol/ace.ts'
import type { Acl } from '../../protocol/ace.ts'
import { grantedAces } from '../../protocol/granted-aces.ts'
import type { ShownActivity } from '../access/activity/last-activity.ts'
import { authMethodOf } from '../access/client.ts'
import type { Client } from '../access/client.ts'
import type { Principal } from '../access/principal.ts'
import { OWNER_ROLE, PORTAL_ACES, PORTAL_ROLE } from '../access/role.ts'
import type { Role } from '../access/role.ts'
import { etagOf } from '../system-actor.ts'

type Entry<T> = Pick<SystemEntry<T>, 'key' | 'version' | 'value'>

/** Without `activity` its members are left out: they can't be told at the moment. */
export function shownPrincipal(
  { key, version, value }: Entry<Principal>,
  activity: ShownActivity | null,
): Record<string, unknown> {
  const { properties, roles, accessAttributes, password, logins, createdAt, suspendedAt } = value
  return {
    id: key,
    type: 'principal',
    ...{ properties, roles, accessAttributes, createdAt, suspendedAt },
    ...told('lastActiveAt', activity?.lastActiveAt),
    passwordLogin: password !== null,
    passwordExpiresAt: password?.expiresAt ?? null,
    logins: logins ?? [],
    eTag: etagOf(version),
  }
}

/** Without `activity` as a principal. */
export function shownClient(
  { key, version, value }: Entry<Client>,
  activity: ShownActivity | null,
): Record<string, unknown> {
  const { properties, roles, isSystem, createdAt, suspendedAt } = value
  return {
    id: key,
    type: 'client',
    clientId: key,
    properties: { ...properties, tokenEndpointAuthMethod: authMethodOf(value) },
    ...{ roles, isSystem, createdAt, suspendedAt },
    ...told('lastActiveAt', activity?.lastActiveAt),
    secrets: value.secrets.map(({ secretId, createdAt: madeAt, expiresAt, description }) => ({
      secretId,
      createdAt: madeAt,
      expiresAt,
      ...told('lastUsedAt', activity?.secretUsedAt(secretId)),
      ...(description !== undefined && { description }),
    })),
    eTag: etagOf(version),
  }
}

/** Left out where it can't be told. */
function told(name: string, time: string | null | undefined): Record<string, string | null> {
  return time === undefined ? {} : { [name]: time }
}

export function shownRole({ key, version, value }: Entry<Role>): Record<string, unknown> {
  const { description, acl } = value
  return { key, description, acl, isSystem: false, eTag: etagOf(version) }
}

/** What a set grants, entry by entry as roles have them. */
export function shownAcl(acl: Acl): { entries: { resource: string; permission: string }[] } {
  return { entries: grantedAces(acl).map((ace) => entryOf(formatAce(ace))) }
}

/** The text of an entry, split at its first colon. */
export function entryOf(text: string): { resource: string; permission: string } {
  const colon = text.indexOf(':')
  return { resource: text.slice(0, colon), permission: text.slice(colon + 1) }
}

/** The roles that are there without being written. */
export const BUILT_IN_ROLES: readonly Record<string, unknown>[] = [
  {
    key: OWNER_ROLE,
    description: 'Full access; authorization is not asked',
    acl: { entries: [entryOf('*:*')] },
    isSystem: true,
    eTag: etagOf(0),
  },
  {
    key: PORTAL_ROLE,
    description: 'Full access to what the console works with; identities can be read',
    acl: { entries: PORTAL_ACES.map((ace) => entryOf(formatAce(ace))) },
    isSystem: true,
    eTag: etagOf(0),
  },
]
