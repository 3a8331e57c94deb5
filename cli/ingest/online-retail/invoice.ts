// Rows to invoices. The rows of an invoice mostly stand together, but not always (the shop's export
// mixes invoices of one minute), so an invoice is held until some others have begun after its last
// row.

import { rowPennies } from './amount.ts'
import type { InvoiceRow } from './row.ts'

/**
 * An invoice is closed when this many others had a row after its last one. The whole public data
 * set needs 1; the rest is for files that are sorted less well, in memory of a few megabytes.
 */
export const OPEN_INVOICES_MAX = 256

/** Closed invoice numbers are remembered to find stragglers; a file may hold so many invoices. */
export const INVOICES_MAX = 10_000_000

export interface InvoiceLine {
  readonly productNumber: string
  readonly description: string
  readonly quantityE4: number
  readonly unitPriceE4: number
}

export interface Invoice {
  readonly invoiceNumber: string
  /** Date, customer and country of its first row. */
  readonly timeMs: number
  readonly customerNumber: string | null
  readonly country: string
  readonly lines: readonly InvoiceLine[]
  /** Sum over its rows of quantity times unit price, each rounded half away from zero. */
  readonly totalPennies: bigint
  /** True when later rows have another date, customer or country: the first row's counts. */
  readonly mixed: boolean
}

interface OpenInvoice extends Invoice {
  readonly lines: InvoiceLine[]
  totalPennies: bigint
  mixed: boolean
}

export class InvoiceGrouper {
  /** In the order of their last row: a Map keeps insertion order. */
  readonly #open = new Map<string, OpenInvoice>()
  readonly #closed = new Set<string>()
  #last: OpenInvoice | null = null

  /** Takes a row. False: the row's invoice is closed already, the row is not taken. */
  add(row: InvoiceRow, closed: (invoice: Invoice) => void): boolean {
    let invoice = this.#last
    if (invoice === null || invoice.invoiceNumber !== row.invoiceNumber) {
      if (this.#closed.has(row.invoiceNumber)) return false
      invoice = this.#touch(row)
      this.#last = invoice
      if (this.#open.size > OPEN_INVOICES_MAX) this.#closeOldest(closed)
    }
    invoice.lines.push({
      productNumber: row.productNumber,
      description: row.description,
      quantityE4: row.quantityE4,
      unitPriceE4: row.unitPriceE4,
    })
    invoice.totalPennies += rowPennies(row.quantityE4, row.unitPriceE4)
    if (
      row.timeMs !== invoice.timeMs ||
      row.customerNumber !== invoice.customerNumber ||
      row.country !== invoice.country
    ) {
      invoice.mixed = true
    }
    return true
  }

  /** The invoices still open, at the end of the file. */
  end(closed: (invoice: Invoice) => void): void {
    while (this.#open.size > 0) this.#closeOldest(closed)
    this.#last = null
  }

  #touch(row: InvoiceRow): OpenInvoice {
    const known = this.#open.get(row.invoiceNumber)
    const invoice = known ?? {
      invoiceNumber: row.invoiceNumber,
      timeMs: row.timeMs,
      customerNumber: row.customerNumber,
      country: row.country,
      lines: [],
      totalPennies: 0n,
      mixed: false,
    }
    if (known !== undefined) this.#open.delete(row.invoiceNumber)
    this.#open.set(row.invoiceNumber, invoice)
    return invoice
  }

  #closeOldest(closed: (invoice: Invoice) => void): void {
    const [number, invoice] = this.#open.entries().next().value!
    this.#open.delete(number)
    if (this.#closed.size >= INVOICES_MAX) {
      throw new Error(`the file has more than ${INVOICES_MAX} invoices: split it`)
    }
    this.#closed.add(number)
    closed(invoice)
  }
}
