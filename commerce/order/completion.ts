// Automatic completion: an order that a batch leaves with nothing more to do is completed by that
// batch, where the setting asks for it. It stands at the end of a batch, behind the commands of
// rules and before rules that judge the result. Source: commerce/README.md "Machines".
//
// Payments are not known yet: what is invoiced counts as paid.

import type { OrderDraft } from './draft.ts'
import { fulfilmentState, isInvoiced } from './state/derived-states.ts'
import type { OrderState } from './state/state.ts'

/** KONTOR_ORDER_COMPLETION: whether orders complete by themselves. */
export type Completion = 'manual' | 'automatic'

/**
 * Completes a confirmed order when this batch made it done; `before` null: a new order. One that
 * was done before stays as it is, so that a caller can take a completed order back to `confirmed`.
 */
export function completeIfDone(draft: OrderDraft, before: OrderState | null): void {
  const { state } = draft
  if (state.state !== 'confirmed' || !isDone(state)) return
  if (before !== null && isDone(before)) return
  draft.commit({ t: 'orderStateChanged', from: 'confirmed', to: 'completed' })
}

/** Every delivery is final and at least one completed, and nothing is left to invoice. */
function isDone(state: OrderState): boolean {
  return fulfilmentState(state) === 'complete' && isInvoiced(state)
}
