// splitOrderLine: part of a line's quantity becomes a line of its own, in the same or another open
// delivery, with its product, price, tax factor, skus and dynamic. An absolute tax is divided in
// proportion; discounts and a release stay with the old line. Source: COMMERCE 5 row 37.

import { Type } from '@sinclair/typebox'
import { addDecimals, fromUnits, partOf, toUnits } from '../../../protocol/money.ts'
import { command } from '../command.ts'
import type { NewLine, OrderLinePatch } from '../records.ts'
import { invalid } from '../refuse.ts'
import { commandMembers, Id, Quantity } from '../shapes.ts'
import type { OrderLine } from '../state.ts'
import { takeNextLineNumber } from './create-order-line.ts'
import { checkQuantity } from './quantity.ts'

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
  const tax = dividedTax(line, quantity, draft.digits)
  const before: OrderLinePatch = { quantity: line.quantity }
  const after: OrderLinePatch = { quantity: kept }
  draft.commit({
    t: 'orderLineSplit',
    orderLineId: line.orderLineId,
    before: tax === null ? before : { ...before, salesTax: line.salesTax },
    after: tax === null ? after : { ...after, salesTax: tax.kept },
    line: {
      orderLineId: draft.childId(given.newOrderLineId, 'newOrderLineId'),
      deliveryId,
      n: takeNextLineNumber(draft),
      ...inherited(line),
      quantity,
      ...(tax !== null && { salesTax: tax.split }),
    },
  })
})

/** An absolute tax in minor units, so that the two parts add up to what was shown; null: none. */
function dividedTax(
  line: OrderLine,
  part: number,
  digits: number,
): { readonly kept: number; readonly split: number } | null {
  if (line.salesTax === null) return null
  const units = toUnits(line.salesTax, digits)
  const split = partOf(units, { quantity: line.quantity, part, factor: 1 })
  return { kept: fromUnits(units - split, digits), split: fromUnits(split, digits) }
}

/** Text of the old line that the new one repeats. */
function copiedChars({ description, image, skus, dynamic }: OrderLine): number {
  return JSON.stringify([description, image, skus, dynamic]).length
}

function inherited(
  line: OrderLine,
): Omit<NewLine, 'orderLineId' | 'deliveryId' | 'n' | 'quantity' | 'salesTax'> {
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
