// generateOrderNumberByPrefix: the next number with a prefix of the caller's; pending orders only.
// As part of a `create` it takes the place of the default number. Source: commerce/README.md
// "Numbers", "Commands".

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { assert } from '../../../protocol/errors.ts'
import { askingCommand } from '../command.ts'
import { commandMembers } from '../shapes.ts'
import { checkRenumbering, ORDER_NUMBER_KEY, renumber } from './set-order-number.ts'

export const generateOrderNumberByPrefix = askingCommand(
  'generateOrderNumberByPrefix',
  commandMembers({ prefix: Type.String({ maxLength: LIMITS.tagCharsMax, format: 'key' }) }),
  function* (draft, { prefix }) {
    checkRenumbering(draft)
    const number = yield { ask: 'number', keyType: ORDER_NUMBER_KEY, prefix }
    assert(typeof number === 'string', 'the answer to a number is its text')
    renumber(draft, number)
  },
)
