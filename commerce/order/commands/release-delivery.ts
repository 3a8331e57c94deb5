// releaseDelivery: open -> processing, of a confirmed order. Source: COMMERCE 3, 5 row 19.

import { command } from '../command.ts'
import { checkConfirmed, deliveryOnly, moveDelivery } from './move-delivery.ts'

export const releaseDelivery = command('releaseDelivery', deliveryOnly, (draft, given) => {
  const delivery = draft.delivery(given.deliveryId)
  checkConfirmed(draft)
  moveDelivery(draft, delivery, 'release')
})
