// What a case of an order command is, and what the cases have in common. order-commands.test.ts
// runs them.

import { randomUUID } from 'node:crypto'
import type { ErrorCode } from '../../../protocol/errors.ts'
import type { Command, SmallOrder } from '../../harness/orders.ts'

type Members = Readonly<Record<string, unknown>>

/** The order of a case, with an id that nothing in it has yet. */
export interface Place extends SmallOrder {
  readonly id: string
}

export interface CommandCase {
  /** Commands before it, each a batch of its own. */
  readonly before?: (at: Place) => Command[]
  readonly good: (at: Place) => Members
  /** Part of what the order shows then. */
  readonly shows: (at: Place) => Members
  /** Commands between the good one and the bad one. */
  readonly between?: (at: Place) => Command[]
  readonly bad: (at: Place) => Members
  readonly code: ErrorCode
  readonly words: RegExp
}

/** By the command's type. */
export type CommandCases = Readonly<Record<string, CommandCase>>

/** An order with this number and reference is there before the cases run. */
export const TAKEN = 'TAKEN'

/** No order has anything of this id. */
export const NOBODY = randomUUID()

export const confirm: Command = { type: 'setOrderState', orderState: 'confirmed' }

/** What shows of the first delivery. */
export const delivery = (members: Members): Members => ({ deliveries: [members] })

/** What shows of the first order line. */
export const line = (members: Members): Members => ({ orderLines: [members] })

/** A second, empty delivery. */
export const secondDelivery = ({ id }: Place): Command => ({
  type: 'createDelivery',
  deliveryId: id,
})
