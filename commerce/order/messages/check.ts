// The shape of order messages, checked at the edge before anything is decided: body, then each
// command by its own schema, with messages that say what is wrong, where, and what would be right.
// decide.ts trusts what passed. Source: CONTRACT 1.13.

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { type ErrorItem, errorItem } from '../../../protocol/errors.ts'
import type { Message } from '../../../protocol/message.ts'
import { isCurrency } from '../../../protocol/money.ts'
import { compileShape, type ShapeCheck } from '../../../protocol/json/validation.ts'
import { commandChecks } from '../../actor/check-commands.ts'
import type { Command } from '../../actor/command.ts'
import { Id, Key, members, Timestamp } from '../../actor/shapes.ts'
import { COMMANDS, LATER_COMMANDS } from '../command-table.ts'
import { OrderNumber } from './shapes.ts'

/** Body of `create`. */
export interface CreateBody {
  readonly currencyCode: string
  readonly taxIncluded: boolean
  readonly orderNumber?: string
  readonly createdAt?: string
  readonly channelKey?: string
  readonly commands?: readonly Command[]
}

const noMembers = Type.Unsafe<object | null>({
  type: ['object', 'null'],
  maxProperties: 0,
})

/** Body schemas by message type. */
export const BODIES = {
  create: members({
    currencyCode: Type.String(),
    taxIncluded: Type.Boolean(),
    orderNumber: Type.Optional(OrderNumber),
    createdAt: Type.Optional(Timestamp),
    channelKey: Type.Optional(Key),
    commands: Type.Optional(Type.Array(Type.Unknown(), { maxItems: LIMITS.order.commandsMax })),
  }),
  applyCommands: members({
    commands: Type.Array(Type.Unknown(), { minItems: 1, maxItems: LIMITS.order.commandsMax }),
  }),
  query: members({
    fields: Type.Optional(Type.Array(Type.String(), { maxItems: LIMITS.graph.fieldsMax })),
    navigate: Type.Optional(
      Type.Array(Type.Object({}, { additionalProperties: true }), {
        maxItems: LIMITS.graph.navigationsMax,
      }),
    ),
  }),
  delete: noMembers,
  getCheckpoints: noMembers,
  rewind: members({ checkpointId: Id }),
} as const

export const MESSAGE_TYPES = [...Object.keys(BODIES), 'capturePayments'] as const

const bodyChecks = new Map<string, ShapeCheck>(
  Object.entries(BODIES).map(([type, schema]) => [type, compileShape(schema)]),
)
export const { checkCommand, checkCommands } = commandChecks(COMMANDS, LATER_COMMANDS)

/** Errors of a message's shape, or null. Stops at the first. */
export function checkMessage(message: Message): readonly ErrorItem[] | null {
  const { type, body } = message
  const check = bodyChecks.get(type)
  if (check === undefined) return [unknownMessage(type)]
  const problem = check(body ?? null)
  if (problem !== null) {
    const where = problem.member === '' ? 'the body' : problem.member
    return [
      errorItem('INVALID_MESSAGE_BODY', `${type}: ${where} ${problem.message}`, {
        ...(problem.member !== '' && { member: problem.member }),
      }),
    ]
  }
  if (type === 'create') return checkCreate(body as CreateBody)
  if (type === 'applyCommands') {
    return checkCommands((body as { commands: readonly unknown[] }).commands)
  }
  return null
}

function unknownMessage(type: string): ErrorItem {
  if (type === 'capturePayments') {
    return errorItem('NOT_AVAILABLE', 'capturePayments is not available yet: it needs payments')
  }
  return errorItem(
    'INVALID_MESSAGE_BODY',
    `an order has no message ${JSON.stringify(type.slice(0, 100))}; it knows ` +
      MESSAGE_TYPES.join(', '),
  )
}

function checkCreate(body: CreateBody): readonly ErrorItem[] | null {
  if (!isCurrency(body.currencyCode)) {
    return [
      errorItem(
        'INVALID_MESSAGE_BODY',
        `create: currencyCode ${JSON.stringify(body.currencyCode.slice(0, 20))} is not a ` +
          'currency of ISO 4217 such as EUR',
        { member: 'currencyCode' },
      ),
    ]
  }
  return body.commands === undefined ? null : checkCommands(body.commands)
}
