// releaseOrderLineToInvoicing: a line may go on the next invoice. Source: COMMERCE 5 row 56.

import { command } from '../command.ts'
import { commandMembers, Id } from '../shapes.ts'
import { namedLine, release } from './release.ts'

export const releaseOrderLineToInvoicing = command(
  'releaseOrderLineToInvoicing',
  commandMembers({ orderLineId: Id }),
  (draft, given) => release(draft, ...namedLine(draft, given.orderLineId)),
)
