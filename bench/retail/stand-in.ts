// A file in the layout of the Online Retail data set, for who hasn't the real one: invoices of few
// and of many rows, products and customers of which some come again and again, words that
// descriptions share. The same number of rows gives the same file.

const COLUMNS =
  'InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n'
/** Rows of the real file to each of its products, and to each of its customers. */
const ROWS_A_PRODUCT = 70
const ROWS_A_CUSTOMER = 90
const ROWS_AN_INVOICE = 24
const FIRST_MS = Date.UTC(2010, 11, 1, 8)
const HALF_A_YEAR_MS = 182 * 86_400_000
const FIRST_INVOICE = 536_365
const FIRST_CUSTOMER = 12_346

const FIRST_WORDS = 'WHITE RED PINK BLUE BLACK GREEN IVORY SILVER VINTAGE SMALL LARGE SET'.split(
  ' ',
)
const SECOND_WORDS =
  'HANGING METAL GLASS PAPER WOODEN CERAMIC KNITTED RETROSPOT CHRISTMAS FLOWER POLKADOT ROSE'.split(
    ' ',
  )
const THIRD_WORDS =
  "HEART LANTERN BOX HOLDER CANDLE BAG SIGN MUG FRAME GARLAND NECKLACE T-LIGHT CHILD'S TIN".split(
    ' ',
  )
/** Of so many rows each is from abroad, more of them from the first. */
const HOME_SHARE = 0.9
const ABROAD = ['Germany', 'France', 'EIRE', 'Netherlands', 'Spain', 'Belgium', 'Switzerland']

export function standIn(rows: number): string {
  const chance = chanceFrom(rows)
  /** Small numbers come far more often than large ones. */
  const favoured = (count: number): number => Math.floor(count * chance() ** 3)
  const products = Math.ceil(rows / ROWS_A_PRODUCT) + 10
  const customers = Math.ceil(rows / ROWS_A_CUSTOMER) + 10
  const lines: string[] = []
  for (let invoice = 0; lines.length < rows; invoice++) {
    const customer = FIRST_CUSTOMER + favoured(customers)
    const date = new Date(FIRST_MS + (lines.length / rows) * HALF_A_YEAR_MS)
    const at = date.toISOString().slice(0, 19).replace('T', ' ')
    const country = chance() < HOME_SHARE ? 'United Kingdom' : ABROAD[favoured(ABROAD.length)]!
    const size = Math.ceil(-Math.log(1 - chance()) * ROWS_AN_INVOICE)
    for (let i = 0; i < size && lines.length < rows; i++) {
      const product = favoured(products)
      const quantity = 1 + favoured(96)
      const price = (0.19 + (product % 97) / 8).toFixed(2)
      lines.push(
        `${FIRST_INVOICE + invoice},${20_000 + product},${description(product)},` +
          `${quantity},${at},${price},${customer}.0,${country}\n`,
      )
    }
  }
  return COLUMNS + lines.join('')
}

function description(product: number): string {
  const pick = (words: readonly string[], of: number): string => words[of % words.length]!
  return [
    pick(FIRST_WORDS, product),
    pick(SECOND_WORDS, Math.floor(product / 5)),
    pick(THIRD_WORDS, Math.floor(product / 3)),
    ...(product % 4 === 0 ? [String(1 + (product % 9))] : []),
  ].join(' ')
}

/** Numbers from 0 to 1 as by chance, the same for the same seed (mulberry32, public domain). */
function chanceFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
