// releaseOrderLineToInvoicing: a line may go on the next invoice. Source: commerce/README.md
// "Commands".

import { command } from '../command.ts'
import { commandMembers, Id } from '../shapes.ts'
import { namedLine, release } from './release.ts'

export const releaseOrderLineToInvoicing = command(
  'releaseOrderLineToInvoicing',
  commandMembers({ orderLineId: Id }),
  (draft, given) => release(draft, ...namedLine(draft, given.orderLineId)),
)
