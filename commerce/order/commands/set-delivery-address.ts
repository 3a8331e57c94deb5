// setDeliveryAddress: members that are sent replace those that are there, null clears. A channel
// that serves certain countries refuses others. Source: specification (known order commands,
// channels), COMMERCE 1, 5 row 14.

import { command } from '../command.ts'
import { mapDifference } from '../difference.ts'
import { invalid } from '../refuse.ts'
import { addressProperties, commandMembers, Id } from '../shapes.ts'
import { ADDRESS_MEMBERS } from '../state.ts'

const schema = commandMembers({ deliveryId: Id, ...addressProperties })

export const setDeliveryAddress = command('setDeliveryAddress', schema, (draft, wanted) => {
  const delivery = draft.openDelivery(wanted.deliveryId)
  const { channelKey } = draft.state
  const { countryCode } = wanted
  if (typeof countryCode === 'string' && channelKey !== null) {
    const countries = draft.channels.get(channelKey)?.countries ?? []
    if (countries.length > 0 && !countries.includes(countryCode)) {
      invalid(
        `channel ${channelKey} does not serve ${countryCode}, only ${countries.join(', ')}`,
        'countryCode',
      )
    }
  }
  const current = delivery.address as Readonly<Record<string, string>>
  const changed = mapDifference(current, wanted, ADDRESS_MEMBERS)
  if (changed === null) return
  draft.commit({ t: 'addressChanged', deliveryId: delivery.deliveryId, ...changed })
})
