// releaseReturnToInvoicing: a return may go on the next invoice. Source: commerce/README.md
// "Commands".

import { command } from '../command.ts'
import { commandMembers, Id } from '../shapes.ts'
import { namedReturn, release } from './release.ts'

export const releaseReturnToInvoicing = command(
  'releaseReturnToInvoicing',
  commandMembers({ returnId: Id }),
  (draft, given) => release(draft, ...namedReturn(draft, given.returnId)),
)
