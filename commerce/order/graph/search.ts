// What phrases find orders and their parts by where the registry says nothing else: numbers as a
// whole, names, addresses and descriptions by their words; an order also by what stands in its
// deliveries, lines and invoices. Source: CONTRACT 1.4.2, commerce/README.md "Graph".

import type { SearchField, SearchIndex } from '../../../protocol/graph/search/search-index.ts'

const words = (...path: string[]): SearchField => ({ path, keyword: false })
const keyword = (...path: string[]): SearchField => ({ path, keyword: true })
const index = (...fields: SearchField[]): SearchIndex => ({ fields, edges: [] })

/** What people look for of an address; its lines and the like are for filters. */
const FOUND_MEMBERS = ['name', 'attention', 'addressLine1', 'postalCode', 'city', 'email', 'phone']
const address = (field: string): SearchField[] =>
  FOUND_MEMBERS.map((member) => words(field, member))

const TRACKING = keyword('tracking', 'trackingNumber')

export const BUILT_IN_SEARCH: Readonly<Record<string, SearchIndex>> = {
  order: {
    fields: [
      keyword('orderNumber'),
      keyword('customerNumber'),
      keyword('externalReference'),
      ...address('invoiceAddress'),
    ],
    edges: [
      {
        edge: 'deliveries',
        fields: [keyword('deliveryNumber'), words('deliveryAddress', 'name'), TRACKING],
      },
      { edge: 'orderLines', fields: [keyword('productNumber')] },
      { edge: 'invoices', fields: [keyword('invoiceNumber')] },
    ],
  },
  delivery: index(keyword('deliveryNumber'), ...address('deliveryAddress'), TRACKING),
  orderLine: index(keyword('productNumber'), words('description')),
  orderLineSku: index(keyword('skuNumber')),
  staticDiscount: index(words('description')),
  calculatedDiscount: index(words('description')),
  invoice: index(keyword('invoiceNumber'), ...address('invoiceAddress')),
  invoiceLine: index(keyword('productNumber'), words('description')),
  invoiceLineDiscount: index(words('description')),
  activityLog: index(words('message')),
}
