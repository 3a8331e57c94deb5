// Commands on static discounts. Source: commerce/README.md "Arithmetic", "Commands".

import { type Static, Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { PRICE_DECIMALS, roundDecimals, roundFactor } from '../../../protocol/money.ts'
import { difference } from '../../actor/difference.ts'
import { invalid, invalidState } from '../../actor/refuse.ts'
import {
  commandMembers,
  Id,
  JsonMembers,
  members,
  nullable,
  Price,
  Text,
} from '../../actor/shapes.ts'
import type { OrderDraft } from '../draft.ts'
import type { DiscountScope, StaticDiscount } from '../state/state.ts'
import { command } from './command.ts'

/** Members of the three commands that create a static discount. */
const discountProperties = {
  value: Price,
  isPercentage: Type.Optional(Type.Boolean()),
  discountId: Type.Optional(Id),
  description: Type.Optional(Text),
  dynamic: Type.Optional(JsonMembers),
}
const discountMembers = members(discountProperties)

/** A discount on everything in the order. */
export const createStaticOrderDiscount = command(
  'createStaticOrderDiscount',
  commandMembers(discountProperties),
  (draft, given) => createDiscount(draft, { scope: 'order' }, given),
)

/** A discount on one line. */
export const createStaticOrderLineDiscount = command(
  'createStaticOrderLineDiscount',
  commandMembers({ orderLineId: Id, ...discountProperties }),
  (draft, given) => {
    const { orderLineId } = draft.openLine(given.orderLineId)
    createDiscount(draft, { scope: 'orderLine', targetId: orderLineId }, given)
  },
)

/** A discount on one delivery's shipping fee. */
export const createStaticShippingDiscount = command(
  'createStaticShippingDiscount',
  commandMembers({ deliveryId: Id, ...discountProperties }),
  (draft, given) => {
    const delivery = draft.openDelivery(given.deliveryId)
    draft.uninvoicedShipping(delivery)
    createDiscount(draft, { scope: 'shipping', targetId: delivery.deliveryId }, given)
  },
)

/** Another value of a discount; a percentage stays one. */
export const setStaticDiscountValue = command(
  'setStaticDiscountValue',
  commandMembers({ discountId: Id, value: Price }),
  (draft, given) => {
    const { discountId, isPercentage, value } = openDiscount(draft, given.discountId)
    const changed = difference({ value }, { value: discountValue(isPercentage, given.value) })
    if (changed !== null) draft.commit({ t: 'discountChanged', discountId, ...changed })
  },
)

/** What people call a discount; null clears. */
export const setDiscountDescription = command(
  'setDiscountDescription',
  commandMembers({ discountId: Id, description: nullable(Text) }),
  (draft, given) => {
    const { discountId, description } = draft.discount(given.discountId)
    const changed = difference({ description }, { description: given.description })
    if (changed !== null) draft.commit({ t: 'discountChanged', discountId, ...changed })
  },
)

/** Takes a discount away, none of whose shares is invoiced. */
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

/** What the three commands that create a static discount have in common. */
function createDiscount(
  draft: OrderDraft,
  target: { readonly scope: DiscountScope; readonly targetId?: string },
  given: Static<typeof discountMembers>,
): void {
  draft.room(draft.state.discounts.size, LIMITS.order.discountsMax, 'discounts')
  const { targetId } = target
  if (targetId !== undefined) {
    const own = draft.state.discountsOf.get(targetId)?.length ?? 0
    draft.room(own, LIMITS.order.targetDiscountsMax, 'discounts on one line or shipping fee')
  }
  const isPercentage = given.isPercentage ?? false
  draft.commit({
    t: 'discountCreated',
    discountId: draft.childId(given.discountId, 'discountId'),
    ...target,
    isPercentage,
    value: discountValue(isPercentage, given.value),
    ...(given.description !== undefined && { description: given.description }),
    ...(given.dynamic !== undefined && { dynamic: given.dynamic }),
  })
}

/** The value as it is kept: a factor of 0 to 1, or an amount. */
function discountValue(isPercentage: boolean, value: number): number {
  if (!isPercentage) return roundDecimals(value, PRICE_DECIMALS)
  if (value > 1) invalid(`value ${value} of a percentage must be 0 to 1: 0.25 is 25 %`, 'value')
  return roundFactor(value)
}

/**
 * A discount that may still be changed: none of its shares is on an invoice, and a line's or a
 * delivery's own only while that is open.
 */
function openDiscount(draft: OrderDraft, id: string): StaticDiscount {
  const discount = draft.discount(id)
  if (discount.scope === 'orderLine') {
    draft.openLine(discount.targetId!)
  } else if (discount.scope === 'shipping') {
    draft.uninvoicedShipping(draft.openDelivery(discount.targetId!))
  } else {
    const invoiceId = draft.invoiced().discounts.get(discount.discountId)
    if (invoiceId !== undefined) {
      invalidState(
        `discount ${discount.discountId} is part of invoice ` +
          `${draft.state.invoices.get(invoiceId)!.invoiceNumber}: cancel that first`,
      )
    }
  }
  return discount
}
