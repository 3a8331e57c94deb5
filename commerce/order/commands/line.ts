// Commands on order lines; the split of one is in split-line.ts. Source: specification "Actor",
// commerce/README.md "Commands".

import { type Static, Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { hasDecimals, PRICE_DECIMALS, roundDecimals, roundFactor } from '../../../protocol/money.ts'
import { difference } from '../../actor/difference.ts'
import { invalid, onlyOne } from '../../actor/refuse.ts'
import {
  commandMembers,
  Factor,
  Id,
  JsonMembers,
  Key,
  nullable,
  Price,
  Quantity,
  Text,
} from '../../actor/shapes.ts'
import type { OrderDraft } from '../draft.ts'
import { Skus } from '../messages/shapes.ts'
import type { NewLine, OrderLineCreated, OrderLinePatch } from '../records/records.ts'
import type { OrderLine } from '../state/state.ts'
import { checkLineBase } from '../totals/totals.ts'
import { command } from './command.ts'

const createOrderLineMembers = commandMembers({
  deliveryId: Id,
  productNumber: Key,
  quantity: Quantity,
  unitPrice: Price,
  taxFactor: Type.Optional(Factor),
  orderLineId: Type.Optional(Id),
  orderLineNumber: Type.Optional(
    Type.Unsafe<string | number>({
      type: ['string', 'integer'],
      minLength: 1,
      maxLength: LIMITS.commerce.keyCharsMax,
      format: 'key',
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
    }),
  ),
  description: Type.Optional(Text),
  image: Type.Optional(Text),
  skus: Type.Optional(Skus),
  dynamic: Type.Optional(JsonMembers),
})

/**
 * A line in an open delivery. Its number is the caller's, which must be free, or the next free one.
 * Source: specification "Actor", commerce/README.md "Commands".
 */
export const createOrderLine = command(
  'createOrderLine',
  createOrderLineMembers,
  (draft, given) => {
    const { deliveryId } = draft.openDelivery(given.deliveryId)
    draft.roomForLine()
    checkQuantity(given.quantity)
    const unitPrice = roundDecimals(given.unitPrice, PRICE_DECIMALS)
    checkLineBase(given.quantity, unitPrice, draft.digits)
    const record: { -readonly [K in keyof OrderLineCreated]: OrderLineCreated[K] } = {
      t: 'orderLineCreated',
      orderLineId: draft.childId(given.orderLineId, 'orderLineId'),
      deliveryId,
      productNumber: given.productNumber,
      quantity: given.quantity,
      unitPrice,
    }
    if (given.orderLineNumber === undefined) record.n = takeNextLineNumber(draft)
    else record.orderLineNumber = takeLineNumber(draft, String(given.orderLineNumber))
    if (given.taxFactor !== undefined) record.taxFactor = roundFactor(given.taxFactor)
    addOptional(record, given)
    draft.commit(record)
  },
)

function addOptional(
  record: { -readonly [K in keyof NewLine]: NewLine[K] },
  given: Static<typeof createOrderLineMembers>,
): void {
  if (given.description !== undefined) record.description = given.description
  if (given.image !== undefined) record.image = given.image
  if (given.skus !== undefined) {
    checkSkus(given.skus)
    record.skus = given.skus
  }
  if (given.dynamic !== undefined) record.dynamic = given.dynamic
}

/** The next number that no line has. */
export function takeNextLineNumber(draft: OrderDraft): number {
  const numbers = draft.lineNumbers()
  let n = draft.state.lastLineNumber + 1
  while (numbers.has(String(n))) n++
  numbers.add(String(n))
  return n
}

function takeLineNumber(draft: OrderDraft, number: string): string {
  const numbers = draft.lineNumbers()
  if (numbers.has(number)) {
    throw new RequestError('DUPLICATE_ID', `orderLineNumber ${number} is already used`, {
      member: 'orderLineNumber',
    })
  }
  numbers.add(number)
  return number
}

/** Another quantity, above 0 and not below what was returned. */
export const setOrderLineQuantity = command(
  'setOrderLineQuantity',
  commandMembers({ orderLineId: Id, quantity: Quantity }),
  (draft, { orderLineId, quantity }) => {
    const line = draft.openLine(orderLineId)
    checkQuantity(quantity)
    if (quantity < line.returnedQuantity) {
      invalid(`quantity must be at least the ${line.returnedQuantity} returned`, 'quantity')
    }
    checkLineBase(quantity, line.unitPrice, draft.digits)
    changeLine(draft, line, { quantity })
  },
)

/** Another price for one unit. */
export const setOrderLineUnitPrice = command(
  'setOrderLineUnitPrice',
  commandMembers({ orderLineId: Id, unitPrice: Price }),
  (draft, given) => {
    const line = draft.openLine(given.orderLineId)
    const unitPrice = roundDecimals(given.unitPrice, PRICE_DECIMALS)
    checkLineBase(line.quantity, unitPrice, draft.digits)
    changeLine(draft, line, { unitPrice })
  },
)

const setOrderLineTaxMembers = commandMembers({
  orderLineId: Id,
  salesTax: Type.Optional(Price),
  taxTotal: Type.Optional(Price),
  taxFactor: Type.Optional(Factor),
})

/**
 * The tax of a line, as an amount (`salesTax`, or its synonym `taxTotal`) or as a factor: exactly
 * one of them; it takes the place of the other. Source: specification "Actor", commerce/README.md
 * "Commands".
 */
export const setOrderLineTax = command(
  'setOrderLineTax',
  setOrderLineTaxMembers,
  (draft, given) => {
    const line = draft.openLine(given.orderLineId)
    const { salesTax, taxTotal, taxFactor } = given
    onlyOne({ salesTax, taxTotal, taxFactor })
    const absolute = salesTax ?? taxTotal
    changeLine(draft, line, {
      salesTax: absolute === undefined ? null : roundDecimals(absolute, PRICE_DECIMALS),
      taxFactor: taxFactor === undefined ? null : roundFactor(taxFactor),
    })
  },
)

const setOrderLineProductMembers = commandMembers({
  orderLineId: Id,
  productNumber: Type.Optional(Key),
  description: Type.Optional(nullable(Text)),
  image: Type.Optional(nullable(Text)),
})

/** What a line sells; null clears description and image. */
export const setOrderLineProduct = command(
  'setOrderLineProduct',
  setOrderLineProductMembers,
  (draft, wanted) => {
    const { productNumber, description, image } = wanted
    changeLine(draft, draft.undeliveredLine(wanted.orderLineId), {
      productNumber,
      description,
      image,
    })
  },
)

/** Which skus one unit of a line takes, all of them anew. */
export const setOrderLineSkus = command(
  'setOrderLineSkus',
  commandMembers({ orderLineId: Id, skus: Skus }),
  (draft, { orderLineId, skus }) => {
    const line = draft.undeliveredLine(orderLineId)
    checkSkus(skus)
    changeLine(draft, line, { skus })
  },
)

/**
 * A line into another delivery of the order, both of them open; it keeps its id, number and
 * discounts. Source: specification "Release-note resources (2026.1)", commerce/README.md
 * "Commands".
 */
export const moveOrderLine = command(
  'moveOrderLine',
  commandMembers({ orderLineId: Id, deliveryId: Id }),
  (draft, given) => {
    const { orderLineId, deliveryId: from } = draft.undeliveredLine(given.orderLineId)
    const { deliveryId: to } = draft.openDelivery(given.deliveryId)
    if (from !== to) draft.commit({ t: 'orderLineMoved', orderLineId, from, to })
  },
)

/** Takes a line of an open delivery away; its discounts go with it. */
export const deleteOrderLine = command(
  'deleteOrderLine',
  commandMembers({ orderLineId: Id }),
  (draft, given) => {
    const line = draft.openLine(given.orderLineId)
    const { orderLineId, orderLineNumber, productNumber, quantity, unitPrice } = line
    const discounts = draft.state.discountsOf.get(orderLineId)
    draft.lineNumbers().delete(orderLineNumber)
    draft.commit({
      t: 'orderLineDeleted',
      orderLineId,
      orderLineNumber,
      productNumber,
      quantity,
      unitPrice,
      ...(discounts !== undefined && { discounts }),
    })
  },
)

type Wanted = { readonly [K in keyof OrderLinePatch]?: OrderLinePatch[K] | undefined }

/** Commits the members of `wanted` that differ; `undefined` leaves a member unchanged. */
function changeLine(draft: OrderDraft, line: OrderLine, wanted: Wanted): void {
  const changed = difference<OrderLinePatch>(line, wanted)
  if (changed === null) return
  draft.commit({ t: 'orderLineChanged', orderLineId: line.orderLineId, ...changed })
}

/**
 * A quantity of a line or a return: above 0, with at most four decimals; more are refused, not
 * rounded. Source: commerce/README.md "Values".
 */
export function checkQuantity(quantity: number, member = 'quantity'): void {
  if (hasDecimals(quantity, PRICE_DECIMALS) && quantity > 0) return
  invalid(`${member} ${quantity} must have at most ${PRICE_DECIMALS} decimals`, member)
}

function checkSkus(skus: Readonly<Record<string, number>>): void {
  for (const sku of Object.keys(skus)) checkQuantity(skus[sku]!, `skus.${sku}`)
}
