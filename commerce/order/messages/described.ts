// Messages and commands of an order for the OpenAPI document, with an example each.

import type { MessageDescriptions } from '../../../protocol/behaviour.ts'
import { describeMessages } from '../../actor/described.ts'
import { COMMANDS, LATER_COMMANDS } from '../command-table.ts'
import { BODIES } from './check.ts'
import { BODY_EXAMPLES, commandExample } from './examples.ts'

export function describeOrderMessages(): MessageDescriptions {
  return describeMessages({
    name: 'Order',
    what: 'an order',
    bodies: BODIES,
    commands: COMMANDS,
    later: LATER_COMMANDS,
    bodyExamples: BODY_EXAMPLES,
    commandExample,
  })
}
