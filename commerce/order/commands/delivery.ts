// Commands on deliveries: making, address, goods, states. Source: commerce/README.md "Machines",
// "Commands".

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { PRICE_DECIMALS, roundDecimals, roundFactor } from '../../../protocol/money.ts'
import { difference, mapDifference } from '../../actor/difference.ts'
import { move } from '../../actor/machine.ts'
import { invalid, invalidState } from '../../actor/refuse.ts'
import {
  commandMembers,
  DateText,
  Factor,
  Id,
  Key,
  nullable,
  Price,
  Tag,
  Text,
} from '../../actor/shapes.ts'
import type { OrderDraft } from '../draft.ts'
import { addressProperties } from '../messages/shapes.ts'
import type { DeliveryCreated } from '../records/records.ts'
import { DELIVERY_MOVES } from '../state/machines.ts'
import { ADDRESS_MEMBERS, type Delivery } from '../state/state.ts'
import { command } from './command.ts'

const createDeliveryMembers = commandMembers({
  deliveryId: Type.Optional(Id),
  numberPrefix: Type.Optional(Tag),
  shippingProductNumber: Type.Optional(Key),
  shippingDescription: Type.Optional(Text),
  shippingPrice: Type.Optional(Price),
  shippingTaxFactor: Type.Optional(Factor),
})

/**
 * A delivery of the order, open, with its shipping fee. Its number is the order's number, `D` and a
 * count. Source: specification "Actor", commerce/README.md "Numbers", "Commands".
 */
export const createDelivery = command('createDelivery', createDeliveryMembers, (draft, given) => {
  const { state } = draft
  if (state.state === 'cancelled') {
    invalidState(`order ${state.orderNumber} is cancelled: it takes no further delivery`)
  }
  draft.room(state.deliveries.size, LIMITS.order.deliveriesMax, 'deliveries')
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

const setDeliveryAddressMembers = commandMembers({ deliveryId: Id, ...addressProperties })

/**
 * Members that are sent replace those that are there, null clears. A channel that serves certain
 * countries refuses others (channel-rules.ts). Source: specification "Actor", "Release-note
 * resources (2026.1)", commerce/README.md "Values", "Commands".
 */
export const setDeliveryAddress = command(
  'setDeliveryAddress',
  setDeliveryAddressMembers,
  (draft, wanted) => {
    const delivery = draft.openDelivery(wanted.deliveryId)
    const current = delivery.address as Readonly<Record<string, string>>
    const changed = mapDifference(current, wanted, ADDRESS_MEMBERS)
    if (changed === null) return
    draft.commit({ t: 'addressChanged', deliveryId: delivery.deliveryId, ...changed })
  },
)

const setDeliveryInventoryMembers = commandMembers({
  deliveryId: Id,
  inventoryKey: Type.Optional(nullable(Key)),
  inventoryDate: Type.Optional(nullable(DateText)),
})

/**
 * Where a delivery's goods come from, and from which day; null clears. A channel with inventories
 * refuses others (channel-rules.ts). Source: specification "Release-note resources (2026.1)",
 * commerce/README.md "Commands".
 */
export const setDeliveryInventory = command(
  'setDeliveryInventory',
  setDeliveryInventoryMembers,
  (draft, wanted) => {
    const delivery = draft.openDelivery(wanted.deliveryId)
    const changed = difference(
      { inventoryKey: delivery.inventoryKey, inventoryDate: delivery.inventoryDate },
      { inventoryKey: wanted.inventoryKey, inventoryDate: wanted.inventoryDate },
    )
    if (changed === null) return
    draft.commit({ t: 'deliveryChanged', deliveryId: delivery.deliveryId, ...changed })
  },
)

const setDeliveryTrackingMembers = commandMembers({
  deliveryId: Id,
  carrier: Type.Optional(nullable(Key)),
  trackingNumber: Type.Optional(nullable(Key)),
  trackingUrl: Type.Optional(nullable(Text)),
})

/** Who carries a delivery and how to follow it, in any state; null clears. */
export const setDeliveryTracking = command(
  'setDeliveryTracking',
  setDeliveryTrackingMembers,
  (draft, wanted) => {
    const delivery = draft.delivery(wanted.deliveryId)
    if (typeof wanted.trackingUrl === 'string' && !/^https?:\/\/\S+$/i.test(wanted.trackingUrl)) {
      invalid('trackingUrl must be an address that begins with https:// or http://', 'trackingUrl')
    }
    const { deliveryId, carrier, trackingNumber, trackingUrl } = delivery
    const changed = difference(
      { carrier, trackingNumber, trackingUrl },
      {
        carrier: wanted.carrier,
        trackingNumber: wanted.trackingNumber,
        trackingUrl: wanted.trackingUrl,
      },
    )
    if (changed !== null) draft.commit({ t: 'deliveryChanged', deliveryId, ...changed })
  },
)

const deliveryOnly = commandMembers({ deliveryId: Id })

/** Open -> processing, of a confirmed order. */
export const releaseDelivery = command('releaseDelivery', deliveryOnly, (draft, given) => {
  const delivery = draft.delivery(given.deliveryId)
  checkConfirmed(draft)
  moveDelivery(draft, delivery, 'release')
})

/** Processing -> open. */
export const retractDelivery = command('retractDelivery', deliveryOnly, (draft, given) =>
  moveDelivery(draft, draft.delivery(given.deliveryId), 'retract'),
)

/** Open or processing -> completed, of a confirmed order; the delivery is final from then on. */
export const completeDelivery = command('completeDelivery', deliveryOnly, (draft, given) => {
  const delivery = draft.delivery(given.deliveryId)
  checkConfirmed(draft)
  moveDelivery(draft, delivery, 'complete')
})

/**
 * Open or processing -> cancelled: its lines and its fee count nothing then, so none of them may be
 * on an invoice.
 */
export const cancelDelivery = command('cancelDelivery', deliveryOnly, (draft, given) => {
  const delivery = draft.delivery(given.deliveryId)
  if (delivery.state === 'open' || delivery.state === 'processing') {
    draft.uninvoicedShipping(delivery)
    const line = draft.invoiced().lines.get(delivery.deliveryId)
    if (line !== undefined) draft.uninvoicedLine(line)
  }
  moveDelivery(draft, delivery, 'cancel')
})

/** Cancelled -> open, unless the order is cancelled. */
export const reopenDelivery = command('reopenDelivery', deliveryOnly, (draft, given) => {
  const delivery = draft.delivery(given.deliveryId)
  if (draft.state.state === 'cancelled') {
    invalidState(`order ${draft.state.orderNumber} is cancelled: reopen it with setOrderState`)
  }
  moveDelivery(draft, delivery, 'reopen')
})

/** Moves the state as the machine says, or refuses. */
function moveDelivery(
  draft: OrderDraft,
  delivery: Delivery,
  name: keyof typeof DELIVERY_MOVES,
): void {
  const { deliveryId, deliveryNumber, state } = delivery
  const to = move(`delivery ${deliveryNumber}`, state, DELIVERY_MOVES[name])
  draft.commit({ t: 'deliveryStateChanged', deliveryId, from: state, to })
}

/** Goods leave for a confirmed order only. */
function checkConfirmed(draft: OrderDraft): void {
  const { state, orderNumber } = draft.state
  if (state === 'confirmed') return
  invalidState(`order ${orderNumber} is ${state}: its deliveries can go on when it is confirmed`)
}

/** Takes an open delivery without lines away; its shipping discounts go with it. */
export const deleteDelivery = command('deleteDelivery', deliveryOnly, (draft, given) => {
  const delivery = draft.openDelivery(given.deliveryId)
  const { deliveryId, deliveryNumber } = delivery
  const lines = draft.state.lineCounts.get(deliveryId) ?? 0
  if (lines > 0) {
    invalidState(`delivery ${deliveryNumber} has ${lines} order lines: move or delete them first`)
  }
  draft.uninvoicedShipping(delivery)
  if (delivery.released) {
    invalidState(
      `shipping of delivery ${deliveryNumber} is released: retractShippingFromInvoicing first`,
    )
  }
  const discounts = draft.state.discountsOf.get(deliveryId)
  draft.commit({
    t: 'deliveryDeleted',
    deliveryId,
    deliveryNumber,
    ...(discounts !== undefined && { discounts }),
  })
})
