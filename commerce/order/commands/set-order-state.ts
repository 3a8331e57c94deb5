// setOrderState: the order's own state machine; deliveries that are not final go with a
// cancellation and come back with it. Source: commerce/README.md "Machines", "Commands".

import { Type } from '@sinclair/typebox'
import { command } from '../command.ts'
import type { Draft } from '../draft.ts'
import { DELIVERY_MOVES, moveTo, ORDER_MOVES } from '../machines.ts'
import type { DeliveryMove } from '../records.ts'
import { invalidState } from '../refuse.ts'
import { commandMembers } from '../shapes.ts'
import { ORDER_STATES, type OrderStateName } from '../state.ts'

/** A delivery's id and states in the record, about. */
const MOVE_CHARS = 64

const schema = commandMembers({
  orderState: Type.Unsafe<OrderStateName>(Type.String({ enum: [...ORDER_STATES] })),
})

export const setOrderState = command('setOrderState', schema, (draft, { orderState }) => {
  const { state } = draft
  if (state.state === orderState) return
  const to = moveTo(`order ${state.orderNumber}`, state.state, orderState, ORDER_MOVES)
  if (state.state === 'confirmed' && to === 'pending') checkUntouched(draft)
  if (to === 'cancelled') checkCancellable(draft)
  const deliveries = cascade(draft, state.state, to)
  draft.copies(deliveries.length * MOVE_CHARS)
  draft.commit({
    t: 'orderStateChanged',
    from: state.state,
    to,
    ...(deliveries.length > 0 && { deliveries }),
  })
})

/** confirmed -> pending: nothing may be under way yet. */
function checkUntouched(draft: Draft): void {
  for (const delivery of draft.state.deliveries.values()) {
    if (delivery.state !== 'processing' && delivery.state !== 'completed') continue
    invalidState(
      `delivery ${delivery.deliveryNumber} is ${delivery.state}: the order can't go back to ` +
        'pending',
    )
  }
  checkNoInvoice(draft, 'go back to pending')
}

function checkCancellable(draft: Draft): void {
  for (const delivery of draft.state.deliveries.values()) {
    if (delivery.state !== 'completed') continue
    invalidState(`delivery ${delivery.deliveryNumber} is completed: the order can't be cancelled`)
  }
  checkNoInvoice(draft, 'be cancelled')
}

function checkNoInvoice(draft: Draft, what: string): void {
  for (const invoice of draft.state.invoices.values()) {
    if (invoice.isCancelled) continue
    invalidState(
      `invoice ${invoice.invoiceNumber} is not cancelled: the order can't ${what} before that`,
    )
  }
}

/** Deliveries that go with a cancellation, or come back from it. */
function cascade(draft: Draft, from: OrderStateName, to: OrderStateName): DeliveryMove[] {
  if (to === 'cancelled') return moves(draft, 'orderCancelled')
  return from === 'cancelled' ? moves(draft, 'orderReopened') : []
}

function moves(draft: Draft, name: 'orderCancelled' | 'orderReopened'): DeliveryMove[] {
  const { from, to } = DELIVERY_MOVES[name]
  const found: DeliveryMove[] = []
  for (const { deliveryId, state } of draft.state.deliveries.values()) {
    if ((from as readonly string[]).includes(state)) found.push([deliveryId, state, to])
  }
  return found
}
