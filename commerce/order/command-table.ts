// Every command of the order actor, by name: the table that checks and decisions look into. It is
// made of explicit imports, so that a reader finds a command by its file and nothing by magic.
// Source: commerce/README.md "Commands".

import type { CommandDefinition } from './command.ts'
import { addActivityLog } from './commands/add-activity-log.ts'
import { addDeliveryTag } from './commands/add-delivery-tag.ts'
import { addTag } from './commands/add-tag.ts'
import { cancelDelivery } from './commands/cancel-delivery.ts'
import { cancelInvoice } from './commands/cancel-invoice.ts'
import { completeDelivery } from './commands/complete-delivery.ts'
import { createDelivery } from './commands/create-delivery.ts'
import { createOrderLine } from './commands/create-order-line.ts'
import { createReturn } from './commands/create-return.ts'
import { createStaticOrderDiscount } from './commands/create-static-order-discount.ts'
import { createStaticOrderLineDiscount } from './commands/create-static-order-line-discount.ts'
import { createStaticShippingDiscount } from './commands/create-static-shipping-discount.ts'
import { deleteDelivery } from './commands/delete-delivery.ts'
import { deleteDiscount } from './commands/delete-discount.ts'
import { deleteOrderLine } from './commands/delete-order-line.ts'
import { deleteReturn } from './commands/delete-return.ts'
import { generateOrderNumberByPrefix } from './commands/generate-order-number-by-prefix.ts'
import { invoice } from './commands/invoice.ts'
import { moveOrderLine } from './commands/move-order-line.ts'
import { releaseDelivery } from './commands/release-delivery.ts'
import { releaseOrderLineToInvoicing } from './commands/release-order-line-to-invoicing.ts'
import { releaseReturnToInvoicing } from './commands/release-return-to-invoicing.ts'
import { releaseShippingToInvoicing } from './commands/release-shipping-to-invoicing.ts'
import { removeDeliveryTag } from './commands/remove-delivery-tag.ts'
import { removeTag } from './commands/remove-tag.ts'
import { reopenDelivery } from './commands/reopen-delivery.ts'
import { retractDelivery } from './commands/retract-delivery.ts'
import { retractOrderLineFromInvoicing } from './commands/retract-order-line-from-invoicing.ts'
import { retractReturnFromInvoicing } from './commands/retract-return-from-invoicing.ts'
import { retractShippingFromInvoicing } from './commands/retract-shipping-from-invoicing.ts'
import { setChannelKey } from './commands/set-channel-key.ts'
import { setCustomerNumber } from './commands/set-customer-number.ts'
import { setDeliveryAddress } from './commands/set-delivery-address.ts'
import { setDeliveryDynamicFields } from './commands/set-delivery-dynamic-fields.ts'
import { setDeliveryInventory } from './commands/set-delivery-inventory.ts'
import { setDeliveryTracking } from './commands/set-delivery-tracking.ts'
import { setDiscountDescription } from './commands/set-discount-description.ts'
import { setDiscountDynamicFields } from './commands/set-discount-dynamic-fields.ts'
import { setDynamicFields } from './commands/set-dynamic-fields.ts'
import { setExternalReference } from './commands/set-external-reference.ts'
import { setInvoiceAddress } from './commands/set-invoice-address.ts'
import { setLocale } from './commands/set-locale.ts'
import { setOrderLineDynamicFields } from './commands/set-order-line-dynamic-fields.ts'
import { setOrderLineProduct } from './commands/set-order-line-product.ts'
import { setOrderLineQuantity } from './commands/set-order-line-quantity.ts'
import { setOrderLineSkus } from './commands/set-order-line-skus.ts'
import { setOrderLineTax } from './commands/set-order-line-tax.ts'
import { setOrderLineUnitPrice } from './commands/set-order-line-unit-price.ts'
import { setOrderNumber } from './commands/set-order-number.ts'
import { setOrderState } from './commands/set-order-state.ts'
import { setReturnDynamicFields } from './commands/set-return-dynamic-fields.ts'
import { setReturnRefundFactor } from './commands/set-return-refund-factor.ts'
import { setShippingPrice } from './commands/set-shipping-price.ts'
import { setShippingProduct } from './commands/set-shipping-product.ts'
import { setShippingTax } from './commands/set-shipping-tax.ts'
import { setStaticDiscountValue } from './commands/set-static-discount-value.ts'
import { splitOrderLine } from './commands/split-order-line.ts'

const DEFINITIONS: readonly CommandDefinition[] = [
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

export const COMMANDS: ReadonlyMap<string, CommandDefinition> = new Map(
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
