// One invoice as one order: the body of the `create` message, and ids that are the same each time
// the same invoice is read, so that a run can be repeated. Source: commerce/README.md "Messages",
// "Commands".

import { hash } from 'node:crypto'
import { formatUuid, stampUuid7 } from '../../../protocol/ids.ts'
import { fromE4 } from './amount.ts'
import { countryCode } from './countries.ts'
import type { Invoice } from './invoice.ts'

/** Sales channel of the orders; it needs no configuration where no channel is configured. */
export const CHANNEL_KEY = 'online'

export type OrderCommand = { readonly type: string } & Readonly<Record<string, unknown>>

export interface OrderCreateBody {
  readonly orderNumber: string
  readonly createdAt: string
  readonly currencyCode: 'GBP'
  readonly taxIncluded: true
  readonly channelKey: string
  readonly commands: readonly OrderCommand[]
}

/**
 * The `create` body of an invoice: one delivery, one order line a row. A customer number or country
 * code is left out where the file has none, and so is an empty description.
 */
export function orderCreateBody(invoice: Invoice): OrderCreateBody {
  const deliveryId = deliveryIdOf(invoice)
  const commands: OrderCommand[] = []
  if (invoice.customerNumber !== null) {
    commands.push({ type: 'setCustomerNumber', value: invoice.customerNumber })
  }
  commands.push({ type: 'createDelivery', deliveryId })
  const country = countryCode(invoice.country)
  if (country !== null) {
    commands.push({ type: 'setDeliveryAddress', deliveryId, countryCode: country })
  }
  for (const line of invoice.lines) {
    const { productNumber, description } = line
    const quantity = fromE4(line.quantityE4)
    const unitPrice = fromE4(line.unitPriceE4)
    commands.push(
      description === ''
        ? { type: 'createOrderLine', deliveryId, productNumber, quantity, unitPrice }
        : { type: 'createOrderLine', deliveryId, productNumber, quantity, unitPrice, description },
    )
  }
  return {
    orderNumber: invoice.invoiceNumber,
    createdAt: new Date(invoice.timeMs).toISOString(),
    currencyCode: 'GBP',
    taxIncluded: true,
    channelKey: CHANNEL_KEY,
    commands,
  }
}

/** UUIDv7 of the invoice's time and a hash of its number: the same for the same invoice. */
function deliveryIdOf(invoice: Invoice): string {
  const bytes = hash('sha256', `online-retail/delivery/${invoice.invoiceNumber}`, 'buffer')
  return formatUuid(stampUuid7(bytes.subarray(0, 16), invoice.timeMs))
}

/** Idempotency key made of the order's whole content: another content is another key. */
export function orderKey(prefix: string, messagesJson: string): string {
  return `${prefix}-${hash('sha256', messagesJson, 'hex').slice(0, 40)}`
}
