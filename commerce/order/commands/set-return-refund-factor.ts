// setReturnRefundFactor: how much of its worth a return gives back; not once it is invoiced.
// Source: commerce/README.md "Commands".

import { roundFactor } from '../../../protocol/money.ts'
import { command } from '../command.ts'
import { difference } from '../difference.ts'
import { commandMembers, Id, Part } from '../shapes.ts'
import { openReturn } from './open-return.ts'

export const setReturnRefundFactor = command(
  'setReturnRefundFactor',
  commandMembers({ returnId: Id, refundFactor: Part }),
  (draft, given) => {
    const { returnId, refundFactor } = openReturn(draft, given.returnId)
    const changed = difference({ refundFactor }, { refundFactor: roundFactor(given.refundFactor) })
    if (changed !== null) draft.commit({ t: 'returnChanged', returnId, ...changed })
  },
)
