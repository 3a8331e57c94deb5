// The state machines of an order, as tables above one function that refuses what is not in them.
// They stand between the commands that move a state and the records that say it moved.
// Source: commerce/README.md "Machines".

import { invalidState } from '../refuse.ts'
import type { Billable, DeliveryStateName, OrderStateName } from './state.ts'

type Moves<S extends string> = Readonly<Record<S, readonly S[]>>

/** setOrderState: from -> to. The same state again is no move and no error. */
export const ORDER_MOVES: Moves<OrderStateName> = {
  pending: ['confirmed', 'cancelled'],
  confirmed: ['pending', 'completed', 'cancelled'],
  completed: ['confirmed'],
  cancelled: ['pending', 'confirmed'],
}

export interface Transition<S extends string> {
  readonly from: readonly S[]
  readonly to: S
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

/** The state that follows, or a refusal. `what` names the thing: `delivery D1`. */
export function move<S extends string>(what: string, from: S, transition: Transition<S>): S {
  if (transition.from.includes(from)) return transition.to
  return invalidTransition(what, from, transition.to, transition.from)
}

/** The state asked for, or a refusal. */
export function moveTo<S extends string>(what: string, from: S, to: S, moves: Moves<S>): S {
  if (moves[from].includes(to)) return to
  const sources = (Object.keys(moves) as S[]).filter((state) => moves[state].includes(to))
  return invalidTransition(what, from, to, sources)
}

function invalidTransition(
  what: string,
  from: string,
  to: string,
  sources: readonly string[],
): never {
  invalidState(
    `${what} is ${from} and can't become ${to}: that takes one that is ${sources.join(' or ')}`,
  )
}
