// Roles: named lists of ACEs. Identities carry role keys; every request is checked against the
// compiled sets. Source: specification "Identity resources", CONTRACT 1.8, 1.14.

import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import type { ConfigurationView } from '../../protocol/behaviour.ts'
import { LIMITS } from '../../config/limits.ts'
import { Acl, OWNER_ACL, parseAce } from '../../protocol/ace.ts'
import type { Ace } from '../../protocol/ace.ts'
import type { Attributes } from '../../protocol/attributes.ts'
import { compileShape } from '../../protocol/json/validation.ts'
import type { ShapeError } from '../../protocol/json/validation.ts'

const RoleSchema = Type.Object(
  {
    description: Type.String({ maxLength: LIMITS.commerce.textCharsMax }),
    acl: Type.Object(
      {
        entries: Type.Array(
          Type.Object(
            { resource: Type.String(), permission: Type.String() },
            { additionalProperties: false },
          ),
          { maxItems: LIMITS.protocol.acesMax },
        ),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
)

/** Value of a role; its key (`<namespace>:<capability>`) is the actor's. */
export type Role = Static<typeof RoleSchema>

const roleShape = compileShape(RoleSchema)

/** What is wrong with a role's value, or null: its shape, or an entry that is no ACE. */
export function checkRole(value: unknown): ShapeError | null {
  const wrong = roleShape(value)
  if (wrong !== null) return wrong
  for (const [i, entry] of (value as Role).acl.entries.entries()) {
    const parsed = parseAce(`${entry.resource}:${entry.permission}`)
    if (!parsed.ok) return { member: `acl.entries.${i}`, message: `is no ACE: ${parsed.reason}` }
  }
  return null
}

/** Full access; authorization checks are bypassed. */
export const OWNER_ROLE = 'system:owner'
/** Full access to what the portal works with; not to the cluster, nor to changing identities. */
export const PORTAL_ROLE = 'system:portal:full'

export const PORTAL_ACES: readonly Ace[] = [
  ...['actors', 'graph', 'reactor', 'components', 'jobs', 'job-definitions', 'ingresses'],
  ...['rules', 'sendings', 'registry', 'apps', 'files', 'enums', 'inventories', 'channels'],
  ...['events', 'signals', 'me'],
]
  .map((resource): Ace => ({ attribute: null, path: [resource], permission: '*' }))
  .concat(
    ['principals', 'clients', 'roles'].map((which) => ({
      attribute: null,
      path: ['iam', which],
      permission: 'read',
    })),
  )

/** What roles and other entries grant together. A role that is gone grants nothing. */
export function aclOfRoles(
  roles: readonly string[],
  system: ConfigurationView,
  attributes: Attributes,
  besides: readonly Ace[] = [],
): Acl {
  // Owners have attributes too: their tokens may ask for entries that go by them.
  if (roles.includes(OWNER_ROLE)) return new Acl(OWNER_ACL.aces, null, attributes)
  const aces: Ace[] = [...besides]
  for (const key of roles) {
    if (key === PORTAL_ROLE) aces.push(...PORTAL_ACES)
    const role = system.get<Role>('role', key)
    if (role) for (const ace of acesOf(role.value)) aces.push(ace)
  }
  return new Acl(aces, null, attributes)
}

/** Read once: a role's value never changes, another takes its place. */
const READ = new WeakMap<Role, readonly Ace[]>()

function acesOf(role: Role): readonly Ace[] {
  const read = READ.get(role)
  if (read !== undefined) return read
  const aces = role.acl.entries.flatMap(({ resource, permission }) => {
    const parsed = parseAce(`${resource}:${permission}`)
    return parsed.ok ? parsed.ace : []
  })
  READ.set(role, aces)
  return aces
}
