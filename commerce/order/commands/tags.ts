// Commands on the tags of the order and of its deliveries. Source: commerce/README.md "Commands".

import { LIMITS } from '../../../config/limits.ts'
import { commandMembers, Id, Tag } from '../../actor/shapes.ts'
import { command } from './command.ts'

/** Adds a tag to the order; one that is there already keeps its place. */
export const addTag = command('addTag', commandMembers({ key: Tag }), (draft, { key }) => {
  if (draft.state.tags.includes(key)) return
  draft.room(draft.state.tags.length, LIMITS.order.tagsMax, 'tags')
  draft.commit({ t: 'tagAdded', key, deliveryId: null })
})

/** Takes a tag off the order; one that is not there is no error. */
export const removeTag = command('removeTag', commandMembers({ key: Tag }), (draft, { key }) => {
  if (draft.state.tags.includes(key)) draft.commit({ t: 'tagRemoved', key, deliveryId: null })
})

/** A tag on a delivery; one that is there already stays. */
export const addDeliveryTag = command(
  'addDeliveryTag',
  commandMembers({ deliveryId: Id, key: Tag }),
  (draft, given) => {
    const { deliveryId, tags } = draft.delivery(given.deliveryId)
    if (tags.includes(given.key)) return
    draft.room(tags.length, LIMITS.order.tagsMax, 'tags a delivery')
    draft.commit({ t: 'tagAdded', key: given.key, deliveryId })
  },
)

/** Takes a tag off a delivery; one that is not there is no error. */
export const removeDeliveryTag = command(
  'removeDeliveryTag',
  commandMembers({ deliveryId: Id, key: Tag }),
  (draft, given) => {
    const { deliveryId, tags } = draft.delivery(given.deliveryId)
    if (tags.includes(given.key)) draft.commit({ t: 'tagRemoved', key: given.key, deliveryId })
  },
)
