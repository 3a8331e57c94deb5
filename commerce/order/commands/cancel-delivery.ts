// cancelDelivery: open or processing -> cancelled: its lines and its fee count nothing then, so
// none of them may be on an invoice. Source: commerce/README.md "Machines", "Commands".

import { command } from '../command.ts'
import { deliveryOnly, moveDelivery } from './move-delivery.ts'

export const cancelDelivery = command('cancelDelivery', deliveryOnly, (draft, given) => {
  const delivery = draft.delivery(given.deliveryId)
  if (delivery.state === 'open' || delivery.state === 'processing') {
    draft.uninvoicedShipping(delivery)
    const line = draft.invoiced().lines.get(delivery.deliveryId)
    if (line !== undefined) draft.uninvoicedLine(line)
  }
  moveDelivery(draft, delivery, 'cancel')
})
