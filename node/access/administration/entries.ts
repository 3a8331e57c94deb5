// How many entries all roles of one identity have together: whoever checks what it may do compiles
// them anew after a change of any role, on the thread that answers everybody. Asked where roles are
// given and where one grows. Source: CONTRACT 1.8 "Nobody gives more than they hold", ARCHITECTURE
// 3 "Bounded everything".

import { LIMITS } from '../../../config/limits.ts'
import type { ConfigurationView } from '../../../protocol/behaviour.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { ErrorItem } from '../../../protocol/errors.ts'
import type { Client } from '../client.ts'
import type { Principal } from '../principal.ts'
import type { Role } from '../role.ts'

interface Holder {
  readonly roles: readonly string[]
}

const sizeOf = (role: Role | null | undefined): number => role?.acl.entries.length ?? 0

function entriesOf({ roles }: Holder, view: ConfigurationView): number {
  return roles.reduce((sum, key) => sum + sizeOf(view.get<Role>('role', key)?.value), 0)
}

function tooMany(what: string, count: number): ErrorItem {
  const { entriesOfIdentityMax: max } = LIMITS.access
  return errorItem(
    'INVALID_STATE',
    `${what} ${count} entries together; an identity has at most ${max}`,
  )
}

/** Refuses more roles than an identity may have by what they hold; null: it may, or has fewer. */
export function refusalOfManyEntries(
  view: ConfigurationView,
  { before, after }: { readonly before: Holder | null; readonly after: Holder | null },
): ErrorItem | null {
  const count = after === null ? 0 : entriesOf(after, view)
  if (count <= LIMITS.access.entriesOfIdentityMax) return null
  if (before !== null && count <= entriesOf(before, view)) return null
  return tooMany('these roles have', count)
}

/** Refuses a role that would give one of its holders too many; null: it grows for none so far. */
export function refusalOfLargeRole(
  view: ConfigurationView,
  key: string,
  { before, after }: { readonly before: Role | null; readonly after: Role | null },
): ErrorItem | null {
  const more = sizeOf(after) - sizeOf(before)
  if (more <= 0) return null
  for (const { roles } of holders(view)) {
    if (!roles.includes(key)) continue
    const count = entriesOf({ roles }, view) + more
    if (count > LIMITS.access.entriesOfIdentityMax) {
      return tooMany(`with this role somebody who has it would have`, count)
    }
  }
  return null
}

function* holders(view: ConfigurationView): Iterable<Holder> {
  for (const { value } of view.all<Client>('client')) yield value
  for (const { value } of view.all<Principal>('principal')) yield value
}
