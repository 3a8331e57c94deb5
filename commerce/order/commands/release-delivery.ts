// releaseDelivery: open -> processing, of a confirmed order. Source: commerce/README.md "Machines",
// "Commands".

import { command } from '../command.ts'
import { checkConfirmed, deliveryOnly, moveDelivery } from './move-delivery.ts'

export const releaseDelivery = command('releaseDelivery', deliveryOnly, (draft, given) => {
  const delivery = draft.delivery(given.deliveryId)
  checkConfirmed(draft)
  moveDelivery(draft, delivery, 'release')
})
