// The order actor: the one door of this folder. The actor runtime knows behaviours only. Source:
// ARCHITECTURE 2, commerce/README.md.

import type { ActorRecord, Behaviour, NaturalKey } from '../../protocol/behaviour.ts'
import type { Message } from '../../protocol/message.ts'
import { type ChannelView, NO_CHANNELS } from './channels.ts'
import { ORDER_NUMBER_KEY } from './commands/order-number.ts'
import { EXTERNAL_REFERENCE_KEY } from './commands/order.ts'
import type { Completion } from './completion.ts'
import { decide } from './decide.ts'
import { history } from './graph/journal.ts'
import { ORDER_NODE_TYPES } from './graph/node-types.ts'
import { project, refs } from './graph/project.ts'
import { touched } from './graph/touched.ts'
import { checkMessage, type CreateBody, MESSAGE_TYPES } from './messages/check.ts'
import { describeOrderMessages } from './messages/described.ts'
import { ORDER_SHAPES } from './records/record-shapes.ts'
import type { OrderRecord } from './records/records.ts'
import { evolve } from './state/evolve.ts'
import { fromSnapshot, toSnapshot } from './state/snapshot.ts'
import type { OrderState } from './state/state.ts'

/**
 * The behaviour of orders. `channels` is asked, and `completion` counts, while commands are
 * decided, never in a replay.
 */
export function orderBehaviour(
  channels: ChannelView = NO_CHANNELS,
  completion: Completion = 'manual',
): Behaviour<OrderState> {
  return {
    type: 'order',
    home: 'shards',
    messageTypes: MESSAGE_TYPES,
    creates: ['create'],
    isRead: (messageType) => messageType === 'query' || messageType === 'getCheckpoints',
    check: checkMessage,
    describe: describeOrderMessages,
    chosenKey: (message) => {
      const { orderNumber } = (message.body ?? {}) as Partial<CreateBody>
      if (message.type !== 'create' || typeof orderNumber !== 'string') return null
      return { keyType: ORDER_NUMBER_KEY, key: orderNumber }
    },
    mayTake,
    decide: (state, message, turn) => decide(state, message, turn, { channels, completion }),
    shapes: ORDER_SHAPES,
    evolve: (state, record, meta) => evolve(state, recordOf(record), meta),
    isDeletion: ({ t }) => t === 'orderDeleted',
    isDeleted: (state) => state.deleted,
    // An order is reached by its number; its external reference is unique, but no address.
    keys: ({ orderNumber }) => [orderNumber],
    naturalKeys: ({ orderNumber, externalReference }) => {
      const number = { keyType: ORDER_NUMBER_KEY, key: orderNumber }
      if (externalReference === null) return [number]
      return [number, { keyType: EXTERNAL_REFERENCE_KEY, key: externalReference }]
    },
    toSnapshot,
    fromSnapshot,
    nodeTypes: ORDER_NODE_TYPES,
    touched: (record, actorId) => touched(recordOf(record), actorId),
    project,
    nodes: refs,
    history: (record, meta) => history(recordOf(record), meta),
  }
}

/** The numbers and the external references that a message names. */
function mayTake({ body }: Message): readonly NaturalKey[] {
  const { orderNumber, commands } = (body ?? {}) as { orderNumber?: unknown; commands?: unknown }
  const keys: NaturalKey[] = []
  if (typeof orderNumber === 'string') keys.push({ keyType: ORDER_NUMBER_KEY, key: orderNumber })
  if (!Array.isArray(commands)) return keys
  for (const command of commands as readonly unknown[]) {
    const { type, value } = (command ?? {}) as { type?: unknown; value?: unknown }
    if (typeof value !== 'string') continue
    if (type === 'setOrderNumber') keys.push({ keyType: ORDER_NUMBER_KEY, key: value })
    if (type === 'setExternalReference') keys.push({ keyType: EXTERNAL_REFERENCE_KEY, key: value })
  }
  return keys
}

/**
 * Records come back from the journal as they were written; evolve refuses kinds it doesn't know.
 */
function recordOf(record: ActorRecord): OrderRecord {
  return record as unknown as OrderRecord
}
