// setDeliveryAddress: members that are sent replace those that are there, null clears. A channel
// that serves certain countries refuses others (channel-rules.ts). Source: specification "Actor",
// "Release-note resources (2026.1)", commerce/README.md "Values", "Commands".

import { command } from '../command.ts'
import { mapDifference } from '../difference.ts'
import { addressProperties, commandMembers, Id } from '../shapes.ts'
import { ADDRESS_MEMBERS } from '../state.ts'

const schema = commandMembers({ deliveryId: Id, ...addressProperties })

export const setDeliveryAddress = command('setDeliveryAddress', schema, (draft, wanted) => {
  const delivery = draft.openDelivery(wanted.deliveryId)
  const current = delivery.address as Readonly<Record<string, string>>
  const changed = mapDifference(current, wanted, ADDRESS_MEMBERS)
  if (changed === null) return
  draft.commit({ t: 'addressChanged', deliveryId: delivery.deliveryId, ...changed })
})
