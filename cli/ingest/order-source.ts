// The orders of a file, one at a time, for several connections that pull. Rejected rows are written
// and counted on the way, each invoice becomes the line that is posted.

import type { Invoice } from './online-retail/invoice.ts'
import { orderCreateBody, orderKey } from './online-retail/order.ts'
import type { Piece } from './online-retail/reader.ts'
import type { RejectsFile } from './rejects.ts'
import type { Source } from './source.ts'
import type { Tally } from './tally.ts'

export interface Order {
  readonly invoice: Invoice
  /** Its bulk line, with the line end. */
  readonly line: string
  /** How often it was refused for now. */
  refusals: number
}

/**
 * The bulk line of an invoice (CONTRACT 0, Bulk). The key comes from the messages themselves, so a
 * run that is repeated repeats no order, and a changed file doesn't pass for the same one.
 */
export function bulkLine(invoice: Invoice): string {
  const messages = JSON.stringify([{ type: 'create', body: orderCreateBody(invoice) }])
  const key = orderKey('online-retail', messages)
  return `{"id":"new","idempotencyKey":"${key}","messages":${messages}}\n`
}

export class OrderSource {
  readonly #source: Source
  readonly #pieces: AsyncIterator<Piece>
  readonly #tally: Tally
  readonly #rejects: RejectsFile
  #ready: readonly Invoice[] = []
  #at = 0
  #pulling: Promise<void> | null = null
  #done = false

  constructor(source: Source, tally: Tally, rejects: RejectsFile) {
    this.#source = source
    this.#pieces = source.pieces[Symbol.asyncIterator]()
    this.#tally = tally
    this.#rejects = rejects
  }

  /** The next order that is read already; null: `pull` first, or there is none any more. */
  take(): Order | null {
    const invoice = this.#ready[this.#at]
    if (invoice === undefined) return null
    this.#at++
    return { invoice, line: bulkLine(invoice), refusals: 0 }
  }

  /** Reads on until there is an order to take. False: the file is at its end. */
  async pull(): Promise<boolean> {
    while (this.#at >= this.#ready.length && !this.#done) {
      // Several may wait for the same piece.
      this.#pulling ??= this.#next().finally(() => (this.#pulling = null))
      await this.#pulling
    }
    return this.#at < this.#ready.length
  }

  /** Ends the reading early and gives back the invoices that were read and not taken. */
  abandon(): readonly Invoice[] {
    const read = this.#ready.slice(this.#at)
    this.#ready = []
    if (this.#done) return read
    this.#done = true
    const rest = this.#source.reader.stop()
    this.#reject(rest)
    return [...read, ...rest.invoices]
  }

  async #next(): Promise<void> {
    const result = await this.#pieces.next()
    // An end asked for while the piece was under way has told of all rows before it only.
    if (this.#done) return
    if (result.done === true) {
      this.#done = true
      return
    }
    this.#reject(result.value)
    this.#ready = result.value.invoices
    this.#at = 0
  }

  #reject(piece: Piece): void {
    const { header } = this.#source.reader
    if (header !== null) this.#rejects.setColumns(header)
    for (const row of piece.rejected) {
      this.#tally.reject(row.reason)
      this.#rejects.row(row)
    }
  }
}
