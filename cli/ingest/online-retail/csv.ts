// CSV text in pieces of any length to rows of fields (RFC 4180). The layout gives the fields their
// meaning. The state machine is papaparse's; this file feeds it so that it can be pulled, holds a
// bounded rest, and says which rows are broken.

import Papa from 'papaparse'

/** A row longer than this, in characters, is taken for a quote that never ends. */
const ROW_CHARS_MAX = 1024 * 1024

export interface CsvRows {
  readonly rows: readonly (readonly string[])[]
  /** Places in `rows` whose quotes are not as RFC 4180 wants them; null when there are none. */
  readonly broken: ReadonlySet<number> | null
}

/** The file can't be read on: `message` says where and why. */
export class CsvError extends Error {}

interface Parsed {
  data: string[][]
  errors: { row: number }[]
  meta: { cursor: number }
}

const NONE: CsvRows = { rows: [], broken: null }

export class CsvReader {
  #rest = ''
  #rowsBefore = 0
  #parser: Papa.Parser | null = null

  /** Rows that are complete with this piece. */
  push(text: string): CsvRows {
    const input = this.#rest + text
    if (this.#parser === null && !input.includes('\n')) return this.#keep(input, NONE)
    const parsed = this.#parse(input, true)
    return this.#keep(input.slice(parsed.meta.cursor), this.#take(parsed))
  }

  /** The last row, when the file doesn't end with a line end. */
  end(): CsvRows {
    if (this.#rest === '') return NONE
    const rows = this.#take(this.#parse(this.#rest, false))
    this.#rest = ''
    return rows
  }

  #keep(rest: string, rows: CsvRows): CsvRows {
    if (rest.length > ROW_CHARS_MAX) {
      throw new CsvError(
        `row ${this.#rowsBefore + 1} is longer than ${ROW_CHARS_MAX} characters: ` +
          'most likely a quoted field that is never closed',
      )
    }
    this.#rest = rest
    return rows
  }

  #parse(input: string, ignoreLastRow: boolean): Parsed {
    // The first line end decides: a CRLF file keeps its CRs out of the last field.
    const end = input.indexOf('\n')
    this.#parser ??= new Papa.Parser({
      delimiter: ',',
      newline: end > 0 && input[end - 1] === '\r' ? '\r\n' : '\n',
    })
    return this.#parser.parse(input, 0, ignoreLastRow) as Parsed
  }

  #take(parsed: Parsed): CsvRows {
    const rows = parsed.data
    this.#rowsBefore += rows.length
    // It may also tell of the row that is left for the next piece: a place behind `rows`.
    const { errors } = parsed
    return { rows, broken: errors.length === 0 ? null : new Set(errors.map((error) => error.row)) }
  }
}

const NEEDS_QUOTES = /[",\r\n]/

/** Fields as one CSV line, with its line end. */
export function csvLine(fields: readonly string[]): string {
  return `${fields.map(csvField).join(',')}\n`
}

function csvField(field: string): string {
  return NEEDS_QUOTES.test(field) ? `"${field.replaceAll('"', '""')}"` : field
}
