// setDeliveryInventory: where a delivery's goods come from, and from which day; null clears. A
// channel with inventories refuses others (channel-rules.ts). Source: specification "Release-note
// resources (2026.1)", commerce/README.md "Commands".

import { Type } from '@sinclair/typebox'
import { command } from '../command.ts'
import { difference } from '../difference.ts'
import { commandMembers, DateText, Id, Key, nullable } from '../shapes.ts'

const schema = commandMembers({
  deliveryId: Id,
  inventoryKey: Type.Optional(nullable(Key)),
  inventoryDate: Type.Optional(nullable(DateText)),
})

export const setDeliveryInventory = command('setDeliveryInventory', schema, (draft, wanted) => {
  const delivery = draft.openDelivery(wanted.deliveryId)
  const changed = difference(
    { inventoryKey: delivery.inventoryKey, inventoryDate: delivery.inventoryDate },
    { inventoryKey: wanted.inventoryKey, inventoryDate: wanted.inventoryDate },
  )
  if (changed === null) return
  draft.commit({ t: 'deliveryChanged', deliveryId: delivery.deliveryId, ...changed })
})
