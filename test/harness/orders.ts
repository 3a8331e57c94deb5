// Orders for tests: messages and commands as a caller writes them, and an order that has one of
// each thing. For tests that need an order (commerce/README.md "Messages", "Commands").

import { randomUUID } from 'node:crypto'
import { ORDER_NODE_TYPES } from '../../commerce/order/graph/node-types.ts'
import type { NodeType } from '../../protocol/graph/node-type.ts'
import type { NodeProcess } from './node-process.ts'

export interface Command {
  readonly type: string
  readonly [member: string]: unknown
}

export interface Message {
  readonly type: string
  readonly body?: unknown
}

export function create(body: Record<string, unknown> = {}, ...commands: Command[]): Message {
  return {
    type: 'create',
    body: {
      currencyCode: 'EUR',
      taxIncluded: true,
      ...body,
      ...(commands.length > 0 ? { commands } : {}),
    },
  }
}

export function apply(...commands: Command[]): Message {
  return { type: 'applyCommands', body: { commands } }
}

export function query(...fields: string[]): Message {
  return { type: 'query', body: { fields } }
}

/** An order with one open delivery (shipping 5) and one line (2 at 10, 25 % tax included). */
export interface SmallOrder {
  readonly orderId: string
  readonly orderNumber: string
  readonly deliveryId: string
  readonly orderLineId: string
}

let made = 0

/** The commands of such an order, with the ids that it gets. */
export function smallOrderCommands(deliveryId: string, orderLineId: string): Command[] {
  return [
    { type: 'createDelivery', deliveryId, shippingPrice: 5, shippingTaxFactor: 0.25 },
    {
      type: 'createOrderLine',
      deliveryId,
      orderLineId,
      productNumber: 'P-1',
      quantity: 2,
      unitPrice: 10,
      taxFactor: 0.25,
    },
  ]
}

/** Makes it; `commands` are applied in the same batch, behind its own. */
export async function smallOrder(
  node: NodeProcess,
  body: Record<string, unknown> = {},
  ...commands: ((order: SmallOrder) => Command)[]
): Promise<SmallOrder> {
  const order = {
    orderId: '',
    orderNumber: (body['orderNumber'] as string | undefined) ?? `SMALL-${process.pid}-${++made}`,
    deliveryId: randomUUID(),
    orderLineId: randomUUID(),
  }
  const all = [
    ...smallOrderCommands(order.deliveryId, order.orderLineId),
    ...commands.map((one) => one(order)),
  ]
  const { orderNumber } = order
  const answer = await node.order('new', [create({ ...body, orderNumber }, ...all)])
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
  return { ...order, orderId: answer.json<{ data: SmallOrder }>().data.orderId }
}

/** By edge: the nodes that are reached through it alone. */
const CHILDREN: Readonly<Record<string, readonly unknown[]>> = {
  orderLines: [{ edge: 'skus', node: { fields: fieldsOf('orderLineSku') } }],
  invoices: [{ edge: 'invoiceLines', node: { fields: fieldsOf('invoiceLine') } }],
}

/** Everything that an order shows: all its fields, those of its children, and of theirs. */
export const WHOLE_ORDER = {
  fields: fieldsOf('order'),
  navigate: typeOf('order').edges.map(({ name, node }) => ({
    edge: name,
    node: { fields: fieldsOf(node), navigate: CHILDREN[name] ?? [] },
  })),
}

function typeOf(name: string): NodeType {
  return ORDER_NODE_TYPES.find((type) => type.name === name)!
}

function fieldsOf(name: string): string[] {
  return typeOf(name).fields.map((field) => field.name)
}

/** An order as its own actor shows it. */
export async function wholeOrder(node: NodeProcess, id: string): Promise<Record<string, unknown>> {
  const answer = await node.order(id, [{ type: 'query', body: WHOLE_ORDER }])
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
  return answer.json<{ data: Record<string, unknown> }>().data
}
