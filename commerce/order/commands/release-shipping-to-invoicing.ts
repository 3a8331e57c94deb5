// releaseShippingToInvoicing: a shipping fee may go on the next invoice. Source: commerce/README.md
// "Commands".

import { command } from '../command.ts'
import { commandMembers, Id } from '../shapes.ts'
import { namedShipping, release } from './release.ts'

export const releaseShippingToInvoicing = command(
  'releaseShippingToInvoicing',
  commandMembers({ deliveryId: Id }),
  (draft, given) => release(draft, ...namedShipping(draft, given.deliveryId)),
)
