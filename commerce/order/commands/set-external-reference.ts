// setExternalReference: the order's name in another system, unique over all orders; null gives it
// up. Source: commerce/README.md "Commands", ARCHITECTURE 4.

import { RequestError } from '../../../protocol/errors.ts'
import { askingCommand } from '../command.ts'
import { commandMembers, Key, nullable } from '../shapes.ts'

/** Type of the natural key `externalReference`. */
export const EXTERNAL_REFERENCE_KEY = 'order!externalReference'

export const setExternalReference = askingCommand(
  'setExternalReference',
  commandMembers({ value: nullable(Key) }),
  function* (draft, { value }) {
    const before = draft.state.externalReference
    if (value === before) return
    if (value !== null) {
      const reserved = yield { ask: 'reserve', keyType: EXTERNAL_REFERENCE_KEY, key: value }
      if (reserved !== true) {
        throw new RequestError('ALREADY_EXISTS', `another order has externalReference ${value}`, {
          member: 'value',
        })
      }
    }
    draft.commit({
      t: 'orderChanged',
      before: { externalReference: before },
      after: { externalReference: value },
    })
  },
)
