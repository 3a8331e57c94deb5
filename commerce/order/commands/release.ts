// Commands that release lines, shipping fees and returns to invoicing, or retract them. Source:
// commerce/README.md "Machines", "Commands".

import { move } from '../../actor/machine.ts'
import { invalidState } from '../../actor/refuse.ts'
import { commandMembers, Id } from '../../actor/shapes.ts'
import type { OrderDraft } from '../draft.ts'
import { BILLING_MOVES, billingState } from '../state/machines.ts'
import { type Billable, type BillableKind, isCancelled } from '../state/state.ts'
import { command } from './command.ts'

/** A line may go on the next invoice. */
export const releaseOrderLineToInvoicing = command(
  'releaseOrderLineToInvoicing',
  commandMembers({ orderLineId: Id }),
  (draft, given) => release(draft, ...namedLine(draft, given.orderLineId)),
)

/** A released line is held back again. */
export const retractOrderLineFromInvoicing = command(
  'retractOrderLineFromInvoicing',
  commandMembers({ orderLineId: Id }),
  (draft, given) => retract(draft, ...namedLine(draft, given.orderLineId)),
)

/** A shipping fee may go on the next invoice. */
export const releaseShippingToInvoicing = command(
  'releaseShippingToInvoicing',
  commandMembers({ deliveryId: Id }),
  (draft, given) => release(draft, ...namedShipping(draft, given.deliveryId)),
)

/** A released shipping fee is held back again. */
export const retractShippingFromInvoicing = command(
  'retractShippingFromInvoicing',
  commandMembers({ deliveryId: Id }),
  (draft, given) => retract(draft, ...namedShipping(draft, given.deliveryId)),
)

/** A return may go on the next invoice. */
export const releaseReturnToInvoicing = command(
  'releaseReturnToInvoicing',
  commandMembers({ returnId: Id }),
  (draft, given) => release(draft, ...namedReturn(draft, given.returnId)),
)

/** A released return is held back again. */
export const retractReturnFromInvoicing = command(
  'retractReturnFromInvoicing',
  commandMembers({ returnId: Id }),
  (draft, given) => retract(draft, ...namedReturn(draft, given.returnId)),
)

interface Thing {
  readonly kind: BillableKind
  readonly id: string
  /** For messages: `order line 3`. */
  readonly what: string
  readonly deliveryId: string
}

/** What counts nothing, in a cancelled delivery, can't be released. */
function release(draft: OrderDraft, thing: Billable, named: Thing): void {
  const delivery = draft.delivery(named.deliveryId)
  if (isCancelled(delivery)) {
    const { deliveryNumber, state } = delivery
    invalidState(`delivery ${deliveryNumber} is ${state}: nothing of it can be invoiced`)
  }
  move(named.what, billingState(thing), BILLING_MOVES.release)
  if (!thing.released) draft.commit({ t: 'releasedToInvoicing', kind: named.kind, id: named.id })
}

function retract(draft: OrderDraft, thing: Billable, named: Thing): void {
  move(named.what, billingState(thing), BILLING_MOVES.retract)
  draft.commit({ t: 'retractedFromInvoicing', kind: named.kind, id: named.id })
}

function namedLine(draft: OrderDraft, id: string): [Billable, Thing] {
  const line = draft.line(id)
  const { orderLineId, orderLineNumber, deliveryId } = line
  const what = `order line ${orderLineNumber}`
  return [line, { kind: 'orderLine', id: orderLineId, what, deliveryId }]
}

function namedShipping(draft: OrderDraft, id: string): [Billable, Thing] {
  const delivery = draft.delivery(id)
  const { deliveryId, deliveryNumber } = delivery
  const what = `shipping of delivery ${deliveryNumber}`
  return [delivery, { kind: 'delivery', id: deliveryId, what, deliveryId }]
}

function namedReturn(draft: OrderDraft, id: string): [Billable, Thing] {
  const item = draft.return(id)
  const { returnId, orderLineId } = item
  const { deliveryId } = draft.line(orderLineId)
  return [item, { kind: 'return', id: returnId, what: `return ${returnId}`, deliveryId }]
}
