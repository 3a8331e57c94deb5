// setDiscountDescription: what people call a discount; null clears. Source: commerce/README.md
// "Commands".

import { command } from '../command.ts'
import { difference } from '../difference.ts'
import { commandMembers, Id, nullable, Text } from '../shapes.ts'

export const setDiscountDescription = command(
  'setDiscountDescription',
  commandMembers({ discountId: Id, description: nullable(Text) }),
  (draft, given) => {
    const { discountId, description } = draft.discount(given.discountId)
    const changed = difference({ description }, { description: given.description })
    if (changed !== null) draft.commit({ t: 'discountChanged', discountId, ...changed })
  },
)
