// One row of the Online Retail layout: the columns, what makes a row an order line, and why it is
// none. Nothing is dropped silently: a row becomes a line or it is rejected with one reason.

import { toUuid } from '../../../protocol/ids.ts'
import { parseE4, PRICE_E4_MAX, QUANTITY_E4_MAX } from './amount.ts'

/** What orders take of a number or a key (LIMITS.commerce.keyCharsMax). */
const NAME_CHARS_MAX = 200

export const COLUMNS = [
  'InvoiceNo',
  'StockCode',
  'Description',
  'Quantity',
  'InvoiceDate',
  'UnitPrice',
  'CustomerID',
  'Country',
] as const

/** Why a row is not part of an order, in the order in which the reasons are looked for. */
export const REJECT_REASONS = {
  'malformed-row': 'the row has not the columns of the header, or broken quotes',
  'credit-note': 'InvoiceNo starts with C',
  'quantity-not-positive': 'Quantity is zero or less',
  'price-negative': 'UnitPrice is less than zero',
  'invoice-number-missing': 'InvoiceNo is empty',
  'invoice-number-not-valid':
    'InvoiceNo is "new", a UUID, longer than 200 characters or has control characters',
  'stock-code-missing': 'StockCode is empty',
  'stock-code-not-valid': 'StockCode is longer than 200 characters or has control characters',
  'customer-not-valid': 'CustomerID is longer than 200 characters or has control characters',
  'quantity-not-valid': 'Quantity is no decimal with at most four decimals, up to 1,000,000,000',
  'price-not-valid': 'UnitPrice is no decimal with at most four decimals',
  'date-not-valid': 'InvoiceDate is neither YYYY-MM-DD HH:MM[:SS] nor M/D/YYYY H:MM',
  'invoice-reopened': 'InvoiceNo comes again long after its other rows; its order is made already',
} as const

export type RejectReason = keyof typeof REJECT_REASONS

export interface InvoiceRow {
  readonly invoiceNumber: string
  /** Without the stray spaces around it that the file has: no product number ends with one. */
  readonly productNumber: string
  /** Exactly as it is in the file. */
  readonly description: string
  readonly quantityE4: number
  readonly unitPriceE4: number
  /** Milliseconds since 1970; the file's shop time is taken as UTC. */
  readonly timeMs: number
  readonly customerNumber: string | null
  readonly country: string
}

/** Finds the columns by their names in the header row; the message says what is missing. */
export function columnPlaces(header: readonly string[]): readonly number[] | { problem: string } {
  const names = header.map((name) => name.trim())
  const places = COLUMNS.map((column) => names.indexOf(column))
  const missing = COLUMNS.filter((_, i) => places[i] === -1)
  if (missing.length === 0) return places
  return {
    problem:
      `the first line must name the columns ${COLUMNS.join(', ')}; ` +
      `missing: ${missing.join(', ')}; it names: ${names.join(', ').slice(0, 200)}`,
  }
}

/** The row, or the reason why it is none. */
export function readRow(
  fields: readonly string[],
  places: readonly number[],
): InvoiceRow | RejectReason {
  const field = (column: number): string => fields[places[column]!]!
  const invoiceNumber = field(0).trim()
  const quantityE4 = parseE4(field(3).trim())
  const unitPriceE4 = parseE4(field(5).trim())
  const reason = reject(invoiceNumber, quantityE4, unitPriceE4)
  if (reason !== null) return reason
  const productNumber = field(1).trim()
  if (productNumber === '') return 'stock-code-missing'
  if (!isName(productNumber)) return 'stock-code-not-valid'
  const customer = customerNumber(field(6).trim())
  if (customer !== null && !isName(customer)) return 'customer-not-valid'
  if (quantityE4 === null || quantityE4 > QUANTITY_E4_MAX) return 'quantity-not-valid'
  if (unitPriceE4 === null || unitPriceE4 > PRICE_E4_MAX) return 'price-not-valid'
  const timeMs = parseInvoiceDate(field(4).trim())
  if (timeMs === null) return 'date-not-valid'
  return {
    invoiceNumber,
    productNumber,
    description: field(2),
    quantityE4,
    unitPriceE4,
    timeMs,
    customerNumber: customer,
    country: field(7).trim(),
  }
}

function reject(
  invoiceNumber: string,
  quantityE4: number | null,
  unitPriceE4: number | null,
): RejectReason | null {
  if (invoiceNumber.startsWith('C')) return 'credit-note'
  if (quantityE4 !== null && quantityE4 <= 0) return 'quantity-not-positive'
  if (unitPriceE4 !== null && unitPriceE4 < 0) return 'price-negative'
  if (invoiceNumber === '') return 'invoice-number-missing'
  // It becomes the order's number, which stands in paths beside ids.
  const isNumber =
    isName(invoiceNumber) && invoiceNumber !== 'new' && toUuid(invoiceNumber) === null
  return isNumber ? null : 'invoice-number-not-valid'
}

/** What an order takes as a number or a key: one row that it doesn't must not cost the invoice. */
function isName(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  return text.length <= NAME_CHARS_MAX && !/[\u0000-\u001f\u007f]/.test(text)
}

/** `17850.0` is 17850: the file's numbers went through a spreadsheet. Empty is none. */
function customerNumber(text: string): string | null {
  if (text === '') return null
  return text.endsWith('.0') ? text.slice(0, -2) : text
}

const ISO = /^(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)(?::(\d\d))?$/
const US = /^(\d{1,2})\/(\d{1,2})\/(\d{4}) (\d{1,2}):(\d\d)$/

let lastText = ''
let lastMs: number | null = null

/** Milliseconds of an invoice date; null when there is no such date. */
export function parseInvoiceDate(text: string): number | null {
  // Rows of an invoice share their date: nearly every call is a repeat of the one before.
  if (text === lastText) return lastMs
  lastText = text
  return (lastMs = readDate(text))
}

function readDate(text: string): number | null {
  const iso = ISO.exec(text)
  const us = iso === null ? US.exec(text) : null
  if (iso === null && us === null) return null
  const [year, month, day, hour, minute] = (
    iso === null ? [us![3], us![1], us![2], us![4], us![5]] : iso.slice(1, 6)
  ).map(Number) as [number, number, number, number, number]
  const second = Number(iso?.[6] ?? 0)
  const time = new Date(Date.UTC(year, month - 1, day, hour, minute, second))
  // Date.UTC carries 31 February over to March: such a date is not in the calendar.
  const same =
    time.getUTCMonth() === month - 1 && time.getUTCDate() === day && time.getUTCHours() === hour
  return same && minute < 60 && second < 60 && year >= 1000 ? time.getTime() : null
}
