// removeTag: takes a tag off the order; one that is not there is no error. Source:
// commerce/README.md "Commands".

import { command } from '../command.ts'
import { commandMembers, Tag } from '../shapes.ts'

export const removeTag = command('removeTag', commandMembers({ key: Tag }), (draft, { key }) => {
  if (draft.state.tags.includes(key)) draft.commit({ t: 'tagRemoved', key, deliveryId: null })
})
