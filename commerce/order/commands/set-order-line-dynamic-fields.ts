// setOrderLineDynamicFields: the caller's own data on a line, merged by key; null removes one.
// Source: commerce/README.md "Commands".

import { command } from '../command.ts'
import { commandMembers, Id, JsonMembers } from '../shapes.ts'
import { mergeDynamic } from './set-dynamic-fields.ts'

export const setOrderLineDynamicFields = command(
  'setOrderLineDynamicFields',
  commandMembers({ orderLineId: Id, fields: JsonMembers }),
  (draft, { orderLineId, fields }) => {
    const line = draft.line(orderLineId)
    mergeDynamic(draft, { owner: 'orderLine', id: line.orderLineId }, line.dynamic, fields)
  },
)
