// setOrderLineSkus: which skus one unit of a line takes, all of them anew.
// Source: commerce/README.md "Commands".

import { command } from '../command.ts'
import { commandMembers, Id, Skus } from '../shapes.ts'
import { changeLine } from './change-line.ts'
import { checkSkus } from './quantity.ts'

export const setOrderLineSkus = command(
  'setOrderLineSkus',
  commandMembers({ orderLineId: Id, skus: Skus }),
  (draft, { orderLineId, skus }) => {
    const line = draft.undeliveredLine(orderLineId)
    checkSkus(skus)
    changeLine(draft, line, { skus })
  },
)
