// createDelivery: a delivery of the order, open, with its shipping fee. Its number is the order's
// number, `D` and a count. Source: specification "Actor", commerce/README.md "Numbers", "Commands".

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { PRICE_DECIMALS, roundDecimals, roundFactor } from '../../../protocol/money.ts'
import { command } from '../command.ts'
import type { DeliveryCreated } from '../records.ts'
import { invalidState } from '../refuse.ts'
import { commandMembers, Factor, Id, Key, Price, Tag, Text } from '../shapes.ts'

const schema = commandMembers({
  deliveryId: Type.Optional(Id),
  numberPrefix: Type.Optional(Tag),
  shippingProductNumber: Type.Optional(Key),
  shippingDescription: Type.Optional(Text),
  shippingPrice: Type.Optional(Price),
  shippingTaxFactor: Type.Optional(Factor),
})

export const createDelivery = command('createDelivery', schema, (draft, given) => {
  const { state } = draft
  if (state.state === 'cancelled') {
    invalidState(`order ${state.orderNumber} is cancelled: it takes no further delivery`)
  }
  draft.room(state.deliveries.size, LIMITS.orderDeliveriesMax, 'deliveries')
  const n = state.lastDeliveryNumber + 1
  const record: { -readonly [K in keyof DeliveryCreated]: DeliveryCreated[K] } = {
    t: 'deliveryCreated',
    deliveryId: draft.childId(given.deliveryId, 'deliveryId'),
    deliveryNumber: `${given.numberPrefix ?? ''}${state.orderNumber}D${n}`,
    n,
  }
  if (given.shippingProductNumber !== undefined) {
    record.shippingProductNumber = given.shippingProductNumber
  }
  if (given.shippingDescription !== undefined) {
    record.shippingDescription = given.shippingDescription
  }
  if (given.shippingPrice !== undefined) {
    record.shippingPrice = roundDecimals(given.shippingPrice, PRICE_DECIMALS)
  }
  if (given.shippingTaxFactor !== undefined) {
    record.shippingTaxFactor = roundFactor(given.shippingTaxFactor)
  }
  draft.commit(record)
})
