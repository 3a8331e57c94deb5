// setOrderLineTax: the tax of a line, as an amount (`salesTax`, or its synonym `taxTotal`) or as a
// factor: exactly one of them; it takes the place of the other. Source: specification "Actor",
// commerce/README.md "Commands".

import { Type } from '@sinclair/typebox'
import { PRICE_DECIMALS, roundDecimals, roundFactor } from '../../../protocol/money.ts'
import { command } from '../command.ts'
import { commandMembers, Factor, Id, Price } from '../shapes.ts'
import { changeLine } from './change-line.ts'
import { onlyOne } from './only-one.ts'

const schema = commandMembers({
  orderLineId: Id,
  salesTax: Type.Optional(Price),
  taxTotal: Type.Optional(Price),
  taxFactor: Type.Optional(Factor),
})

export const setOrderLineTax = command('setOrderLineTax', schema, (draft, given) => {
  const line = draft.openLine(given.orderLineId)
  const { salesTax, taxTotal, taxFactor } = given
  onlyOne({ salesTax, taxTotal, taxFactor })
  const absolute = salesTax ?? taxTotal
  changeLine(draft, line, {
    salesTax: absolute === undefined ? null : roundDecimals(absolute, PRICE_DECIMALS),
    taxFactor: taxFactor === undefined ? null : roundFactor(taxFactor),
  })
})
