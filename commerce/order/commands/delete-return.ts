// deleteReturn: takes a return away that is not invoiced. Source: commerce/README.md "Commands".

import { command } from '../command.ts'
import { commandMembers, Id } from '../shapes.ts'
import { openReturn } from './open-return.ts'

export const deleteReturn = command(
  'deleteReturn',
  commandMembers({ returnId: Id }),
  (draft, given) => {
    const { returnId, orderLineId, quantity } = openReturn(draft, given.returnId)
    draft.commit({ t: 'returnDeleted', returnId, orderLineId, quantity })
  },
)
