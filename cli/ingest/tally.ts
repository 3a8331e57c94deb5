// What became of every row: the counts of a run and its two lists (failures, and orders to look up
// in the graph). Connections settle orders; the summary's counts must add up to the rows read.

import type { ErrorItem } from '../../protocol/errors.ts'
import type { Invoice } from './online-retail/invoice.ts'
import type { RejectReason } from './online-retail/row.ts'

/** Orders of a million rows fit well; what a run keeps to compare is told when it is too much. */
export const COMPARED_MAX = 5_000_000

export interface OrderTotal {
  readonly orderNumber: string
  readonly rows: number
  readonly pennies: bigint
}

export class Tally {
  ordersCreated = 0
  ordersRepeated = 0
  ordersFailed = 0
  rowsAccepted = 0
  rowsFailed = 0
  rowsRejected = 0
  /** Invoices whose rows differ in date, customer or country. */
  ordersMixed = 0
  penniesAccepted = 0n
  readonly rejectedBy = new Map<RejectReason, number>()
  readonly failedBy = new Map<string, number>()
  /** Accepted orders, kept when they are to be compared with the graph. */
  readonly accepted: OrderTotal[] = []
  /** Refused because the number is taken: ours of an earlier run, or another's? The graph tells. */
  readonly taken: { invoice: Invoice; error: ErrorItem }[] = []
  readonly #keepAccepted: boolean

  constructor(keepAccepted: boolean) {
    this.#keepAccepted = keepAccepted
  }

  reject(reason: RejectReason): void {
    this.rowsRejected++
    this.rejectedBy.set(reason, (this.rejectedBy.get(reason) ?? 0) + 1)
  }

  accept(invoice: Invoice, outcome: 'created' | 'repeated'): void {
    if (outcome === 'created') this.ordersCreated++
    else this.ordersRepeated++
    if (invoice.mixed) this.ordersMixed++
    this.rowsAccepted += invoice.lines.length
    this.penniesAccepted += invoice.totalPennies
    if (this.#keepAccepted && this.accepted.length < COMPARED_MAX) {
      this.accepted.push(orderTotal(invoice))
    }
  }

  fail(invoice: Invoice, code: string): void {
    this.ordersFailed++
    this.rowsFailed += invoice.lines.length
    this.failedBy.set(code, (this.failedBy.get(code) ?? 0) + 1)
  }

  get orders(): number {
    return this.ordersCreated + this.ordersRepeated
  }

  /** Rows whose fate is told; at the end it must be the rows read. */
  get rowsSettled(): number {
    return this.rowsAccepted + this.rowsRejected + this.rowsFailed
  }
}

export function orderTotal(invoice: Invoice): OrderTotal {
  return {
    orderNumber: invoice.invoiceNumber,
    rows: invoice.lines.length,
    pennies: invoice.totalPennies,
  }
}
