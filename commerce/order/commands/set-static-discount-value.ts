// setStaticDiscountValue: another value of a discount; a percentage stays one.
// Source: commerce/README.md "Commands".

import { command } from '../command.ts'
import { difference } from '../difference.ts'
import { commandMembers, Id, Price } from '../shapes.ts'
import { discountValue } from './create-discount.ts'
import { openDiscount } from './open-discount.ts'

export const setStaticDiscountValue = command(
  'setStaticDiscountValue',
  commandMembers({ discountId: Id, value: Price }),
  (draft, given) => {
    const { discountId, isPercentage, value } = openDiscount(draft, given.discountId)
    const changed = difference({ value }, { value: discountValue(isPercentage, given.value) })
    if (changed !== null) draft.commit({ t: 'discountChanged', discountId, ...changed })
  },
)
