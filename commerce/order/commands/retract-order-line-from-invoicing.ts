// retractOrderLineFromInvoicing: a released line is held back again. Source: commerce/README.md
// "Commands".

import { command } from '../command.ts'
import { commandMembers, Id } from '../shapes.ts'
import { namedLine, retract } from './release.ts'

export const retractOrderLineFromInvoicing = command(
  'retractOrderLineFromInvoicing',
  commandMembers({ orderLineId: Id }),
  (draft, given) => retract(draft, ...namedLine(draft, given.orderLineId)),
)
