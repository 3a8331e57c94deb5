// addTag: a tag on the order; one that is there already stays where it is. Source:
// commerce/README.md "Commands".

import { LIMITS } from '../../../config/limits.ts'
import { command } from '../command.ts'
import { commandMembers, Tag } from '../shapes.ts'

export const addTag = command('addTag', commandMembers({ key: Tag }), (draft, { key }) => {
  if (draft.state.tags.includes(key)) return
  draft.room(draft.state.tags.length, LIMITS.tagsMax, 'tags')
  draft.commit({ t: 'tagAdded', key, deliveryId: null })
})
