// setDiscountDynamicFields: the caller's own data on a discount, merged by key; null removes one.
// Source: commerce/README.md "Commands".

import { command } from '../command.ts'
import { commandMembers, Id, JsonMembers } from '../shapes.ts'
import { mergeDynamic } from './set-dynamic-fields.ts'

export const setDiscountDynamicFields = command(
  'setDiscountDynamicFields',
  commandMembers({ discountId: Id, fields: JsonMembers }),
  (draft, given) => {
    const { discountId, dynamic } = draft.discount(given.discountId)
    mergeDynamic(draft, { owner: 'discount', id: discountId }, dynamic, given.fields)
  },
)
