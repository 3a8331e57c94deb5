// setShippingProduct: what the shipping fee is for; null clears. Source: commerce/README.md
// "Commands".

import { Type } from '@sinclair/typebox'
import { command } from '../command.ts'
import { difference } from '../difference.ts'
import { commandMembers, Id, Key, nullable, Text } from '../shapes.ts'

const schema = commandMembers({
  deliveryId: Id,
  shippingProductNumber: Type.Optional(nullable(Key)),
  shippingDescription: Type.Optional(nullable(Text)),
})

export const setShippingProduct = command('setShippingProduct', schema, (draft, wanted) => {
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
})
