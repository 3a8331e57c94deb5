// reopenDelivery: cancelled -> open, unless the order is cancelled. Source: commerce/README.md
// "Machines", "Commands".

import { command } from '../command.ts'
import { invalidState } from '../refuse.ts'
import { deliveryOnly, moveDelivery } from './move-delivery.ts'

export const reopenDelivery = command('reopenDelivery', deliveryOnly, (draft, given) => {
  const delivery = draft.delivery(given.deliveryId)
  if (draft.state.state === 'cancelled') {
    invalidState(`order ${draft.state.orderNumber} is cancelled: reopen it with setOrderState`)
  }
  moveDelivery(draft, delivery, 'reopen')
})
