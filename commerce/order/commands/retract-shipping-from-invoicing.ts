// retractShippingFromInvoicing: a released shipping fee is held back again. Source:
// commerce/README.md "Commands".

import { command } from '../command.ts'
import { commandMembers, Id } from '../shapes.ts'
import { namedShipping, retract } from './release.ts'

export const retractShippingFromInvoicing = command(
  'retractShippingFromInvoicing',
  commandMembers({ deliveryId: Id }),
  (draft, given) => retract(draft, ...namedShipping(draft, given.deliveryId)),
)
