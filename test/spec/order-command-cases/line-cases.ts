// Cases of the commands on order lines and discounts: commerce/README.md "Commands".

import type { Command } from '../../harness/orders.ts'
import { NOBODY, delivery, line, secondDelivery } from './case.ts'
import type { CommandCases, Place } from './case.ts'

const discount = ({ id }: Place): Command => ({
  type: 'createStaticOrderDiscount',
  discountId: id,
  value: 3,
})

export const LINE_CASES: CommandCases = {
  createOrderLine: {
    good: ({ id, deliveryId }) => ({
      deliveryId,
      orderLineId: id,
      orderLineNumber: '7',
      productNumber: 'P-2',
      quantity: 1.5,
      unitPrice: 3.3333,
      taxFactor: 0.25,
      description: 'Rope',
      image: 'https://b.example/rope.png',
      skus: { ROPE: 2 },
      dynamic: { cut: true },
    }),
    shows: ({ id }) => ({
      orderLines: [
        { orderLineNumber: '1' },
        {
          orderLineId: id,
          orderLineNumber: '7',
          productNumber: 'P-2',
          quantity: 1.5,
          orderLineTotal: 5,
          taxTotal: 1,
          description: 'Rope',
          dynamic: { cut: true },
        },
      ],
      orderTotal: 30,
    }),
    bad: ({ deliveryId }) => ({ deliveryId, productNumber: 'P', quantity: 0, unitPrice: 1 }),
    code: 'INVALID_COMMAND',
    words: /quantity must be > 0/,
  },
  setOrderLineQuantity: {
    good: ({ orderLineId }) => ({ orderLineId, quantity: 3 }),
    shows: () => ({ ...line({ quantity: 3, orderLineTotal: 30, taxTotal: 6 }), orderTotal: 35 }),
    bad: ({ orderLineId }) => ({ orderLineId, quantity: 0.00001 }),
    code: 'INVALID_COMMAND',
    words: /quantity .* at most 4 decimals/,
  },
  setOrderLineUnitPrice: {
    good: ({ orderLineId }) => ({ orderLineId, unitPrice: 0 }),
    shows: () => line({ unitPrice: 0, orderLineTotal: 0 }),
    bad: ({ orderLineId }) => ({ orderLineId, unitPrice: 1e13 }),
    code: 'INVALID_COMMAND',
    words: /unitPrice must be <= 1000000000000/,
  },
  setOrderLineTax: {
    good: ({ orderLineId }) => ({ orderLineId, salesTax: 1.25 }),
    shows: () => ({ ...line({ taxTotal: 1.25 }), orderTaxTotal: 2.25 }),
    bad: ({ orderLineId }) => ({ orderLineId, salesTax: 1, taxTotal: 1 }),
    code: 'INVALID_COMMAND',
    words: /exactly one of salesTax, taxTotal, taxFactor/,
  },
  setOrderLineProduct: {
    good: ({ orderLineId }) => ({ orderLineId, productNumber: 'P-9', description: 'Tar' }),
    shows: () => line({ productNumber: 'P-9', description: 'Tar' }),
    bad: () => ({ orderLineId: NOBODY, productNumber: 'P-9' }),
    code: 'INVALID_COMMAND',
    words: /there is no order line/,
  },
  setOrderLineSkus: {
    good: ({ orderLineId }) => ({ orderLineId, skus: { A: 1, B: 2 } }),
    shows: () =>
      line({
        skus: [
          { skuNumber: 'A', totalQuantity: 2 },
          { skuNumber: 'B', totalQuantity: 4 },
        ],
      }),
    bad: ({ orderLineId }) => ({ orderLineId, skus: { A: -1 } }),
    code: 'INVALID_COMMAND',
    words: /skus.*A.* must be > 0/,
  },
  setOrderLineDynamicFields: {
    good: ({ orderLineId }) => ({ orderLineId, fields: { gift: 'yes' } }),
    shows: () => line({ dynamic: { gift: 'yes' } }),
    bad: ({ orderLineId }) => ({ orderLineId, fields: null }),
    code: 'INVALID_COMMAND',
    words: /fields must be .*object/,
  },
  moveOrderLine: {
    before: (at) => [secondDelivery(at)],
    good: ({ orderLineId, id }) => ({ orderLineId, deliveryId: id }),
    shows: ({ id }) => line({ deliveryId: id, orderLineNumber: '1' }),
    between: ({ deliveryId }) => [{ type: 'cancelDelivery', deliveryId }],
    bad: ({ orderLineId, deliveryId }) => ({ orderLineId, deliveryId }),
    code: 'INVALID_STATE',
    words: /is cancelled: only an open or processing one can be changed/,
  },
  splitOrderLine: {
    good: ({ orderLineId, id }) => ({ orderLineId, quantity: 0.5, newOrderLineId: id }),
    shows: ({ id }) => ({
      orderLines: [
        { quantity: 1.5, orderLineTotal: 15 },
        { orderLineId: id, quantity: 0.5, orderLineTotal: 5, productNumber: 'P-1' },
      ],
    }),
    bad: ({ orderLineId }) => ({ orderLineId, quantity: 1.5 }),
    code: 'INVALID_COMMAND',
    words: /quantity 1\.5 must be less than the line's 1\.5/,
  },
  deleteOrderLine: {
    good: ({ orderLineId }) => ({ orderLineId }),
    shows: () => ({ orderLines: { length: 0 }, orderTotal: 5 }),
    bad: ({ orderLineId }) => ({ orderLineId }),
    code: 'INVALID_COMMAND',
    words: /there is no order line/,
  },
}

export const DISCOUNT_CASES: CommandCases = {
  createStaticOrderDiscount: {
    good: ({ id }) => ({ discountId: id, value: 0.1, isPercentage: true, description: 'Friends' }),
    shows: ({ id }) => ({
      orderTotal: 22.5,
      discountTotal: 2.5,
      staticDiscounts: [
        { discountId: id, scope: 'order', isPercentage: true, calculatedTotal: 2.5 },
      ],
      calculatedDiscounts: [{ referenceId: id, referenceType: 'staticDiscount' }, {}],
    }),
    bad: () => ({ value: 25, isPercentage: true }),
    code: 'INVALID_COMMAND',
    words: /must be 0 to 1: 0\.25 is 25 %/,
  },
  createStaticOrderLineDiscount: {
    good: ({ orderLineId }) => ({ orderLineId, value: 4 }),
    shows: () => ({
      ...line({ orderLineTotal: 16 }),
      staticDiscounts: [{ scope: 'orderLine', calculatedTotal: 4 }],
    }),
    bad: () => ({ orderLineId: NOBODY, value: 4 }),
    code: 'INVALID_COMMAND',
    words: /there is no order line/,
  },
  createStaticShippingDiscount: {
    good: ({ deliveryId }) => ({ deliveryId, value: 9 }),
    shows: () => ({
      ...delivery({ shippingTotal: 0 }),
      staticDiscounts: [{ scope: 'shipping', value: 9, calculatedTotal: 5 }],
    }),
    bad: ({ deliveryId }) => ({ deliveryId, value: '9' }),
    code: 'INVALID_COMMAND',
    words: /value must be .*number/,
  },
  setStaticDiscountValue: {
    before: (at) => [discount(at)],
    good: ({ id }) => ({ discountId: id, value: 5 }),
    shows: () => ({ orderTotal: 20 }),
    bad: () => ({ discountId: NOBODY, value: 5 }),
    code: 'INVALID_COMMAND',
    words: /there is no discount/,
  },
  setDiscountDescription: {
    before: (at) => [discount(at)],
    good: ({ id }) => ({ discountId: id, description: 'Sorry' }),
    shows: () => ({ staticDiscounts: [{ description: 'Sorry' }] }),
    bad: ({ id }) => ({ discountId: id }),
    code: 'INVALID_COMMAND',
    words: /description is missing/,
  },
  setDiscountDynamicFields: {
    before: (at) => [discount(at)],
    good: ({ id }) => ({ discountId: id, fields: { code: 'SORRY' } }),
    shows: () => ({ staticDiscounts: [{ dynamic: { code: 'SORRY' } }] }),
    bad: () => ({ discountId: NOBODY, fields: {} }),
    code: 'INVALID_COMMAND',
    words: /there is no discount/,
  },
  deleteDiscount: {
    before: (at) => [discount(at)],
    good: ({ id }) => ({ discountId: id }),
    shows: () => ({ staticDiscounts: { length: 0 }, orderTotal: 25, discountTotal: 0 }),
    bad: ({ id }) => ({ discountId: id }),
    code: 'INVALID_COMMAND',
    words: /there is no discount/,
  },
}
