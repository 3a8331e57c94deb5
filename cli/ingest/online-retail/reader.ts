// The whole way from the text of an Online Retail file to invoices and rejected rows, piece by
// piece. The ingest command and a node's first start read a file alike: it is pure.

import { CsvError, CsvReader, type CsvRows } from './csv.ts'
import { InvoiceGrouper, type Invoice } from './invoice.ts'
import { columnPlaces, readRow, type RejectReason } from './row.ts'

export interface RejectedRow {
  /** 1 for the first row under the header. */
  readonly row: number
  readonly reason: RejectReason
  readonly fields: readonly string[]
}

export interface Piece {
  readonly invoices: readonly Invoice[]
  readonly rejected: readonly RejectedRow[]
}

export class OnlineRetailReader {
  /** Rows under the header so far; empty lines are none. */
  rowsRead = 0
  readonly #csv = new CsvReader()
  readonly #grouper = new InvoiceGrouper()
  /** The first line, once it was read. */
  header: readonly string[] | null = null
  #places: readonly number[] = []
  #invoices: Invoice[] = []
  #rejected: RejectedRow[] = []
  readonly #closed = (invoice: Invoice): void => {
    this.#invoices.push(invoice)
  }

  /** Takes the next piece of text. Throws `CsvError` when the file can't be read on. */
  push(text: string): Piece {
    this.#take(this.#csv.push(text))
    return this.#piece()
  }

  end(): Piece {
    this.#take(this.#csv.end())
    if (this.header === null) throw new CsvError('the file is empty: it has not even a header')
    this.#grouper.end(this.#closed)
    return this.#piece()
  }

  /** Ends early: the invoices still open, without the row that is half read. */
  stop(): Piece {
    this.#grouper.end(this.#closed)
    return this.#piece()
  }

  #piece(): Piece {
    const piece = { invoices: this.#invoices, rejected: this.#rejected }
    this.#invoices = []
    this.#rejected = []
    return piece
  }

  #take({ rows, broken }: CsvRows): void {
    for (let i = 0; i < rows.length; i++) {
      const fields = rows[i]!
      if (this.header === null) this.#readHeader(fields)
      else if (fields.length > 1 || fields[0]!.trim() !== '') {
        this.#takeRow(fields, broken !== null && broken.has(i))
      }
    }
  }

  #readHeader(fields: readonly string[]): void {
    const places = columnPlaces(fields)
    if ('problem' in places) throw new CsvError(places.problem)
    this.header = fields.map((name) => name.trim())
    this.#places = places
  }

  #takeRow(fields: readonly string[], broken: boolean): void {
    this.rowsRead++
    const row =
      broken || fields.length !== this.header!.length
        ? 'malformed-row'
        : readRow(fields, this.#places)
    if (typeof row === 'string') this.#reject(row, fields)
    else if (!this.#grouper.add(row, this.#closed)) this.#reject('invoice-reopened', fields)
  }

  #reject(reason: RejectReason, fields: readonly string[]): void {
    this.#rejected.push({ row: this.rowsRead, reason, fields })
  }
}
