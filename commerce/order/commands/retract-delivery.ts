// retractDelivery: processing -> open. Source: COMMERCE 3, 5 row 20.

import { command } from '../command.ts'
import { deliveryOnly, moveDelivery } from './move-delivery.ts'

export const retractDelivery = command('retractDelivery', deliveryOnly, (draft, given) =>
  moveDelivery(draft, draft.delivery(given.deliveryId), 'retract'),
)
