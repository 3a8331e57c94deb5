// removeDeliveryTag: takes a tag off a delivery; one that is not there is no error.
// Source: commerce/README.md "Commands".

import { command } from '../command.ts'
import { commandMembers, Id, Tag } from '../shapes.ts'

export const removeDeliveryTag = command(
  'removeDeliveryTag',
  commandMembers({ deliveryId: Id, key: Tag }),
  (draft, given) => {
    const { deliveryId, tags } = draft.delivery(given.deliveryId)
    if (tags.includes(given.key)) draft.commit({ t: 'tagRemoved', key: given.key, deliveryId })
  },
)
