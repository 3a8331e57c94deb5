// Every command of the order actor, by name: the table that checks and decisions look into. It is
// made of explicit imports, so that a reader finds each command and nothing by magic.
// Source: commerce/README.md "Commands".

import type { OrderCommand } from './commands/command.ts'
import {
  cancelDelivery,
  completeDelivery,
  createDelivery,
  deleteDelivery,
  releaseDelivery,
  reopenDelivery,
  retractDelivery,
  setDeliveryAddress,
  setDeliveryInventory,
  setDeliveryTracking,
} from './commands/delivery.ts'
import {
  createStaticOrderDiscount,
  createStaticOrderLineDiscount,
  createStaticShippingDiscount,
  deleteDiscount,
  setDiscountDescription,
  setStaticDiscountValue,
} from './commands/discount.ts'
import {
  setDeliveryDynamicFields,
  setDiscountDynamicFields,
  setDynamicFields,
  setOrderLineDynamicFields,
  setReturnDynamicFields,
} from './commands/dynamic-fields.ts'
import { cancelInvoice, invoice } from './commands/invoice.ts'
import {
  createOrderLine,
  deleteOrderLine,
  moveOrderLine,
  setOrderLineProduct,
  setOrderLineQuantity,
  setOrderLineSkus,
  setOrderLineTax,
  setOrderLineUnitPrice,
} from './commands/line.ts'
import { generateOrderNumberByPrefix, setOrderNumber } from './commands/order-number.ts'
import {
  addActivityLog,
  setChannelKey,
  setCustomerNumber,
  setExternalReference,
  setInvoiceAddress,
  setLocale,
  setOrderState,
} from './commands/order.ts'
import {
  releaseOrderLineToInvoicing,
  releaseReturnToInvoicing,
  releaseShippingToInvoicing,
  retractOrderLineFromInvoicing,
  retractReturnFromInvoicing,
  retractShippingFromInvoicing,
} from './commands/release.ts'
import { createReturn, deleteReturn, setReturnRefundFactor } from './commands/return.ts'
import { setShippingPrice, setShippingProduct, setShippingTax } from './commands/shipping.ts'
import { splitOrderLine } from './commands/split-line.ts'
import { addDeliveryTag, addTag, removeDeliveryTag, removeTag } from './commands/tags.ts'

const DEFINITIONS: readonly OrderCommand[] = [
  setOrderState,
  setChannelKey,
  setCustomerNumber,
  setOrderNumber,
  generateOrderNumberByPrefix,
  setInvoiceAddress,
  setDynamicFields,
  addTag,
  removeTag,
  addActivityLog,
  setLocale,
  setExternalReference,
  createDelivery,
  setDeliveryAddress,
  setDeliveryInventory,
  setDeliveryDynamicFields,
  addDeliveryTag,
  removeDeliveryTag,
  releaseDelivery,
  retractDelivery,
  completeDelivery,
  cancelDelivery,
  reopenDelivery,
  deleteDelivery,
  setShippingPrice,
  setShippingProduct,
  setShippingTax,
  setDeliveryTracking,
  createOrderLine,
  setOrderLineQuantity,
  setOrderLineUnitPrice,
  setOrderLineTax,
  setOrderLineProduct,
  setOrderLineSkus,
  setOrderLineDynamicFields,
  moveOrderLine,
  splitOrderLine,
  deleteOrderLine,
  createStaticOrderDiscount,
  createStaticOrderLineDiscount,
  createStaticShippingDiscount,
  setStaticDiscountValue,
  setDiscountDescription,
  setDiscountDynamicFields,
  deleteDiscount,
  createReturn,
  setReturnRefundFactor,
  setReturnDynamicFields,
  deleteReturn,
  releaseOrderLineToInvoicing,
  retractOrderLineFromInvoicing,
  releaseShippingToInvoicing,
  retractShippingFromInvoicing,
  releaseReturnToInvoicing,
  retractReturnFromInvoicing,
  invoice,
  cancelInvoice,
]

export const COMMANDS: ReadonlyMap<string, OrderCommand> = new Map(
  DEFINITIONS.map((definition) => [definition.type, definition]),
)

/** Named by the contract, not built yet: they answer 422 NOT_AVAILABLE. */
export const LATER_COMMANDS: ReadonlySet<string> = new Set([
  'createPromotion',
  'createPromotionBySource',
  'setPromotionParameters',
  'setPromotionCombination',
  'setPromotionDynamicFields',
  'deletePromotion',
  'linkPayment',
  'unlinkPayment',
])
