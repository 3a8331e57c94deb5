// What the three commands that create a static discount have in common: their members, and the
// record. Source: commerce/README.md "Arithmetic", "Commands".

import { type Static, Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { PRICE_DECIMALS, roundDecimals, roundFactor } from '../../../protocol/money.ts'
import type { Draft } from '../draft.ts'
import { invalid } from '../refuse.ts'
import { Id, JsonMembers, members, Price, Text } from '../shapes.ts'
import type { DiscountScope } from '../state.ts'

export const discountProperties = {
  value: Price,
  isPercentage: Type.Optional(Type.Boolean()),
  discountId: Type.Optional(Id),
  description: Type.Optional(Text),
  dynamic: Type.Optional(JsonMembers),
}
const discountMembers = members(discountProperties)

export function createDiscount(
  draft: Draft,
  target: { readonly scope: DiscountScope; readonly targetId?: string },
  given: Static<typeof discountMembers>,
): void {
  draft.room(draft.state.discounts.size, LIMITS.orderDiscountsMax, 'discounts')
  const { targetId } = target
  if (targetId !== undefined) {
    const own = draft.state.discountsOf.get(targetId)?.length ?? 0
    draft.room(own, LIMITS.targetDiscountsMax, 'discounts on one line or shipping fee')
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
export function discountValue(isPercentage: boolean, value: number): number {
  if (!isPercentage) return roundDecimals(value, PRICE_DECIMALS)
  if (value > 1) invalid(`value ${value} of a percentage must be 0 to 1: 0.25 is 25 %`, 'value')
  return roundFactor(value)
}
