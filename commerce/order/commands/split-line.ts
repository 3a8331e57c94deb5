// splitOrderLine: part of a line's quantity becomes a line of its own, in the same or another open
// delivery, with its product, price, tax factor, skus and dynamic. It moves no total: percentages
// are on both lines then, fixed discounts and an absolute tax are divided in proportion, and both
// lines are rounded together (split-families.ts). A release stays with the old line.
// Source: commerce/README.md "Commands".

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { addDecimals, fromUnits, partOf, toUnits } from '../../../protocol/money.ts'
import { invalid } from '../../actor/refuse.ts'
import { commandMembers, Id, Quantity } from '../../actor/shapes.ts'
import type { OrderDraft } from '../draft.ts'
import type { NewLine, OrderLinePatch } from '../records/records.ts'
import type { OrderLine } from '../state/state.ts'
import { command } from './command.ts'
import { checkQuantity, takeNextLineNumber } from './line.ts'

/** A discount in its record, about. */
const DISCOUNT_CHARS = 200

const schema = commandMembers({
  orderLineId: Id,
  quantity: Quantity,
  newOrderLineId: Type.Optional(Id),
  newDeliveryId: Type.Optional(Id),
})

export const splitOrderLine = command('splitOrderLine', schema, (draft, given) => {
  const line = draft.openLine(given.orderLineId)
  const { quantity } = given
  checkQuantity(quantity)
  const kept = addDecimals(line.quantity, -quantity)
  if (kept <= 0 || kept < line.returnedQuantity) {
    invalid(
      `quantity ${quantity} must be less than the line's ${line.quantity}` +
        (line.returnedQuantity > 0 ? `, of which ${line.returnedQuantity} were returned` : ''),
      'quantity',
    )
  }
  const { deliveryId } = draft.openDelivery(given.newDeliveryId ?? line.deliveryId, 'newDeliveryId')
  draft.roomForLine()
  draft.copies(copiedChars(line))
  const tax =
    line.salesTax === null ? null : dividedAmount(draft, line, { amount: line.salesTax, quantity })
  const newLineId = draft.childId(given.newOrderLineId, 'newOrderLineId')
  const before: OrderLinePatch = { quantity: line.quantity }
  const after: OrderLinePatch = { quantity: kept }
  draft.commit({
    t: 'orderLineSplit',
    orderLineId: line.orderLineId,
    before: tax === null ? before : { ...before, salesTax: line.salesTax },
    after: tax === null ? after : { ...after, salesTax: tax.kept },
    line: {
      orderLineId: newLineId,
      deliveryId,
      n: takeNextLineNumber(draft),
      ...inherited(line),
      quantity,
      ...(tax !== null && { salesTax: tax.split }),
      family: line.family ?? line.orderLineId,
    },
  })
  splitDiscounts(draft, { line, quantity, targetId: newLineId })
})

/** The line's discounts on the new line, in their order. */
function splitDiscounts(
  draft: OrderDraft,
  { line, quantity, targetId }: { line: OrderLine; quantity: number; targetId: string },
): void {
  for (const id of draft.state.discountsOf.get(line.orderLineId) ?? []) {
    const { value, isPercentage, description, dynamic, family = id } = draft.discount(id)
    draft.room(draft.state.discounts.size, LIMITS.order.discountsMax, 'discounts')
    draft.copies(JSON.stringify([description, dynamic]).length + DISCOUNT_CHARS)
    const divided = isPercentage ? null : dividedAmount(draft, line, { amount: value, quantity })
    if (divided !== null && divided.kept !== value) {
      const [before, after] = [{ value }, { value: divided.kept }]
      draft.commit({ t: 'discountChanged', discountId: id, before, after })
    }
    draft.commit({
      t: 'discountCreated',
      discountId: draft.turn.newId(),
      scope: 'orderLine',
      targetId,
      isPercentage,
      value: divided === null ? value : divided.split,
      ...(description !== null && { description }),
      ...(Object.keys(dynamic).length > 0 && { dynamic }),
      family,
    })
  }
}

/** An amount in minor units, so that the two parts add up to what was shown. */
function dividedAmount(
  draft: OrderDraft,
  line: OrderLine,
  { amount, quantity }: { readonly amount: number; readonly quantity: number },
): { readonly kept: number; readonly split: number } {
  const { digits } = draft
  const units = toUnits(amount, digits)
  const split = partOf(units, { quantity: line.quantity, part: quantity, factor: 1 })
  return { kept: fromUnits(units - split, digits), split: fromUnits(split, digits) }
}

/** Text of the old line that the new one repeats. */
function copiedChars({ description, image, skus, dynamic }: OrderLine): number {
  return JSON.stringify([description, image, skus, dynamic]).length
}

function inherited(
  line: OrderLine,
): Omit<NewLine, 'orderLineId' | 'deliveryId' | 'n' | 'quantity' | 'salesTax' | 'family'> {
  return {
    productNumber: line.productNumber,
    unitPrice: line.unitPrice,
    ...(line.taxFactor !== null && { taxFactor: line.taxFactor }),
    ...(line.description !== null && { description: line.description }),
    ...(line.image !== null && { image: line.image }),
    ...(Object.keys(line.skus).length > 0 && { skus: line.skus }),
    ...(Object.keys(line.dynamic).length > 0 && { dynamic: line.dynamic }),
  }
}
