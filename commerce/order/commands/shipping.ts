// Commands on the shipping fee of a delivery. Source: commerce/README.md "Commands".

import { Type } from '@sinclair/typebox'
import { PRICE_DECIMALS, roundDecimals, roundFactor } from '../../../protocol/money.ts'
import { difference } from '../../actor/difference.ts'
import { onlyOne } from '../../actor/refuse.ts'
import { commandMembers, Factor, Id, Key, nullable, Price, Text } from '../../actor/shapes.ts'
import { command } from './command.ts'

/** Another shipping fee for a delivery that is open. */
export const setShippingPrice = command(
  'setShippingPrice',
  commandMembers({ deliveryId: Id, shippingPrice: Price }),
  (draft, wanted) => {
    const delivery = draft.openDelivery(wanted.deliveryId)
    draft.uninvoicedShipping(delivery)
    const { deliveryId, shippingPrice } = delivery
    const changed = difference(
      { shippingPrice },
      { shippingPrice: roundDecimals(wanted.shippingPrice, PRICE_DECIMALS) },
    )
    if (changed !== null) draft.commit({ t: 'deliveryChanged', deliveryId, ...changed })
  },
)

const setShippingProductMembers = commandMembers({
  deliveryId: Id,
  shippingProductNumber: Type.Optional(nullable(Key)),
  shippingDescription: Type.Optional(nullable(Text)),
})

/** What the shipping fee is for; null clears. */
export const setShippingProduct = command(
  'setShippingProduct',
  setShippingProductMembers,
  (draft, wanted) => {
    const delivery = draft.openDelivery(wanted.deliveryId)
    const { deliveryId, shippingProductNumber, shippingDescription } = delivery
    const changed = difference(
      { shippingProductNumber, shippingDescription },
      {
        shippingProductNumber: wanted.shippingProductNumber,
        shippingDescription: wanted.shippingDescription,
      },
    )
    if (changed !== null) draft.commit({ t: 'deliveryChanged', deliveryId, ...changed })
  },
)

const setShippingTaxMembers = commandMembers({
  deliveryId: Id,
  tax: Type.Optional(Price),
  taxFactor: Type.Optional(Factor),
})

/**
 * The tax of a shipping fee, as an amount or as a factor: exactly one of them; it takes the place
 * of the other.
 */
export const setShippingTax = command('setShippingTax', setShippingTaxMembers, (draft, wanted) => {
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
