// The state machines of an order, as tables. Source: commerce/README.md "Machines".

import type { Moves, Transition } from '../../actor/machine.ts'
import type { Billable, DeliveryStateName, OrderStateName } from './state.ts'

/** setOrderState: from -> to. The same state again is no move and no error. */
export const ORDER_MOVES: Moves<OrderStateName> = {
  pending: ['confirmed', 'cancelled'],
  confirmed: ['pending', 'completed', 'cancelled'],
  completed: ['confirmed'],
  cancelled: ['pending', 'confirmed'],
}

/** Delivery states by what moves them. */
export const DELIVERY_MOVES = {
  release: { from: ['open'], to: 'processing' },
  retract: { from: ['processing'], to: 'open' },
  complete: { from: ['open', 'processing'], to: 'completed' },
  cancel: { from: ['open', 'processing'], to: 'cancelled' },
  reopen: { from: ['cancelled'], to: 'open' },
  orderCancelled: { from: ['open', 'processing'], to: 'cancelledByOrder' },
  orderReopened: { from: ['cancelledByOrder'], to: 'open' },
} as const satisfies Record<string, Transition<DeliveryStateName>>

export type BillingState = 'notReleased' | 'released' | 'invoiced'

/** Lines, shipping fees and returns on their way to an invoice. */
export const BILLING_MOVES = {
  /** Releasing what is released is no move and no error: new returns start so. */
  release: { from: ['notReleased', 'released'], to: 'released' },
  retract: { from: ['released'], to: 'notReleased' },
  invoice: { from: ['released'], to: 'invoiced' },
  cancelInvoice: { from: ['invoiced'], to: 'released' },
} as const satisfies Record<string, Transition<BillingState>>

export function billingState(thing: Billable): BillingState {
  if (thing.invoiceId !== null) return 'invoiced'
  return thing.released ? 'released' : 'notReleased'
}
