// setShippingPrice: another shipping fee for a delivery that is open. Source: commerce/README.md
// "Commands".

import { PRICE_DECIMALS, roundDecimals } from '../../../protocol/money.ts'
import { command } from '../command.ts'
import { difference } from '../difference.ts'
import { commandMembers, Id, Price } from '../shapes.ts'

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
