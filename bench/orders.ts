// The orders that the load creates: about 900 bytes, one delivery with an address, two lines
// (ARCHITECTURE 8). Made ahead in a number, all different, so that indexes see values as they come
// in life.

import { newUuid } from './load/requests.ts'

export interface BenchOrder {
  readonly body: Readonly<Record<string, unknown>>
  readonly deliveryId: string
  readonly orderLineIds: readonly string[]
}

const NAMES = ['Ada Byron', 'Alan Mathison', 'Grace Murray', 'Edsger Wybe', 'Barbara Liskov']
const CITIES = ['London', 'Leeds', 'Bristol', 'York', 'Bath', 'Dundee', 'Cardiff', 'Oxford']
const PRODUCTS = ['HANGING LANTERN', 'GARDEN BENCH', 'TEA TOWEL', 'OAK SHELF', 'PIE DISH']
const CUSTOMERS = 5_000

/** How many of the orders are confirmed: the rest stays pending. */
export const CONFIRMED_SHARE = 2

/** The n-th order: the same n gives the same values, with new ids for its children. */
export function benchOrder(n: number): BenchOrder {
  const deliveryId = newUuid()
  const orderLineIds = [newUuid(), newUuid()]
  const name = NAMES[n % NAMES.length]!
  const city = CITIES[n % CITIES.length]!
  const lines = orderLineIds.map((orderLineId, i) => ({
    type: 'createOrderLine',
    deliveryId,
    orderLineId,
    productNumber: String(10_000 + ((n * 7 + i * 131) % 3_000)),
    description: `${PRODUCTS[(n + i) % PRODUCTS.length]!} ${city.toUpperCase()} NO ${n % 97}`,
    quantity: 1 + ((n + i) % 12),
    unitPrice: (99 + ((n * 37 + i * 11) % 9_900)) / 100,
    taxFactor: 0.2,
  }))
  return {
    deliveryId,
    orderLineIds,
    body: {
      currencyCode: 'GBP',
      taxIncluded: true,
      commands: [
        { type: 'setCustomerNumber', value: customerNumber(n) },
        { type: 'createDelivery', deliveryId, shippingPrice: 4.5 },
        {
          type: 'setDeliveryAddress',
          deliveryId,
          name,
          addressLine1: `${1 + (n % 240)} Station Road`,
          postalCode: `${city.slice(0, 2).toUpperCase()}${n % 20} ${n % 9}AB`,
          city,
          countryCode: 'GB',
          email: `${name.toLowerCase().replace(' ', '.')}@example.com`,
        },
        ...lines,
        ...(n % CONFIRMED_SHARE === 0 ? [{ type: 'setOrderState', orderState: 'confirmed' }] : []),
      ],
    },
  }
}

export function customerNumber(n: number): string {
  return String(20_000 + (n % CUSTOMERS))
}

/** As the messages of a request. */
export function createMessages(order: BenchOrder): readonly unknown[] {
  return [{ type: 'create', body: order.body }]
}
