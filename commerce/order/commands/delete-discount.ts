// deleteDiscount: takes a discount away, none of whose shares is invoiced. Source:
// commerce/README.md "Commands".

import { command } from '../command.ts'
import { commandMembers, Id } from '../shapes.ts'
import { openDiscount } from './open-discount.ts'

export const deleteDiscount = command(
  'deleteDiscount',
  commandMembers({ discountId: Id }),
  (draft, given) => {
    const { discountId, scope, targetId, value } = openDiscount(draft, given.discountId)
    draft.commit({
      t: 'discountDeleted',
      discountId,
      scope,
      ...(targetId !== null && { targetId }),
      value,
    })
  },
)
