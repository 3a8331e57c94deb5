// One example of each message and each command of an order, all of one order's life: a caller may
// paste them in that order. They stand in the OpenAPI document beside the schemas that check them.

const deliveryId = '0198c0de-7000-7000-8000-0000000000d1'
const secondDeliveryId = '0198c0de-7000-7000-8000-0000000000d2'
const orderLineId = '0198c0de-7000-7000-8000-0000000000a1'
const secondOrderLineId = '0198c0de-7000-7000-8000-0000000000a2'
const discountId = '0198c0de-7000-7000-8000-0000000000e1'
const returnId = '0198c0de-7000-7000-8000-0000000000b1'
const invoiceId = '0198c0de-7000-7000-8000-0000000000f1'
const checkpointId = '0198c0de-7000-7000-8000-0000000000c1'

const address = {
  name: 'Ada Lovelace',
  addressLine1: '12 St James Square',
  postalCode: 'SW1Y 4JH',
  city: 'London',
  countryCode: 'GB',
}

/** Members of each command beside its `type`. */
export const COMMAND_EXAMPLES: Readonly<Record<string, object>> = {
  setOrderState: { orderState: 'confirmed' },
  setChannelKey: { value: 'web_eu' },
  setCustomerNumber: { value: 'C-1001' },
  setOrderNumber: { value: 'W-1001' },
  generateOrderNumberByPrefix: { prefix: 'W' },
  setInvoiceAddress: { ...address, email: 'ada@example.com' },
  setDynamicFields: { fields: { giftWrap: true } },
  addTag: { key: 'vip' },
  removeTag: { key: 'vip' },
  addActivityLog: {
    messageTemplate: 'called by {caller}',
    dynamic: { caller: 'the shop' },
  },
  setLocale: { locale: 'en-GB' },
  setExternalReference: { value: 'shop-cart-77' },
  createDelivery: {
    deliveryId,
    shippingProductNumber: 'POST',
    shippingPrice: 4.9,
    shippingTaxFactor: 0.2,
  },
  setDeliveryAddress: { deliveryId, ...address },
  setDeliveryInventory: { deliveryId, inventoryKey: 'london', inventoryDate: '2026-01-31' },
  setDeliveryDynamicFields: { deliveryId, fields: { leaveAtDoor: true } },
  addDeliveryTag: { deliveryId, key: 'express' },
  removeDeliveryTag: { deliveryId, key: 'express' },
  releaseDelivery: { deliveryId },
  retractDelivery: { deliveryId },
  completeDelivery: { deliveryId },
  cancelDelivery: { deliveryId },
  reopenDelivery: { deliveryId },
  deleteDelivery: { deliveryId },
  setShippingPrice: { deliveryId, shippingPrice: 6.5 },
  setShippingProduct: { deliveryId, shippingProductNumber: 'EXPRESS' },
  setShippingTax: { deliveryId, taxFactor: 0.1 },
  setDeliveryTracking: {
    deliveryId,
    carrier: 'post',
    trackingNumber: 'RX 1234 5678 9GB',
    trackingUrl: 'https://post.example/RX123456789GB',
  },
  createOrderLine: {
    deliveryId,
    orderLineId,
    productNumber: 'SHIRT-M',
    description: 'Shirt, size M',
    quantity: 2,
    unitPrice: 24.9,
    taxFactor: 0.2,
  },
  setOrderLineQuantity: { orderLineId, quantity: 3 },
  setOrderLineUnitPrice: { orderLineId, unitPrice: 19.9 },
  setOrderLineTax: { orderLineId, taxFactor: 0.1 },
  setOrderLineProduct: { orderLineId, productNumber: 'SHIRT-L', description: 'Shirt, size L' },
  setOrderLineSkus: { orderLineId, skus: { 'SHIRT-M-BLUE': 1 } },
  setOrderLineDynamicFields: { orderLineId, fields: { monogram: 'AL' } },
  moveOrderLine: { orderLineId, deliveryId: secondDeliveryId },
  splitOrderLine: { orderLineId, quantity: 1, newOrderLineId: secondOrderLineId },
  deleteOrderLine: { orderLineId },
  createStaticOrderDiscount: {
    discountId,
    value: 0.1,
    isPercentage: true,
    description: 'ten per cent off',
  },
  createStaticOrderLineDiscount: { orderLineId, discountId, value: 5 },
  createStaticShippingDiscount: { deliveryId, discountId, value: 1, isPercentage: true },
  setStaticDiscountValue: { discountId, value: 0.2 },
  setDiscountDescription: { discountId, description: 'twenty per cent off' },
  setDiscountDynamicFields: { discountId, fields: { campaign: 'summer' } },
  deleteDiscount: { discountId },
  createReturn: { orderLineId, returnId, quantity: 1, refundFactor: 1 },
  setReturnRefundFactor: { returnId, refundFactor: 0.5 },
  setReturnDynamicFields: { returnId, fields: { reason: 'too small' } },
  deleteReturn: { returnId },
  releaseOrderLineToInvoicing: { orderLineId },
  retractOrderLineFromInvoicing: { orderLineId },
  releaseShippingToInvoicing: { deliveryId },
  retractShippingFromInvoicing: { deliveryId },
  releaseReturnToInvoicing: { returnId },
  retractReturnFromInvoicing: { returnId },
  invoice: { numberPrefix: 'F' },
  cancelInvoice: { invoiceId },
}

/** The whole command. */
export function commandExample(type: string): { readonly type: string } {
  return { type, ...COMMAND_EXAMPLES[type] }
}

/** Bodies of the messages. */
export const BODY_EXAMPLES: Readonly<Record<string, object>> = {
  create: {
    currencyCode: 'EUR',
    taxIncluded: true,
    commands: [commandExample('createDelivery'), commandExample('createOrderLine')],
  },
  applyCommands: { commands: [commandExample('addTag'), commandExample('setOrderState')] },
  query: {
    fields: ['orderNumber', 'orderTotal'],
    navigate: [{ edge: 'orderLines', node: { fields: ['productNumber', 'quantity'] } }],
  },
  delete: {},
  getCheckpoints: {},
  rewind: { checkpointId },
}
