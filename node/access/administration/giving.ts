// Nobody gives more than they hold: whoever changes an identity must be able to do all that it can
// do before and after, whoever writes a role all that it grants. Decided by the owner of the system
// shard, by its own maps. Source: CONTRACT 1.8 "Nobody gives more than they hold".

import type { Acl } from '../../../protocol/ace.ts'
import type { ConfigurationView } from '../../../protocol/behaviour.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { ErrorItem } from '../../../protocol/errors.ts'
import type { Change } from '../../system-actor.ts'
import { aclOfCaller } from '../permission.ts'
import { OWNER_ROLE, PORTAL_ROLE } from '../role.ts'
import type { ShapeError } from '../../../protocol/json/validation.ts'

/** What an identity is, as far as the rules of changes go. */
interface Ageing {
  readonly createdAt: string
  readonly suspendedAt: string | null
  readonly sessionEpoch?: number
}

/** The caller of a change with this permission, or why there is none. */
export function callerFor(
  { view, turn }: Pick<Change<unknown>, 'view' | 'turn'>,
  resource: string,
  permission: string,
): Acl | string {
  const caller = aclOfCaller(view, turn)
  if (typeof caller === 'string' || caller.covers(resource, permission)) return caller
  return `this needs the ACE ${resource}:${permission}`
}

/** What the identity may do must be the caller's, too; null: it is. */
export function refusalToGive<T>(
  caller: Acl,
  view: ConfigurationView,
  changed: { readonly of: readonly (T | null)[]; readonly acl: AclOf<T> },
): string | null {
  const holdsAll = changed.of.every(
    (one) => one === null || caller.coversAcl(changed.acl(one, view)),
  )
  if (holdsAll) return null
  return 'this identity has, or would get, permissions that you do not hold: nobody gives more'
}

/**
 * A role that is not there would grant whatever it comes to be, and nobody asked whether its giver
 * holds that: only owners give one before it is made. null: all that are new are there.
 */
export function refusalOfUnmadeRole(
  caller: Acl,
  view: ConfigurationView,
  { before, after }: { readonly before: Holder | null; readonly after: Holder | null },
): string | null {
  if (caller.everything || after === null) return null
  const had = new Set(before?.roles)
  const unmade = after.roles.find((role) => {
    return !had.has(role) && !role.startsWith('system:') && view.get('role', role) === null
  })
  if (unmade === undefined) return null
  return `there is no role "${unmade}": before it is made only owners give it`
}

interface Holder {
  readonly roles: readonly string[]
}

/** Who did what is told by ids alone (1.8 "Audit"), so no two identities have the same. */
export function refusalOfTakenId<T>(
  { view, turn, before }: Pick<Change<T>, 'view' | 'turn' | 'before'>,
  other: 'client' | 'principal',
): ErrorItem | null {
  if (before !== null || view.get(other, turn.key!) === null) return null
  return errorItem('ALREADY_EXISTS', `"${turn.key}" is the id of a ${other}`)
}

type AclOf<T> = (value: T, view: ConfigurationView) => Acl

/**
 * What no change of an identity may do: bring back one that was deleted, or was made at another
 * time, or let sessions go on that suspension (or `isNewlyShut`) ends.
 */
export function refusalOfTimes<T extends Ageing>(
  { turn }: Pick<Change<T>, 'turn'>,
  change: { readonly before: T | null; readonly after: T; readonly isNewlyShut?: boolean },
): ErrorItem | string | null {
  const { before, after, isNewlyShut = false } = change
  if (before === null) {
    if (turn.version === 0) return null
    return errorItem('CONFLICT', `"${turn.key}" was deleted; make an identity with another id`)
  }
  if (before.createdAt !== after.createdAt) return 'when an identity was made does not change'
  const ends = isNewlyShut || (before.suspendedAt === null && after.suspendedAt !== null)
  const least = (before.sessionEpoch ?? 0) + (ends ? 1 : 0)
  if ((after.sessionEpoch ?? 0) >= least) return null
  // Whoever meant well was second: somebody else has ended them since it was read.
  return errorItem('CONFLICT', 'sessions that are over do not come back; read it again')
}

/** Keys of the namespace `system:` are ours. */
export function unknownSystemRole(roles: readonly string[]): ShapeError | null {
  const at = roles.findIndex((role) => {
    return role.startsWith('system:') && role !== OWNER_ROLE && role !== PORTAL_ROLE
  })
  if (at < 0) return null
  const message = `is no role: those of the namespace system: are ${OWNER_ROLE} and ${PORTAL_ROLE}`
  return { member: `roles.${at}`, message }
}
