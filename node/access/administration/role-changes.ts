// Roles as actors: who may change one, and how. Source: CONTRACT 1.8, PROTOCOL 3.0 "Who may change
// configuration".

import { LIMITS } from '../../../config/limits.ts'
import { parseAce } from '../../../protocol/ace.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { ErrorItem } from '../../../protocol/errors.ts'
import { systemActor } from '../../system-actor.ts'
import type { Change, PutBody } from '../../system-actor.ts'
import { checkRole } from '../role.ts'
import type { Role } from '../role.ts'
import { refusalOfLargeRole } from './entries.ts'
import { callerFor } from './giving.ts'
import { roleNode } from './nodes.ts'

export const roleBehaviour = systemActor<Role>('role', checkRole, permit, { node: roleNode })

function permit(change: Change<Role>): ErrorItem | string | null {
  const { view, turn, message, before } = change
  const key = turn.key!
  const after = message.type === 'put' ? (message.body as PutBody<Role>).value : null
  const caller = callerFor(change, `iam/roles/${key}`, after === null ? 'delete' : 'write')
  if (typeof caller === 'string') return caller
  if (key.startsWith('system:')) {
    return errorItem('SYSTEM_ROLE', 'roles of the namespace system: are not written')
  }
  for (const { resource, permission } of after?.acl.entries ?? []) {
    const parsed = parseAce(`${resource}:${permission}`)
    if (!parsed.ok || !caller.coversForAnybody(parsed.ace)) {
      return `you do not hold ${resource}:${permission}: nobody gives more`
    }
  }
  const large = refusalOfLargeRole(view, key, { before, after })
  if (large !== null) return large
  const { rolesMax } = LIMITS.access
  if (after === null || before !== null || view.size('role') < rolesMax) return null
  return errorItem('INVALID_STATE', `there are ${rolesMax} roles, which is the most`)
}
