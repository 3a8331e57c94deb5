// completeDelivery: open or processing -> completed, of a confirmed order; the delivery is final
// from then on. Source: commerce/README.md "Machines", "Commands".

import { command } from '../command.ts'
import { checkConfirmed, deliveryOnly, moveDelivery } from './move-delivery.ts'

export const completeDelivery = command('completeDelivery', deliveryOnly, (draft, given) => {
  const delivery = draft.delivery(given.deliveryId)
  checkConfirmed(draft)
  moveDelivery(draft, delivery, 'complete')
})
