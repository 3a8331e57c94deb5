// retractReturnFromInvoicing: a released return is held back again. Source: commerce/README.md
// "Commands".

import { command } from '../command.ts'
import { commandMembers, Id } from '../shapes.ts'
import { namedReturn, retract } from './release.ts'

export const retractReturnFromInvoicing = command(
  'retractReturnFromInvoicing',
  commandMembers({ returnId: Id }),
  (draft, given) => retract(draft, ...namedReturn(draft, given.returnId)),
)
