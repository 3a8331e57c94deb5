// setDeliveryDynamicFields: the caller's own data on a delivery, merged by key; null removes one.
// Source: commerce/README.md "Commands".

import { command } from '../command.ts'
import { commandMembers, Id, JsonMembers } from '../shapes.ts'
import { mergeDynamic } from './set-dynamic-fields.ts'

export const setDeliveryDynamicFields = command(
  'setDeliveryDynamicFields',
  commandMembers({ deliveryId: Id, fields: JsonMembers }),
  (draft, { deliveryId, fields }) => {
    const delivery = draft.delivery(deliveryId)
    const of = { owner: 'delivery', id: delivery.deliveryId } as const
    mergeDynamic(draft, of, delivery.dynamic, fields)
  },
)
