// addDeliveryTag: a tag on a delivery; one that is there already stays. Source: commerce/README.md
// "Commands".

import { LIMITS } from '../../../config/limits.ts'
import { command } from '../command.ts'
import { commandMembers, Id, Tag } from '../shapes.ts'

export const addDeliveryTag = command(
  'addDeliveryTag',
  commandMembers({ deliveryId: Id, key: Tag }),
  (draft, given) => {
    const { deliveryId, tags } = draft.delivery(given.deliveryId)
    if (tags.includes(given.key)) return
    draft.room(tags.length, LIMITS.tagsMax, 'tags a delivery')
    draft.commit({ t: 'tagAdded', key: given.key, deliveryId })
  },
)
