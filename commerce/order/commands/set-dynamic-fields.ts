// setDynamicFields: the caller's own data on the order, merged by key; null removes one.
// Source: commerce/README.md "Values", "Commands".

import { command } from '../command.ts'
import { mapDifference } from '../difference.ts'
import type { Draft } from '../draft.ts'
import type { DynamicOwner } from '../records.ts'
import { commandMembers, JsonMembers } from '../shapes.ts'
import type { JsonObject } from '../state.ts'

export const setDynamicFields = command(
  'setDynamicFields',
  commandMembers({ fields: JsonMembers }),
  (draft, { fields }) => mergeDynamic(draft, { owner: 'order' }, draft.state.dynamic, fields),
)

/** Commits what `fields` change in `current`, the dynamic fields of the order or a child. */
export function mergeDynamic(
  draft: Draft,
  of: { readonly owner: DynamicOwner; readonly id?: string },
  current: JsonObject,
  fields: JsonObject,
): void {
  const changed = mapDifference(current, fields, Object.keys(fields))
  if (changed !== null) draft.commit({ t: 'dynamicChanged', ...of, ...changed })
}
