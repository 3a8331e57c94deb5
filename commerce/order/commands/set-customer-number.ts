// setCustomerNumber: the customer of the order; null clears. Source: commerce/README.md "Commands".

import { command } from '../command.ts'
import { difference } from '../difference.ts'
import { commandMembers, Key, nullable } from '../shapes.ts'

export const setCustomerNumber = command(
  'setCustomerNumber',
  commandMembers({ value: nullable(Key) }),
  (draft, { value }) => {
    const { customerNumber } = draft.state
    const changed = difference({ customerNumber }, { customerNumber: value })
    if (changed !== null) draft.commit({ t: 'orderChanged', ...changed })
  },
)
