// How the commands of an order are defined: they work on its draft.

import { type CommandDefinition, commandMakers } from '../../actor/command.ts'
import type { OrderDraft } from '../draft.ts'

export type OrderCommand = CommandDefinition<OrderDraft>

export const { command, callingCommand } = commandMakers<OrderDraft>()
