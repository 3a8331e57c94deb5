// Random batches of commands for property tests: every command of the table, over few ids, so that
// they meet each other; many are refused, which is part of what is tested.

import fc from 'fast-check'
import { ORDER_STATES } from '../state/state.ts'
import { id } from './order-driver.ts'

const deliveryId = fc.integer({ min: 1, max: 3 }).map(id)
const orderLineId = fc.integer({ min: 11, max: 16 }).map(id)
const discountId = fc.integer({ min: 21, max: 24 }).map(id)
const returnId = fc.integer({ min: 31, max: 33 }).map(id)
const price = fc.oneof(
  fc.nat(20_000).map((n) => n / 100),
  fc.nat(2_000_000).map((n) => n / 10_000),
  fc.constantFrom(0, 0.005, 0.0049, 99.99, 1_000_000.0001, 123_456_789_012.34),
)
const quantity = fc.oneof(
  fc.integer({ min: 1, max: 12 }),
  fc.constantFrom(0.5, 0.3333, 1.25, 2.0001, 1_000),
)
const factor = fc.constantFrom(0, 0.06, 0.12, 0.19, 0.25, 0.08875, 1 / 3)
const part = fc.constantFrom(0, 0.05, 0.1, 0.125, 1 / 3, 0.5, 0.999, 1)
const text = fc.constantFrom('a', 'b', 'c')
const fields = fc.dictionary(fc.constantFrom('x', 'y', 'z'), fc.constantFrom(null, 1, 'v', [1, 2]))
const key = fc.constantFrom('k1', 'k2')

const opt = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const clear = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary)

type Shape = Record<string, fc.Arbitrary<unknown>>
const of = (type: string, shape: Shape = {}) =>
  fc
    .record({ type: fc.constant(type), ...shape })
    .map((members) =>
      Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)),
    )

const discount = {
  value: fc.oneof(price, part),
  isPercentage: opt(fc.boolean()),
  discountId: opt(discountId),
  description: opt(text),
}
const line = {
  deliveryId,
  productNumber: text,
  quantity,
  unitPrice: price,
  taxFactor: opt(factor),
  orderLineId: opt(orderLineId),
  orderLineNumber: opt(fc.constantFrom('1', '2', '3', 'x')),
  skus: opt(fc.constantFrom({}, { s1: 1 }, { s1: 2, s2: 0.5 })),
  dynamic: opt(fields),
}
const address = { name: opt(clear(text)), city: opt(clear(text)), email: opt(clear(text)) }

/** Commands by how often they come: what builds an order up comes more often. */
export const commandArbitrary: fc.Arbitrary<Readonly<Record<string, unknown>>> = fc.oneof(
  { weight: 6, arbitrary: of('createOrderLine', line) },
  {
    weight: 3,
    arbitrary: of('createDelivery', {
      deliveryId: opt(deliveryId),
      shippingPrice: opt(price),
      shippingTaxFactor: opt(factor),
    }),
  },
  { weight: 3, arbitrary: of('setOrderState', { orderState: fc.constantFrom(...ORDER_STATES) }) },
  { weight: 2, arbitrary: of('completeDelivery', { deliveryId }) },
  { weight: 2, arbitrary: of('createStaticOrderDiscount', discount) },
  { weight: 2, arbitrary: of('createStaticOrderLineDiscount', { orderLineId, ...discount }) },
  { weight: 2, arbitrary: of('releaseOrderLineToInvoicing', { orderLineId }) },
  { weight: 2, arbitrary: of('invoice', { mixed: opt(fc.boolean()) }) },
  {
    weight: 2,
    arbitrary: of('createReturn', {
      orderLineId,
      quantity,
      refundFactor: part,
      returnId: opt(returnId),
    }),
  },
  of('createStaticShippingDiscount', { deliveryId, ...discount }),
  of('setChannelKey', { value: key }),
  of('setCustomerNumber', { value: clear(key) }),
  of('setOrderNumber', { value: fc.constantFrom('N1', 'N2') }),
  of('generateOrderNumberByPrefix', { prefix: fc.constantFrom('', 'G') }),
  of('setInvoiceAddress', address),
  of('setDynamicFields', { fields }),
  of('addTag', { key }),
  of('removeTag', { key }),
  of('addActivityLog', { messageTemplate: fc.constant('x is {x}'), dynamic: opt(fields) }),
  of('setLocale', { locale: fc.constantFrom(null, 'en', 'sv-SE') }),
  of('setExternalReference', { value: clear(key) }),
  of('setDeliveryAddress', { deliveryId, ...address }),
  of('setDeliveryInventory', { deliveryId, inventoryKey: opt(clear(key)) }),
  of('setDeliveryDynamicFields', { deliveryId, fields }),
  of('addDeliveryTag', { deliveryId, key }),
  of('removeDeliveryTag', { deliveryId, key }),
  of('releaseDelivery', { deliveryId }),
  of('retractDelivery', { deliveryId }),
  of('cancelDelivery', { deliveryId }),
  of('reopenDelivery', { deliveryId }),
  of('deleteDelivery', { deliveryId }),
  of('setShippingPrice', { deliveryId, shippingPrice: price }),
  of('setShippingProduct', { deliveryId, shippingDescription: opt(clear(text)) }),
  of('setShippingTax', { deliveryId, tax: opt(price) }),
  of('setShippingTax', { deliveryId, taxFactor: opt(factor) }),
  of('setDeliveryTracking', { deliveryId, carrier: opt(clear(text)) }),
  of('setOrderLineQuantity', { orderLineId, quantity }),
  of('setOrderLineUnitPrice', { orderLineId, unitPrice: price }),
  of('setOrderLineTax', { orderLineId, salesTax: opt(price) }),
  of('setOrderLineTax', { orderLineId, taxFactor: opt(factor) }),
  of('setOrderLineProduct', { orderLineId, productNumber: opt(text), image: opt(clear(text)) }),
  of('setOrderLineSkus', { orderLineId, skus: fc.constantFrom({}, { s3: 1.5 }) }),
  of('setOrderLineDynamicFields', { orderLineId, fields }),
  of('moveOrderLine', { orderLineId, deliveryId }),
  of('splitOrderLine', {
    orderLineId,
    quantity,
    newOrderLineId: opt(orderLineId),
    newDeliveryId: opt(deliveryId),
  }),
  of('deleteOrderLine', { orderLineId }),
  of('setStaticDiscountValue', { discountId, value: fc.oneof(price, part) }),
  of('setDiscountDescription', { discountId, description: clear(text) }),
  of('setDiscountDynamicFields', { discountId, fields }),
  of('deleteDiscount', { discountId }),
  of('setReturnRefundFactor', { returnId, refundFactor: part }),
  of('setReturnDynamicFields', { returnId, fields }),
  of('deleteReturn', { returnId }),
  of('retractOrderLineFromInvoicing', { orderLineId }),
  of('releaseShippingToInvoicing', { deliveryId }),
  of('retractShippingFromInvoicing', { deliveryId }),
  of('releaseReturnToInvoicing', { returnId }),
  of('retractReturnFromInvoicing', { returnId }),
  of('cancelInvoice', { invoiceId: fc.constantFrom('first', 'last') }),
)

/** What most scripts begin with: two deliveries with lines, a discount, often confirmed. */
const beginning = fc
  .record({
    prices: fc.array(price, { minLength: 6, maxLength: 6 }),
    quantities: fc.array(quantity, { minLength: 4, maxLength: 4 }),
    factors: fc.array(opt(factor), { minLength: 6, maxLength: 6 }),
    stage: fc.constantFrom('bare', 'open', 'confirmed', 'delivered'),
  })
  .map(({ prices, quantities, factors, stage }) => {
    if (stage === 'bare') return []
    const deliveries = [1, 2].map((n) => ({
      type: 'createDelivery',
      deliveryId: id(n),
      shippingPrice: prices[n + 3]!,
      ...(factors[n + 3] !== undefined && { shippingTaxFactor: factors[n + 3] }),
    }))
    const lines = quantities.map((amount, i) => ({
      type: 'createOrderLine',
      deliveryId: id(1 + (i % 2)),
      orderLineId: id(11 + i),
      productNumber: 'p',
      quantity: amount,
      unitPrice: prices[i]! > 1e6 ? 1.5 : prices[i]!,
      ...(factors[i] !== undefined && { taxFactor: factors[i] }),
    }))
    const discounted = { type: 'createStaticOrderDiscount', discountId: id(21), value: 10 }
    const open = [...deliveries, ...lines, discounted]
    if (stage === 'open') return open
    const confirmed = [...open, { type: 'setOrderState', orderState: 'confirmed' }]
    if (stage === 'confirmed') return confirmed
    return [
      ...confirmed,
      { type: 'completeDelivery', deliveryId: id(1) },
      { type: 'releaseOrderLineToInvoicing', orderLineId: id(11) },
      {
        type: 'createReturn',
        orderLineId: id(11),
        quantity: quantities[0],
        refundFactor: 0.5,
        returnId: id(31),
      },
    ]
  })

/** A script of one order: many batches of one command mostly, sometimes of a few. */
export const scriptArbitrary = fc.record({
  currencyCode: fc.constantFrom('EUR', 'JPY', 'KWD'),
  taxIncluded: fc.boolean(),
  beginning,
  batches: fc.array(
    fc.oneof(
      { weight: 4, arbitrary: commandArbitrary.map((command) => [command]) },
      { weight: 1, arbitrary: fc.array(commandArbitrary, { minLength: 2, maxLength: 4 }) },
    ),
    { minLength: 1, maxLength: 60, size: 'max' },
  ),
})

/** What comes, goes and comes again. */
const shuffling = fc.oneof(
  { weight: 2, arbitrary: of('createOrderLine', { ...line, orderLineId }) },
  { weight: 2, arbitrary: of('deleteOrderLine', { orderLineId }) },
  of('moveOrderLine', { orderLineId, deliveryId }),
  of('splitOrderLine', {
    orderLineId,
    quantity: fc.constantFrom(0.5, 1),
    newOrderLineId: orderLineId,
  }),
  of('createStaticOrderDiscount', { ...discount, discountId }),
  of('deleteDiscount', { discountId }),
)

/** A script in which much comes again. */
export const restlessArbitrary = scriptArbitrary.chain((script) => {
  const batch = fc.oneof(
    shuffling.map((command) => [command]),
    fc.constantFrom(...script.batches),
  )
  return fc
    .array(batch, { minLength: 20, maxLength: 60 })
    .map((batches) => ({ ...script, batches }))
})
