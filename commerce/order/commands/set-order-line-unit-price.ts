// setOrderLineUnitPrice: another price for one unit. Source: commerce/README.md "Commands".

import { PRICE_DECIMALS, roundDecimals } from '../../../protocol/money.ts'
import { command } from '../command.ts'
import { commandMembers, Id, Price } from '../shapes.ts'
import { checkLineBase } from '../totals.ts'
import { changeLine } from './change-line.ts'

export const setOrderLineUnitPrice = command(
  'setOrderLineUnitPrice',
  commandMembers({ orderLineId: Id, unitPrice: Price }),
  (draft, given) => {
    const line = draft.openLine(given.orderLineId)
    const unitPrice = roundDecimals(given.unitPrice, PRICE_DECIMALS)
    checkLineBase(line.quantity, unitPrice, draft.digits)
    changeLine(draft, line, { unitPrice })
  },
)
