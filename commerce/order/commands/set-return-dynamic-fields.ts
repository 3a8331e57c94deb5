// setReturnDynamicFields: the caller's own data on a return, merged by key; null removes one.
// Source: commerce/README.md "Commands".

import { command } from '../command.ts'
import { commandMembers, Id, JsonMembers } from '../shapes.ts'
import { mergeDynamic } from './set-dynamic-fields.ts'

export const setReturnDynamicFields = command(
  'setReturnDynamicFields',
  commandMembers({ returnId: Id, fields: JsonMembers }),
  (draft, given) => {
    const { returnId, dynamic } = draft.return(given.returnId)
    mergeDynamic(draft, { owner: 'return', id: returnId }, dynamic, given.fields)
  },
)
