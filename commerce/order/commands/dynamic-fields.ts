// Commands that merge the caller's own data into the order or one of its children. Source:
// commerce/README.md "Values", "Commands".

import { mapDifference } from '../../actor/difference.ts'
import type { JsonObject } from '../../actor/json.ts'
import { commandMembers, Id, JsonMembers } from '../../actor/shapes.ts'
import type { OrderDraft } from '../draft.ts'
import type { DynamicOwner } from '../records/records.ts'
import { command } from './command.ts'

/** The caller's own data on the order, merged by key; null removes one. */
export const setDynamicFields = command(
  'setDynamicFields',
  commandMembers({ fields: JsonMembers }),
  (draft, { fields }) => mergeDynamic(draft, { owner: 'order' }, draft.state.dynamic, fields),
)

/** The caller's own data on a delivery, merged by key; null removes one. */
export const setDeliveryDynamicFields = command(
  'setDeliveryDynamicFields',
  commandMembers({ deliveryId: Id, fields: JsonMembers }),
  (draft, { deliveryId, fields }) => {
    const delivery = draft.delivery(deliveryId)
    const of = { owner: 'delivery', id: delivery.deliveryId } as const
    mergeDynamic(draft, of, delivery.dynamic, fields)
  },
)

/** The caller's own data on a line, merged by key; null removes one. */
export const setOrderLineDynamicFields = command(
  'setOrderLineDynamicFields',
  commandMembers({ orderLineId: Id, fields: JsonMembers }),
  (draft, { orderLineId, fields }) => {
    const line = draft.line(orderLineId)
    mergeDynamic(draft, { owner: 'orderLine', id: line.orderLineId }, line.dynamic, fields)
  },
)

/** The caller's own data on a discount, merged by key; null removes one. */
export const setDiscountDynamicFields = command(
  'setDiscountDynamicFields',
  commandMembers({ discountId: Id, fields: JsonMembers }),
  (draft, given) => {
    const { discountId, dynamic } = draft.discount(given.discountId)
    mergeDynamic(draft, { owner: 'discount', id: discountId }, dynamic, given.fields)
  },
)

/** The caller's own data on a return, merged by key; null removes one. */
export const setReturnDynamicFields = command(
  'setReturnDynamicFields',
  commandMembers({ returnId: Id, fields: JsonMembers }),
  (draft, given) => {
    const { returnId, dynamic } = draft.return(given.returnId)
    mergeDynamic(draft, { owner: 'return', id: returnId }, dynamic, given.fields)
  },
)

/** Commits what `fields` change in `current`, the dynamic fields of the order or a child. */
function mergeDynamic(
  draft: OrderDraft,
  of: { readonly owner: DynamicOwner; readonly id?: string },
  current: JsonObject,
  fields: JsonObject,
): void {
  const changed = mapDifference(current, fields, Object.keys(fields))
  if (changed !== null) draft.commit({ t: 'dynamicChanged', ...of, ...changed })
}
