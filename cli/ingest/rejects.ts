// The rejects file: every row that is part of no order, with its reason, in the columns of the
// input behind `Row` and `Reason`, so that a corrected file can be read again. Made when the first
// row needs it.

import { closeSync, openSync, writeSync } from 'node:fs'
import type { ErrorItem } from '../../protocol/errors.ts'
import { fromE4 } from './online-retail/amount.ts'
import { csvLine } from './online-retail/csv.ts'
import type { Invoice } from './online-retail/invoice.ts'
import type { RejectedRow } from './online-retail/reader.ts'
import { COLUMNS } from './online-retail/row.ts'

const BUFFER_CHARS = 64 * 1024

export class RejectsFile {
  readonly path: string
  /** The input's own columns; a file that names others first keeps its order. */
  #columns: readonly string[] = COLUMNS
  #file: number | null = null
  #text = ''

  constructor(path: string) {
    this.path = path
  }

  /** True when something was written. */
  get used(): boolean {
    return this.#file !== null || this.#text !== ''
  }

  setColumns(header: readonly string[]): void {
    this.#columns = header
  }

  row({ row, reason, fields }: RejectedRow): void {
    this.#write([String(row), reason, ...fields])
  }

  /** The rows of an order that the node refused. */
  order(invoice: Invoice, error: ErrorItem): void {
    for (const line of invoice.lines) {
      const values: Record<(typeof COLUMNS)[number], string> = {
        InvoiceNo: invoice.invoiceNumber,
        StockCode: line.productNumber,
        Description: line.description,
        Quantity: String(fromE4(line.quantityE4)),
        InvoiceDate: new Date(invoice.timeMs).toISOString().slice(0, 19).replace('T', ' '),
        UnitPrice: String(fromE4(line.unitPriceE4)),
        CustomerID: invoice.customerNumber ?? '',
        Country: invoice.country,
      }
      const fields = this.#columns.map((name) => (values as Record<string, string>)[name] ?? '')
      this.#write(['', `${error.code}: ${error.message}`, ...fields])
    }
  }

  close(): void {
    this.#flush()
    if (this.#file !== null) closeSync(this.#file)
  }

  #write(fields: readonly string[]): void {
    if (!this.used) this.#text = csvLine(['Row', 'Reason', ...this.#columns])
    this.#text += csvLine(fields)
    if (this.#text.length > BUFFER_CHARS) this.#flush()
  }

  #flush(): void {
    if (this.#text === '') return
    this.#file ??= openSync(this.path, 'w')
    writeSync(this.#file, this.#text)
    this.#text = ''
  }
}
