// What the commands that release things to invoicing, or retract them, have in common. What counts
// nothing (in a cancelled delivery) can't be released. Source: commerce/README.md "Machines".

import type { Draft } from '../draft.ts'
import { billingState, BILLING_MOVES, move } from '../machines.ts'
import { invalidState } from '../refuse.ts'
import { type Billable, type BillableKind, isCancelled } from '../state.ts'

interface Thing {
  readonly kind: BillableKind
  readonly id: string
  /** For messages: `order line 3`. */
  readonly what: string
  readonly deliveryId: string
}

export function release(draft: Draft, thing: Billable, named: Thing): void {
  const delivery = draft.delivery(named.deliveryId)
  if (isCancelled(delivery)) {
    const { deliveryNumber, state } = delivery
    invalidState(`delivery ${deliveryNumber} is ${state}: nothing of it can be invoiced`)
  }
  move(named.what, billingState(thing), BILLING_MOVES.release)
  if (!thing.released) draft.commit({ t: 'releasedToInvoicing', kind: named.kind, id: named.id })
}

export function retract(draft: Draft, thing: Billable, named: Thing): void {
  move(named.what, billingState(thing), BILLING_MOVES.retract)
  draft.commit({ t: 'retractedFromInvoicing', kind: named.kind, id: named.id })
}

export function namedLine(draft: Draft, id: string): [Billable, Thing] {
  const line = draft.line(id)
  const { orderLineId, orderLineNumber, deliveryId } = line
  const what = `order line ${orderLineNumber}`
  return [line, { kind: 'orderLine', id: orderLineId, what, deliveryId }]
}

export function namedShipping(draft: Draft, id: string): [Billable, Thing] {
  const delivery = draft.delivery(id)
  const { deliveryId, deliveryNumber } = delivery
  const what = `shipping of delivery ${deliveryNumber}`
  return [delivery, { kind: 'delivery', id: deliveryId, what, deliveryId }]
}

export function namedReturn(draft: Draft, id: string): [Billable, Thing] {
  const item = draft.return(id)
  const { returnId, orderLineId } = item
  const { deliveryId } = draft.line(orderLineId)
  return [item, { kind: 'return', id: returnId, what: `return ${returnId}`, deliveryId }]
}
