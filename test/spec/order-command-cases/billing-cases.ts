// Cases of the commands on returns and invoices: commerce/README.md "Commands".

import type { Command } from '../../harness/orders.ts'
import { NOBODY, confirm, delivery, line } from './case.ts'
import type { CommandCases, Place } from './case.ts'

const complete = ({ deliveryId }: Place): Command => ({ type: 'completeDelivery', deliveryId })
const invoiceLine = ({ orderLineId }: Place): Command[] => [
  { type: 'releaseOrderLineToInvoicing', orderLineId },
  { type: 'invoice' },
]
const returned = (at: Place): Command[] => [
  confirm,
  complete(at),
  {
    type: 'createReturn',
    returnId: at.id,
    orderLineId: at.orderLineId,
    quantity: 1,
    refundFactor: 1,
  },
]

export const RETURN_CASES: CommandCases = {
  createReturn: {
    before: (at) => [confirm, complete(at)],
    good: ({ orderLineId, id }) => ({
      orderLineId,
      quantity: 1.5,
      refundFactor: 0.5,
      returnId: id,
    }),
    shows: ({ id }) => ({
      returns: [{ returnId: id, quantity: 1.5, refundFactor: 0.5, releasedToInvoice: true }],
      ...line({ returnedQuantity: 1.5 }),
    }),
    bad: ({ orderLineId }) => ({ orderLineId, quantity: 1, refundFactor: 1 }),
    code: 'INVALID_COMMAND',
    words: /quantity 1 is more than the 0\.5 that can be returned/,
  },
  setReturnRefundFactor: {
    before: returned,
    good: ({ id }) => ({ returnId: id, refundFactor: 0.25 }),
    shows: () => ({ returns: [{ refundFactor: 0.25 }] }),
    bad: ({ id }) => ({ returnId: id, refundFactor: 1.5 }),
    code: 'INVALID_COMMAND',
    words: /refundFactor must be <= 1/,
  },
  setReturnDynamicFields: {
    before: returned,
    good: ({ id }) => ({ returnId: id, fields: { why: 'torn' } }),
    shows: () => ({ returns: [{ dynamic: { why: 'torn' } }] }),
    bad: () => ({ returnId: NOBODY, fields: {} }),
    code: 'INVALID_COMMAND',
    words: /there is no return/,
  },
  deleteReturn: {
    before: returned,
    good: ({ id }) => ({ returnId: id }),
    shows: () => ({ returns: { length: 0 }, ...line({ returnedQuantity: 0 }) }),
    bad: ({ id }) => ({ returnId: id }),
    code: 'INVALID_COMMAND',
    words: /there is no return/,
  },
}

export const INVOICING_CASES: CommandCases = {
  releaseOrderLineToInvoicing: {
    good: ({ orderLineId }) => ({ orderLineId }),
    shows: () => line({ releasedToInvoice: true }),
    between: () => [{ type: 'invoice' }],
    bad: ({ orderLineId }) => ({ orderLineId }),
    code: 'INVALID_STATE',
    words: /is invoiced and can't become released/,
  },
  retractOrderLineFromInvoicing: {
    before: ({ orderLineId }) => [{ type: 'releaseOrderLineToInvoicing', orderLineId }],
    good: ({ orderLineId }) => ({ orderLineId }),
    shows: () => line({ releasedToInvoice: false }),
    bad: ({ orderLineId }) => ({ orderLineId }),
    code: 'INVALID_STATE',
    words: /is notReleased and can't become notReleased/,
  },
  releaseShippingToInvoicing: {
    good: ({ deliveryId }) => ({ deliveryId }),
    shows: () => delivery({ releasedToInvoice: true }),
    between: () => [{ type: 'invoice' }],
    bad: ({ deliveryId }) => ({ deliveryId }),
    code: 'INVALID_STATE',
    words: /is invoiced and can't become released/,
  },
  retractShippingFromInvoicing: {
    before: ({ deliveryId }) => [{ type: 'releaseShippingToInvoicing', deliveryId }],
    good: ({ deliveryId }) => ({ deliveryId }),
    shows: () => delivery({ releasedToInvoice: false }),
    bad: ({ deliveryId }) => ({ deliveryId }),
    code: 'INVALID_STATE',
    words: /is notReleased/,
  },
  releaseReturnToInvoicing: {
    before: (at) => [...returned(at), { type: 'retractReturnFromInvoicing', returnId: at.id }],
    good: ({ id }) => ({ returnId: id }),
    shows: () => ({ returns: [{ releasedToInvoice: true }] }),
    bad: () => ({ returnId: NOBODY }),
    code: 'INVALID_COMMAND',
    words: /there is no return/,
  },
  retractReturnFromInvoicing: {
    before: returned,
    good: ({ id }) => ({ returnId: id }),
    shows: () => ({ returns: [{ releasedToInvoice: false }] }),
    bad: ({ id }) => ({ returnId: id }),
    code: 'INVALID_STATE',
    words: /is notReleased/,
  },
  invoice: {
    before: ({ orderLineId }) => [{ type: 'releaseOrderLineToInvoicing', orderLineId }],
    good: () => ({ numberPrefix: 'F' }),
    shows: ({ orderNumber }) => ({
      invoices: [
        {
          invoiceNumber: `F${orderNumber}-1`,
          invoiceTotal: 20,
          invoiceTaxTotal: 4,
          isCancelled: false,
        },
      ],
      invoicedTotal: 20,
      invoiceState: 'partial',
    }),
    bad: () => ({}),
    code: 'NOTHING_TO_INVOICE',
    words: /use releaseOrderLineToInvoicing or releaseShippingToInvoicing first/,
  },
  cancelInvoice: {
    before: invoiceLine,
    // The id of the invoice is known to the test only: it puts it in.
    good: () => ({}),
    shows: () => ({ invoices: [{ isCancelled: true }], invoicedTotal: 0, invoiceState: 'none' }),
    bad: () => ({ invoiceId: NOBODY }),
    code: 'INVALID_COMMAND',
    words: /there is no invoice/,
  },
}
