// What the commands that move a delivery's state have in common: the machine, and the record.
// Source: commerce/README.md "Machines".

import type { Draft } from '../draft.ts'
import { DELIVERY_MOVES, move } from '../machines.ts'
import { invalidState } from '../refuse.ts'
import { commandMembers, Id } from '../shapes.ts'
import type { Delivery } from '../state.ts'

export const deliveryOnly = commandMembers({ deliveryId: Id })

export function moveDelivery(
  draft: Draft,
  delivery: Delivery,
  name: keyof typeof DELIVERY_MOVES,
): void {
  const { deliveryId, deliveryNumber, state } = delivery
  const to = move(`delivery ${deliveryNumber}`, state, DELIVERY_MOVES[name])
  draft.commit({ t: 'deliveryStateChanged', deliveryId, from: state, to })
}

/** Goods leave for a confirmed order only. */
export function checkConfirmed(draft: Draft): void {
  const { state, orderNumber } = draft.state
  if (state === 'confirmed') return
  invalidState(`order ${orderNumber} is ${state}: its deliveries can go on when it is confirmed`)
}
