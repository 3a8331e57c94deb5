// retractDelivery: processing -> open. Source: commerce/README.md "Machines", "Commands".

import { command } from '../command.ts'
import { deliveryOnly, moveDelivery } from './move-delivery.ts'

export const retractDelivery = command('retractDelivery', deliveryOnly, (draft, given) =>
  moveDelivery(draft, draft.delivery(given.deliveryId), 'retract'),
)
