// The positions of the members of an order's records: what was stored once is read for ever, and
// no record of any script has a member without a position.

import fc from 'fast-check'
import { deepStrictEqual } from 'node:assert'
import t from 'tap'
import { decodeEntry, encodeEntry, type Entry, recordsOf } from '../../../protocol/entry/entry.ts'
import { ValueReader } from '../../../protocol/entry/value-reader.ts'
import { ValueWriter } from '../../../protocol/entry/value-writer.ts'
import { OrderDriver } from '../testing/order-driver.ts'
import { scriptArbitrary } from '../testing/random-commands.ts'
import { ORDER_SHAPES } from './record-shapes.ts'
import type { RecordKind } from './records.ts'

const ADDRESS =
  'name attention careOf addressLine1 addressLine2 postalCode city state countryCode email phone ' +
  'taxId taxIdType taxCountryCode'
const LINE =
  'orderLineId deliveryId n orderLineNumber productNumber quantity unitPrice taxFactor salesTax ' +
  'description image skus dynamic family'
const ORDER = 'orderNumber channelKey customerNumber locale externalReference'
const DELIVERY =
  'inventoryKey inventoryDate shippingProductNumber shippingDescription shippingPrice ' +
  'shippingTax shippingTaxFactor carrier trackingNumber trackingUrl'
const PRICED = 'quantity unitPrice taxFactor salesTax productNumber description image skus'
const TOTALS =
  'orderTotal orderTaxTotal orderNetTotal orderGrossTotal productTotal shippingTotal discountTotal'
const INVOICE_LINE =
  'invoiceLineId invoiceId invoiceLineNumber referenceType referenceId orderLineId deliveryId ' +
  'productNumber description quantity unitPrice taxFactor amount invoiceLineTotal net tax ' +
  'discounts( invoiceLineDiscountId amount description referenceId ) originalInvoiceId ' +
  'originalInvoiceLineId parts'

/**
 * What is stored under which number and in which order. A line here may become longer at its end,
 * and new lines may come; anything else makes stored orders say what they didn't.
 */
const STORED: Readonly<Record<RecordKind, string>> = {
  orderCreated: '1 commands orderNumber currencyCode taxIncluded createdMs channelKey',
  orderChanged: `2 commands before( ${ORDER} ) after( ${ORDER} )`,
  orderStateChanged: '3 commands from to deliveries',
  deliveryCreated:
    '4 commands deliveryId deliveryNumber n shippingProductNumber shippingDescription ' +
    'shippingPrice shippingTaxFactor',
  deliveryChanged: `5 commands deliveryId before( ${DELIVERY} ) after( ${DELIVERY} )`,
  deliveryStateChanged: '6 commands deliveryId from to',
  deliveryDeleted: '7 commands deliveryId deliveryNumber discounts',
  orderLineCreated: `8 commands ${LINE}`,
  orderLineChanged: `9 commands orderLineId before( ${PRICED} ) after( ${PRICED} )`,
  orderLineMoved: '10 commands orderLineId from to',
  orderLineSplit: `11 commands orderLineId before( ${PRICED} ) after( ${PRICED} ) line( ${LINE} )`,
  orderLineDeleted:
    '12 commands orderLineId orderLineNumber productNumber quantity unitPrice discounts',
  discountCreated:
    '13 commands discountId scope targetId isPercentage value description dynamic family',
  discountChanged: '14 commands discountId before( value description ) after( value description )',
  discountDeleted: '15 commands discountId scope targetId value',
  returnCreated: '16 commands returnId orderLineId quantity refundFactor dynamic',
  returnChanged: '17 commands returnId before( refundFactor ) after( refundFactor )',
  returnDeleted: '18 commands returnId orderLineId quantity',
  releasedToInvoicing: '19 commands kind id',
  retractedFromInvoicing: '20 commands kind id',
  invoiceCreated:
    `21 commands invoiceId invoiceNumber n invoiceAddress( ${ADDRESS} ) invoiceTotal ` +
    `invoiceNetTotal invoiceTaxTotal lines( ${INVOICE_LINE} )`,
  invoiceCancelled: '22 commands invoiceId invoiceNumber invoiceTotal lines frees',
  tagAdded: '23 commands key deliveryId',
  tagRemoved: '24 commands key deliveryId',
  addressChanged: `25 commands deliveryId before( ${ADDRESS} ) after( ${ADDRESS} )`,
  dynamicChanged: '26 commands owner id before after',
  activityLogged: '27 commands messageTemplate message dynamic',
  totalsChanged: `28 commands order( ${TOTALS} ) lines deliveries discounts returns`,
  rewound: '29 commands checkpointId state nodes',
  orderDeleted: '30 commands nodes',
}

type Members = { [name: string]: string | Members }

/** An object with all members that the words name; each has its own name as its value. */
function fullOf(words: string[]): Members {
  const members: Members = {}
  for (let word = words.shift(); word !== undefined && word !== ')'; word = words.shift()) {
    if (word.endsWith('(')) members[word.slice(0, -1)] = fullOf(words)
    else members[word] = word
  }
  return members
}

/** Reads what was stored of an object as plain positions, and says which names they have. */
function positions(reader: ValueReader, wanted: Members): void {
  const names = Object.keys(wanted)
  deepStrictEqual(reader.members(), 2 ** (names.length + 1) - 2)
  for (const name of names) {
    const inner = wanted[name]!
    if (typeof inner === 'string') deepStrictEqual(reader.value(), name)
    else positions(reader, inner)
  }
}

t.test('every member stands where it always stood', async (t) => {
  for (const [kind, line] of Object.entries(STORED)) {
    const [id, ...words] = line.split(' ')
    const members = fullOf(words)
    const writer = new ValueWriter()
    writer.begin(false)
    ORDER_SHAPES.write(writer, { t: kind, ...members })
    const bytes = Buffer.alloc(writer.size)
    writer.into(bytes, 0)
    const reader = new ValueReader(bytes)
    t.equal(reader.count(), Number(id), kind)
    positions(reader, members)
    reader.end()
  }
})

t.test('the records of any script are read as they were written, and cost no names', async (t) => {
  const seen = new Set<string>()
  const entry = { y: 'order', p: '', v: 0, n: 1, m: '', l: 0, t: 0, c: 0, b: '' } as const
  const a = { type: 'create', success: true } as const
  fc.assert(
    fc.property(scriptArbitrary, (script) => {
      const order = new OrderDriver()
      const { beginning, currencyCode, taxIncluded } = script
      order.create(beginning, { currencyCode, taxIncluded })
      for (const batch of script.batches) order.apply(...batch)
      for (const { records } of order.entries) {
        const whole: Entry = { ...entry, a, r: records }
        const bytes = encodeEntry(whole, ORDER_SHAPES)
        const read = recordsOf(decodeEntry(bytes), { shapes: ORDER_SHAPES })
        deepStrictEqual(read, JSON.parse(JSON.stringify(records)))
        for (const record of records) {
          seen.add(record.t)
          for (const name of Object.keys(record)) isPlaced(record.t, name)
        }
      }
    }),
    { numRuns: 100 },
  )
  t.ok(seen.size > 15, `${seen.size} kinds of records`)
})

/** Throws for a member that has no position. */
function isPlaced(kind: string, name: string): void {
  const members = fullOf(STORED[kind as RecordKind].split(' ').slice(1))
  if (name !== 't' && !Object.hasOwn(members, name)) throw new Error(`${kind}.${name} has no place`)
}
