// The reader against whole files: the sample with an independent calculation, pieces of any
// length, interleaved invoices, broken files; and its parts by properties.

import fc from 'fast-check'
import t from 'tap'
import { formatPennies, fromE4, parseE4, rowPennies } from './amount.ts'
import { countryCode } from './countries.ts'
import { CsvReader, csvLine } from './csv.ts'
import { OPEN_INVOICES_MAX, type Invoice } from './invoice.ts'
import { orderCreateBody, orderKey } from './order.ts'
import { OnlineRetailReader, type RejectedRow } from './reader.ts'
import { COLUMNS, parseInvoiceDate } from './row.ts'
import { sampleCsv } from '../../../tools/generate/sample.ts'

const SAMPLE = sampleCsv()
const HEADER = csvLine(COLUMNS)

interface Read {
  readonly invoices: Invoice[]
  readonly rejected: RejectedRow[]
  readonly rowsRead: number
}

function read(...texts: string[]): Read {
  const reader = new OnlineRetailReader()
  const pieces = [...texts.map((text) => reader.push(text)), reader.end()]
  return {
    invoices: pieces.flatMap((piece) => piece.invoices),
    rejected: pieces.flatMap((piece) => piece.rejected),
    rowsRead: reader.rowsRead,
  }
}

function row(changes: Partial<Record<(typeof COLUMNS)[number], string>>): string {
  const usual = {
    InvoiceNo: '536365',
    StockCode: '85123A',
    Description: 'A LANTERN',
    Quantity: '6',
    InvoiceDate: '2010-12-01 08:26:00',
    UnitPrice: '2.55',
    CustomerID: '17850.0',
    Country: 'United Kingdom',
  }
  return csvLine(COLUMNS.map((column) => changes[column] ?? usual[column]))
}

/** The sample added up another way: lines taken apart by one pattern, money in BigInt fractions. */
function independentTotals(text: string): Map<string, bigint> {
  const totals = new Map<string, bigint>()
  for (const line of text.split('\n').slice(1)) {
    const fields = [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
      (match) => match[1] ?? match[2]!,
    )
    if (fields.length !== 8 || line.startsWith('C') || fields[3]!.startsWith('-')) continue
    const [pounds, fraction = ''] = fields[5]!.split('.')
    const billionths = BigInt(fields[3]!) * BigInt(pounds! + fraction.padEnd(9, '0'))
    const pennies = (billionths * 2n + 10_000_000n) / 20_000_000n
    totals.set(fields[0]!, (totals.get(fields[0]!) ?? 0n) + pennies)
  }
  return totals
}

t.test('the sample: counts, and totals exact against an independent calculation', (t) => {
  const { invoices, rejected, rowsRead } = read(SAMPLE)
  t.equal(rowsRead, SAMPLE.split('\n').length - 2)
  t.equal(invoices.length, 300)
  t.equal(
    invoices.reduce((n, invoice) => n + invoice.lines.length, rejected.length),
    rowsRead,
  )
  const expected = independentTotals(SAMPLE)
  t.equal(expected.size, 300)
  for (const invoice of invoices) {
    if (expected.get(invoice.invoiceNumber) !== invoice.totalPennies) {
      t.fail(`${invoice.invoiceNumber}: ${invoice.totalPennies}`)
    }
  }
  const sum = invoices.reduce((total, invoice) => total + invoice.totalPennies, 0n)
  t.equal(formatPennies(sum), '667368.97')
  const halfPennies = invoices.flatMap((i) => i.lines).filter((l) => l.unitPriceE4 % 100 !== 0)
  t.ok(halfPennies.length > 50, 'prices of less than a penny are among them')
  t.end()
})

t.test('cut into pieces anywhere, a file reads the same', (t) => {
  const text = SAMPLE.split('\n').slice(0, 120).join('\n')
  const whole = read(text)
  fc.assert(
    fc.property(fc.array(fc.nat(text.length), { maxLength: 12 }), (places) => {
      const cuts = [0, ...places.sort((a, b) => a - b), text.length]
      const pieces = cuts.slice(1).map((to, i) => text.slice(cuts[i], to))
      t.same(read(...pieces), whole)
    }),
    { numRuns: 50 },
  )
  t.end()
})

t.test('any fields come back from a written line, whatever the pieces', (t) => {
  const field = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', ' ', '£', 'x') })
  const rows = fc.array(fc.array(field, { minLength: 2, maxLength: 4 }), { minLength: 1 })
  fc.assert(
    fc.property(rows, fc.nat(8), (rows, size) => {
      const text = `h,h\n${rows.map(csvLine).join('')}`
      const reader = new CsvReader()
      const got: (readonly string[])[] = []
      for (let at = 0; at < text.length; at += size + 1) {
        got.push(...reader.push(text.slice(at, at + size + 1)).rows)
      }
      got.push(...reader.end().rows)
      t.strictSame(got.slice(1), rows)
    }),
  )
  t.end()
})

t.test('lines of one invoice that do not stand together are one order', (t) => {
  const { invoices } = read(
    HEADER + row({ InvoiceNo: '1' }) + row({ InvoiceNo: '2' }) + row({ InvoiceNo: '1' }),
  )
  t.same(
    invoices.map((i) => [i.invoiceNumber, i.lines.length, i.mixed]),
    [
      ['2', 1, false],
      ['1', 2, false],
    ],
  )
  const late = HEADER + row({ InvoiceNo: 'late', InvoiceDate: '2010-12-01 08:25:00' })
  const others = Array.from({ length: OPEN_INVOICES_MAX + 1 }, (_, i) => row({ InvoiceNo: `${i}` }))
  const reopened = read(late, ...others, row({ InvoiceNo: 'late' }))
  t.equal(reopened.invoices.length, OPEN_INVOICES_MAX + 2)
  t.match(reopened.rejected, [{ reason: 'invoice-reopened', row: OPEN_INVOICES_MAX + 3 }])
  t.equal(
    read(late, ...others.slice(2), row({ InvoiceNo: 'late' })).rejected.length,
    0,
    'just in time',
  )
  t.end()
})

t.test('the first row gives date, customer and country; later ones that differ are marked', (t) => {
  const { invoices } = read(
    HEADER + row({}) + row({ InvoiceDate: '2010-12-01 08:27:00', Country: 'EIRE' }),
  )
  t.match(invoices, [{ mixed: true, country: 'United Kingdom', customerNumber: '17850' }])
  t.equal(orderCreateBody(invoices[0]!).createdAt, '2010-12-01T08:26:00.000Z')
  t.end()
})

t.test('each row that is no order line has its reason', (t) => {
  const cases = {
    'malformed-row': '1,2,3\n',
    'credit-note': row({ InvoiceNo: 'C1', Quantity: '-1', UnitPrice: 'x' }),
    'quantity-not-positive': row({ Quantity: '0', UnitPrice: '-1' }),
    'price-negative': row({ UnitPrice: '-0.01' }),
    'invoice-number-missing': row({ InvoiceNo: ' ' }),
    'stock-code-missing': row({ StockCode: '' }),
    'quantity-not-valid': row({ Quantity: '1000000001' }),
    'price-not-valid': row({ UnitPrice: '1.00001' }),
    'date-not-valid': row({ InvoiceDate: '2011-02-29 10:00:00' }),
  }
  for (const [reason, text] of Object.entries(cases)) {
    const { invoices, rejected } = read(HEADER + row({ InvoiceNo: 'good' }) + text)
    t.match(rejected, [{ reason, row: 2 }], reason)
    t.equal(invoices.length, 1)
  }
  t.match(read(HEADER + row({ Description: 'x' }).replace('x', '"A "B" C"')).rejected, [
    { reason: 'malformed-row' },
  ])
  t.match(read(`${HEADER}${row({})}9,"open`).rejected, [{ reason: 'malformed-row', row: 2 }])
  t.end()
})

t.test('files that can not be read on say where', (t) => {
  t.throws(() => read(''), /empty/)
  t.throws(() => read('InvoiceNo;StockCode\n'), /missing: .*Quantity/)
  const endless = `${HEADER}${row({})}1,"${'x'.repeat(1100)}`
  t.throws(
    () => read(endless, ...Array.from({ length: 11 }, () => 'y'.repeat(100_000))),
    /row 3 .*never closed/,
  )
  t.end()
})

t.test('CRLF, a byte order of columns, empty lines and a missing last line end', (t) => {
  const columns = [...COLUMNS].reverse()
  const fields = ['EIRE', '', '1.5', '1/12/2010 8:26', '2', 'B', 'A', '7']
  const text = `${columns.join(',')}\r\n\r\n${fields.join(',')}\r\n${fields.join(',')}`
  const { invoices, rowsRead } = read(text)
  t.equal(rowsRead, 2)
  t.match(invoices, [
    { invoiceNumber: '7', customerNumber: null, country: 'EIRE', totalPennies: 600n },
  ])
  t.equal(invoices[0]!.timeMs, Date.UTC(2010, 0, 12, 8, 26))
  t.end()
})

t.test('the order of an invoice', (t) => {
  const { invoices } = read(
    HEADER +
      row({ Description: ' kept "as is" ', UnitPrice: '0.001', Quantity: '6.50' }) +
      row({ Description: '', CustomerID: '17850.0' }),
  )
  const body = orderCreateBody(invoices[0]!)
  const deliveryId = (body.commands[1] as unknown as { deliveryId: string }).deliveryId
  t.match(deliveryId, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  const line = { type: 'createOrderLine', deliveryId, productNumber: '85123A' }
  t.strictSame(body, {
    orderNumber: '536365',
    createdAt: '2010-12-01T08:26:00.000Z',
    currencyCode: 'GBP',
    taxIncluded: true,
    channelKey: 'online',
    commands: [
      { type: 'setCustomerNumber', value: '17850' },
      { type: 'createDelivery', deliveryId },
      { type: 'setDeliveryAddress', deliveryId, countryCode: 'GB' },
      { ...line, quantity: 6.5, unitPrice: 0.001, description: ' kept "as is" ' },
      { ...line, quantity: 6, unitPrice: 2.55 },
    ],
  })
  const again = read(HEADER + row({ CustomerID: '', Country: 'Channel Islands' })).invoices[0]!
  const bare = orderCreateBody(again)
  t.same(
    bare.commands.map((command) => command.type),
    ['createDelivery', 'createOrderLine'],
  )
  t.equal(bare.commands[0]!['deliveryId'], deliveryId, 'an id of the invoice, the same each time')
  t.not(orderKey('a', JSON.stringify(bare)), orderKey('a', JSON.stringify(body)))
  t.end()
})

t.test('country names', (t) => {
  const codes = ['EIRE', 'RSA', 'USA', ' United Kingdom', 'Hong Kong'].map(countryCode)
  t.same(codes, ['IE', 'ZA', 'US', 'GB', 'HK'])
  for (const none of ['Channel Islands', 'European Community', 'Unspecified', '', 'constructor']) {
    t.equal(countryCode(none), null, none)
  }
  t.end()
})

t.test('dates of the calendar only', (t) => {
  t.equal(parseInvoiceDate('2010-12-01 08:26:00'), Date.UTC(2010, 11, 1, 8, 26))
  t.equal(parseInvoiceDate('2012-02-29T23:59'), Date.UTC(2012, 1, 29, 23, 59))
  t.equal(parseInvoiceDate('12/1/2010 8:26'), Date.UTC(2010, 11, 1, 8, 26))
  const wrong = ['', 'x', '2010-13-01 08:26:00', '2010-12-01 24:00:00', '2010-12-01 08:60:00']
  for (const text of [...wrong, '31/12/2010 8:26', '0999-12-01 08:26:00', '2010-12-01']) {
    t.equal(parseInvoiceDate(text), null, text)
  }
  t.end()
})

t.test('amounts equal a calculation with fractions of BigInt', (t) => {
  const decimal = fc
    .tuple(fc.integer({ min: 0, max: 900_000_000 }), fc.stringMatching(/^\d{0,4}0{0,3}$/))
    .map(([whole, decimals]) => (decimals === '' ? `${whole}` : `${whole}.${decimals}`))
  fc.assert(
    fc.property(decimal, decimal, (quantity, price) => {
      const q = parseE4(quantity)!
      const p = parseE4(price)!
      t.equal(JSON.stringify(fromE4(p)), JSON.stringify(Number(price)))
      const big = (text: string): bigint => {
        const [whole, decimals = ''] = text.split('.')
        return BigInt(whole! + decimals.padEnd(8, '0').slice(0, 8))
      }
      const exact = big(quantity) * big(price)
      const unit = 10n ** 14n
      const rest = exact % unit
      t.equal(rowPennies(q, p), exact / unit + (rest * 2n >= unit ? 1n : 0n))
    }),
  )
  t.equal(rowPennies(5_000, 100), 1n, 'half a penny goes up')
  t.equal(rowPennies(1_000, 499), 0n)
  t.equal(parseE4('-12.5'), -125_000)
  t.ok(Object.is(parseE4('-0.0'), 0))
  for (const text of [
    '',
    '-',
    '.5',
    '5.',
    '1e3',
    '1,5',
    '+1',
    '0x1',
    '1.00001',
    '99999999999999',
  ]) {
    t.equal(parseE4(text), null, text)
  }
  t.same([0n, 5n, 482_646_649n, -105n].map(formatPennies), ['0.00', '0.05', '4826466.49', '-1.05'])
  t.end()
})

t.test('what an order would refuse costs its row, not the invoice', (t) => {
  const reader = new OnlineRetailReader()
  const long = 'A'.repeat(201)
  const rows = [
    '1,47503J ,X,1,2010-12-01 08:26:00,2.55,7,EIRE',
    `1,${long},X,1,2010-12-01 08:26:00,1,7,EIRE`,
    '1,A\u0001B,X,1,2010-12-01 08:26:00,1,7,EIRE',
    `1,A,X,1,2010-12-01 08:26:00,1,${long},EIRE`,
    'new,A,X,1,2010-12-01 08:26:00,1,7,EIRE',
    '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b,A,X,1,2010-12-01 08:26:00,1,7,EIRE',
  ]
  const header = 'InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country'
  const first = reader.push([header, ...rows, ''].join('\n'))
  const last = reader.end()
  const invoices = [...first.invoices, ...last.invoices]
  t.strictSame(
    invoices.map(({ lines }) => lines.map(({ productNumber }) => productNumber)),
    [['47503J']],
  )
  t.strictSame(
    [...first.rejected, ...last.rejected].map(({ reason }) => reason),
    [
      'stock-code-not-valid',
      'stock-code-not-valid',
      'customer-not-valid',
      'invoice-number-not-valid',
      'invoice-number-not-valid',
    ],
  )
  t.end()
})
