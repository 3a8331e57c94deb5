// setShippingTax: the tax of a shipping fee, as an amount or as a factor: exactly one of them; it
// takes the place of the other. Source: commerce/README.md "Commands".

import { Type } from '@sinclair/typebox'
import { PRICE_DECIMALS, roundDecimals, roundFactor } from '../../../protocol/money.ts'
import { command } from '../command.ts'
import { difference } from '../difference.ts'
import { commandMembers, Factor, Id, Price } from '../shapes.ts'
import { onlyOne } from './only-one.ts'

const schema = commandMembers({
  deliveryId: Id,
  tax: Type.Optional(Price),
  taxFactor: Type.Optional(Factor),
})

export const setShippingTax = command('setShippingTax', schema, (draft, wanted) => {
  const delivery = draft.openDelivery(wanted.deliveryId)
  draft.uninvoicedShipping(delivery)
  const { tax, taxFactor } = wanted
  onlyOne({ tax, taxFactor })
  const { deliveryId, shippingTax, shippingTaxFactor } = delivery
  const changed = difference(
    { shippingTax, shippingTaxFactor },
    {
      shippingTax: tax === undefined ? null : roundDecimals(tax, PRICE_DECIMALS),
      shippingTaxFactor: taxFactor === undefined ? null : roundFactor(taxFactor),
    },
  )
  if (changed !== null) draft.commit({ t: 'deliveryChanged', deliveryId, ...changed })
})
