// A decision on an order under way. Commands look things up and commit records here; decide.ts
// makes the decision of it. Source: ARCHITECTURE 2.

import { LIMITS } from '../../config/limits.ts'
import type { Turn } from '../../protocol/behaviour.ts'
import { assert, RequestError } from '../../protocol/errors.ts'
import { minorDigits } from '../../protocol/money.ts'
import { Draft, type DraftModel } from '../actor/draft.ts'
import { invalid, invalidState } from '../actor/refuse.ts'
import type { ChannelView } from './channels.ts'
import type { OrderCreated, OrderRecord } from './records/records.ts'
import { REPRICES } from './records/records.ts'
import { evolve } from './state/evolve.ts'
import {
  copyState,
  type Delivery,
  type Invoice,
  isCancelled,
  type OrderLine,
  type OrderState,
  type Return,
  type StaticDiscount,
} from './state/state.ts'
import { calculate } from './totals/totals.ts'

/** What stands on invoices that are not cancelled, by what asks for it. */
export interface Invoiced {
  /** Invoice id by the discount that has a share on it. */
  readonly discounts: ReadonlyMap<string, string>
  /** An invoiced line of each delivery that has one. */
  readonly lines: ReadonlyMap<string, OrderLine>
}

/** Kinds after which that must be found again. */
const MOVES_INVOICED: ReadonlySet<string> = new Set([
  'invoiceCreated',
  'invoiceCancelled',
  'orderLineMoved',
])

function invoicedOf(state: OrderState): Invoiced {
  const discounts = new Map<string, string>()
  const lines = new Map<string, OrderLine>()
  if (state.invoices.size === 0) return { discounts, lines }
  for (const line of state.lines.values()) {
    if (line.invoiceId === null) continue
    lines.set(line.deliveryId, line)
    for (const { referenceId } of line.shares) discounts.set(referenceId, line.invoiceId)
  }
  for (const { invoiceId, shares } of state.deliveries.values()) {
    if (invoiceId === null) continue
    for (const { referenceId } of shares) discounts.set(referenceId, invoiceId)
  }
  return { discounts, lines }
}

const MODEL = { what: 'an order', evolve, copy: copyState } satisfies DraftModel<
  OrderState,
  OrderRecord
>

export class OrderDraft extends Draft<OrderState, OrderRecord> {
  readonly channels: ChannelView
  /** Decimals of the order's currency. */
  readonly digits: number
  #repriced = false
  #lineNumbers: Set<string> | null = null
  #invoiced: Invoiced | null = null
  #invoices = 0

  /** `from`: the state to go on from (it is copied), or the record that makes a new order. */
  constructor(from: OrderState | OrderCreated, turn: Turn, channels: ChannelView) {
    super('t' in from ? { birth: from } : { state: from }, turn, MODEL)
    this.channels = channels
    this.digits = minorDigits(this.state.currencyCode)
  }

  override commit(record: OrderRecord): void {
    assert(record.t !== 'rewound', 'a rewind replaces the state and is decided without a draft')
    super.commit(record)
    if (REPRICES[record.t]) this.#repriced = true
    if (MOVES_INVOICED.has(record.t)) this.#invoiced = null
  }

  /** Brings all amounts up to date; throws INVALID_COMMAND when one is out of bounds. */
  calculate(): void {
    if (!this.#repriced) return
    this.#repriced = false
    const changed = calculate(this.state, this.digits)
    if (changed !== null) this.commit(changed)
  }

  delivery(id: string, member = 'deliveryId'): Delivery {
    const { deliveries } = this.state
    return (
      deliveries.get(id) ?? deliveries.get(id.toLowerCase()) ?? notFound('delivery', id, member)
    )
  }

  line(id: string): OrderLine {
    const { lines } = this.state
    return lines.get(id) ?? lines.get(id.toLowerCase()) ?? notFound('order line', id, 'orderLineId')
  }

  discount(id: string): StaticDiscount {
    const discount = this.state.discounts.get(id.toLowerCase())
    return discount ?? notFound('discount', id, 'discountId')
  }

  return(id: string): Return {
    return this.state.returns.get(id.toLowerCase()) ?? notFound('return', id, 'returnId')
  }

  invoice(id: string): Invoice {
    return this.state.invoices.get(id.toLowerCase()) ?? notFound('invoice', id, 'invoiceId')
  }

  /** A delivery in which lines, prices and addresses may still be changed. */
  openDelivery(id: string, member = 'deliveryId'): Delivery {
    const delivery = this.delivery(id, member)
    if (delivery.state === 'completed' || isCancelled(delivery)) {
      invalidState(
        `delivery ${delivery.deliveryNumber} is ${delivery.state}: only an open or processing ` +
          'one can be changed',
      )
    }
    return delivery
  }

  /** A line that may still be moved and described anew: its delivery is open. */
  undeliveredLine(id: string): OrderLine {
    const line = this.line(id)
    this.openDelivery(line.deliveryId)
    return line
  }

  /** A line whose amounts may still be changed: its delivery is open, and it is not invoiced. */
  openLine(id: string): OrderLine {
    const line = this.undeliveredLine(id)
    this.uninvoicedLine(line)
    return line
  }

  uninvoicedLine(line: OrderLine): void {
    if (line.invoiceId !== null) {
      invalidState(
        `order line ${line.orderLineNumber} is invoiced: cancel invoice ` +
          `${this.state.invoices.get(line.invoiceId)!.invoiceNumber} first`,
      )
    }
  }

  uninvoicedShipping(delivery: Delivery): void {
    if (delivery.invoiceId !== null) {
      invalidState(
        `shipping of delivery ${delivery.deliveryNumber} is invoiced: cancel invoice ` +
          `${this.state.invoices.get(delivery.invoiceId)!.invoiceNumber} first`,
      )
    }
  }

  /** The id of a new child: the caller's, which must be free in this order, or one made here. */
  childId(chosen: string | undefined, member: string): string {
    if (chosen === undefined) return this.turn.newId()
    const id = chosen.toLowerCase()
    const { state } = this
    const taken =
      id === state.orderId ||
      state.deliveries.has(id) ||
      state.lines.has(id) ||
      state.discounts.has(id) ||
      state.returns.has(id) ||
      state.invoices.has(id) ||
      state.invoiceLines.has(id)
    if (!taken) return id
    throw new RequestError('DUPLICATE_ID', `${member} ${id} is already used in this order`, {
      member,
    })
  }

  /** Line numbers in use; made once a batch. Commands that add or free one keep it true. */
  lineNumbers(): Set<string> {
    if (this.#lineNumbers === null) {
      this.#lineNumbers = new Set()
      for (const line of this.state.lines.values()) this.#lineNumbers.add(line.orderLineNumber)
    }
    return this.#lineNumbers
  }

  /** What stands on invoices, found once and again after each invoice. */
  invoiced(): Invoiced {
    this.#invoiced ??= invoicedOf(this.state)
    return this.#invoiced
  }

  /** Counts an `invoice` command of this batch. */
  countInvoice(): void {
    if (this.#invoices >= LIMITS.order.batchInvoicesMax) {
      invalid(
        `a batch has at most ${LIMITS.order.batchInvoicesMax} invoice commands: send it in parts`,
      )
    }
    this.#invoices++
  }

  roomForLine(): void {
    this.room(this.state.lines.size, LIMITS.order.linesMax, 'order lines')
  }
}

function notFound(what: string, id: string, member: string): never {
  invalid(`there is no ${what} ${id} in this order`, member)
}
