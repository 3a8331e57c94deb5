// Requests for the fuzz test: right ones, mutated at random places with values that have broken
// other servers, and bytes that were never a request. fast-check chooses and shrinks them,
// fuzz.test.ts sends them.

import fc from 'fast-check'
import type { SmallOrder } from '../harness/orders.ts'

/** A request that is yet to be aimed at an order: the body names its ids by placeholders. */
export interface FuzzRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

/** Stand for the ids of the order that a request is aimed at. */
const ID = {
  order: '00000000-0000-7000-8000-00000000000a',
  delivery: '00000000-0000-7000-8000-00000000000b',
  line: '00000000-0000-7000-8000-00000000000c',
} as const

/** The same text with the ids of an order. */
export function aimedAt(text: string, order: SmallOrder): string {
  return text
    .replaceAll(ID.order, order.orderId)
    .replaceAll(ID.delivery, order.deliveryId)
    .replaceAll(ID.line, order.orderLineId)
}

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

const COMMANDS: readonly Json[] = [
  { type: 'setOrderState', orderState: 'confirmed' },
  { type: 'setChannelKey', value: 'web' },
  { type: 'setDynamicFields', fields: { a: 1, b: { c: [true, null] } } },
  { type: 'setInvoiceAddress', name: 'Ada', countryCode: 'SE' },
  { type: 'addTag', key: 'a' },
  { type: 'addActivityLog', messageTemplate: 'Hello {name}', dynamic: { name: 'Ada' } },
  { type: 'createDelivery', shippingPrice: 1.5, shippingTaxFactor: 0.25 },
  { type: 'setDeliveryAddress', deliveryId: ID.delivery, city: 'Kiruna' },
  { type: 'setDeliveryInventory', deliveryId: ID.delivery, inventoryDate: '2027-01-01' },
  { type: 'setShippingTax', deliveryId: ID.delivery, tax: 1 },
  {
    type: 'createOrderLine',
    deliveryId: ID.delivery,
    productNumber: 'P',
    quantity: 1.5,
    unitPrice: 9.99,
    taxFactor: 0.25,
    skus: { S: 1 },
  },
  { type: 'setOrderLineQuantity', orderLineId: ID.line, quantity: 3 },
  { type: 'setOrderLineTax', orderLineId: ID.line, salesTax: 1 },
  { type: 'splitOrderLine', orderLineId: ID.line, quantity: 0.5 },
  { type: 'createStaticOrderDiscount', value: 0.1, isPercentage: true },
  { type: 'createStaticOrderLineDiscount', orderLineId: ID.line, value: 1 },
  { type: 'releaseOrderLineToInvoicing', orderLineId: ID.line },
  { type: 'invoice', numberPrefix: 'F', mixed: true },
  { type: 'setExternalReference', value: 'ext' },
]

const QUERY: Json = {
  fields: ['orderNumber', "dynamic->'a'", 'invoiceAddress.name'],
  navigate: [{ edge: 'orderLines', orderBy: 'quantity desc', node: { fields: ['quantity'] } }],
}

const GRAPH: Json = [
  {
    edge: 'orders',
    alias: 'some',
    filter: `orderTotal > 1 and (orderState in ['pending'] or not (createdAt < now - 7 days))`,
    orderBy: 'createdAt desc, orderNumber',
    limit: 5,
    count: true,
    node: {
      fields: ['orderNumber', "dynamic->'a'", 'tags'],
      navigate: [
        { edge: 'orderLines', require: 'some', filter: 'quantity >= 1' },
        { edge: 'journalEntries', limit: 3, node: { fields: ['type', 'before'] } },
      ],
    },
  },
]

const CREATE: Json = {
  type: 'create',
  body: { currencyCode: 'EUR', taxIncluded: true, commands: [...COMMANDS.slice(0, 7)] },
}

const CHANNEL: Json = { currencyCode: 'EUR', taxIncluded: false, countries: { SE: {} } }

/** Values that have broken something somewhere. */
const NASTY = fc.oneof(
  fc.constantFrom<Json>(
    null,
    true,
    0,
    -0,
    -1,
    1e300,
    5e-324,
    0.1 + 0.2,
    2 ** 53,
    1e12 + 0.5,
    '',
    ' ',
    'NaN',
    'new',
    'toString',
    'constructor',
    '../../x',
    `' or 1=1; --`,
    '\u0000',
    '\u202e\ufeff',
    '\ud83d\ude00'.repeat(50),
    'x'.repeat(20_000),
    ID.order,
    ID.line,
    '2027-02-30',
    '9999-12-31T23:59:59.999Z',
    [],
    {},
    [[[[[[]]]]]],
    { length: 1e9 },
    { toJSON: 1, valueOf: 'x', hasOwnProperty: null },
  ),
  fc.jsonValue({ maxDepth: 3, depthSize: 'small' }) as fc.Arbitrary<Json>,
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.string({ unit: 'binary', maxLength: 20 }),
)

interface Mutation {
  /** Which of all places, of 0 to 1. */
  readonly at: number
  readonly how: 'replace' | 'delete' | 'double' | 'wrap' | 'rename'
  readonly value: Json
}

const MUTATION: fc.Arbitrary<Mutation> = fc.record({
  at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  how: fc.constantFrom('replace', 'replace', 'replace', 'delete', 'double', 'wrap', 'rename'),
  value: NASTY,
})

type Place = { readonly parent: Json[] | { [key: string]: Json }; readonly key: string }

function mutated(body: Json, mutations: readonly Mutation[]): Json {
  const root: Json[] = [structuredClone(body)]
  for (const mutation of mutations) {
    const places = placesOf(root)
    mutate(places[Math.floor(mutation.at * places.length)]!, mutation)
    if (root.length !== 1) return root.length === 0 ? null : root
  }
  return root[0]!
}

function placesOf(parent: Json[] | { [key: string]: Json }): Place[] {
  return Object.entries(parent).flatMap(([key, value]) => [
    { parent, key },
    ...(typeof value === 'object' && value !== null ? placesOf(value) : []),
  ])
}

function mutate({ parent, key }: Place, { how, value }: Mutation): void {
  const at = parent as Record<string, Json>
  if (how === 'replace') at[key] = value
  else if (how === 'wrap') at[key] = [at[key]!]
  else if (Array.isArray(parent)) {
    if (how === 'delete') parent.splice(Number(key), 1)
    else parent.splice(Number(key), 0, structuredClone(parent[Number(key)]!))
  } else {
    const name = how === 'rename' && typeof value === 'string' ? value.slice(0, 50) : `${key}2`
    // As JSON.parse would: `__proto__` becomes a member like any other.
    if (how !== 'delete') Object.defineProperty(at, name, { ...OWN, value: at[key] })
    if (how !== 'double') delete at[key]
  }
}

const OWN = { enumerable: true, configurable: true, writable: true }

const post = (path: string, body: string | Buffer): FuzzRequest => ({
  method: 'POST',
  path,
  headers: { 'Content-Type': 'application/json' },
  body,
})

const messages = (...some: Json[]): Json => some
const apply = (commands: readonly Json[]): Json => ({
  type: 'applyCommands',
  body: { commands: [...commands] },
})

/** Batches for one order: one message, right or mutated. */
export const BATCH: fc.Arbitrary<FuzzRequest> = fc
  .tuple(
    fc.array(fc.constantFrom(...COMMANDS), { minLength: 1, maxLength: 5 }),
    fc.array(MUTATION, { maxLength: 3 }),
  )
  .map(([commands, mutations]) =>
    post(
      `/resources/actors/order/${ID.order}`,
      JSON.stringify([mutated(apply(commands), mutations)]),
    ),
  )

const TEMPLATES: readonly (readonly [path: string, body: Json])[] = [
  ['/resources/actors/order/new', messages(CREATE)],
  ['/resources/actors/order/new?preview', messages(CREATE, { type: 'query', body: QUERY })],
  [`/resources/actors/order/${ID.order}`, messages({ type: 'query', body: QUERY })],
  [`/resources/actors/order/${ID.order}`, messages({ type: 'getCheckpoints' })],
  [
    `/resources/actors/order/${ID.order}`,
    messages({ type: 'rewind', body: { checkpointId: ID.line } }),
  ],
  [`/resources/actors/order/${ID.order}?preview`, messages(apply(COMMANDS), { type: 'delete' })],
  ['/resources/graph', GRAPH],
  ['/resources/registry/fuzz/value', { any: ['thing', 1] }],
  ['/resources/registry/channels/fuzz', CHANNEL],
  ['/resources/registry/graph/order/fields/fuzz', { type: 'text', source: "dynamic->'a'" }],
  ['/resources/registry/system/graph/order/search', { fields: [{ field: 'orderNumber' }] }],
]

/** Other right requests, mutated. */
export const MUTATED: fc.Arbitrary<FuzzRequest> = fc
  .tuple(fc.constantFrom(...TEMPLATES), fc.array(MUTATION, { minLength: 1, maxLength: 4 }))
  .map(([[path, body], mutations]) => post(path, JSON.stringify(mutated(body, mutations))))

/** Right requests whose bytes were changed. */
export const BYTES: fc.Arbitrary<FuzzRequest> = fc
  .tuple(
    fc.constantFrom(...TEMPLATES),
    fc.array(fc.tuple(fc.nat(), fc.uint8Array({ maxLength: 4 }), fc.nat({ max: 4 })), {
      minLength: 1,
      maxLength: 6,
    }),
  )
  .map(([[path, body], edits]) => {
    let bytes = Buffer.from(JSON.stringify(body))
    for (const [at, put, cut] of edits) {
      const i = at % (bytes.length + 1)
      bytes = Buffer.concat([bytes.subarray(0, i), put, bytes.subarray(i + cut)])
    }
    return post(path, bytes)
  })

const SEGMENT = fc.oneof(
  fc.constantFrom('resources', 'actors', 'order', 'graph', 'registry', 'oauth', 'token', ID.order),
  fc.constantFrom('new', '..', '.', '', '%00', '%ff', '%', 'openapi.json', 'ticket', 'meta'),
  fc.string({ unit: 'grapheme', maxLength: 12 }).map(encodeURIComponent),
)

/** Any method on any path, with any body. */
export const ANYTHING: fc.Arbitrary<FuzzRequest> = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'SEARCH'),
  path: fc
    .tuple(
      fc.array(SEGMENT, { maxLength: 6 }),
      fc.constantFrom('', '?', '?preview', '?q=[]', '?q=%5B%7B', '?index=x', '?searchType=prefix'),
    )
    .map(([segments, query]) => `/${segments.join('/')}${query}`),
  headers: fc.record(
    {
      'Content-Type': fc.constantFrom('application/json', 'application/x-ndjson', 'text/x', ';'),
      'Content-Encoding': fc.constantFrom('gzip', 'br', ''),
      'Idempotency-Key': fc.constantFrom('k', 'a b', ''),
      'If-Match': fc.constantFrom('*', '"1"', 'x', ''),
      'X-Consistency': fc.constantFrom('x', '', 'MS4x'),
      Authorization: fc.constantFrom('Bearer x', 'Basic eDp5', ''),
      Accept: fc.constantFrom('text/html', '*/*;q=0'),
    },
    { requiredKeys: [] },
  ),
  body: fc.oneof(
    fc.constant(''),
    fc.json(),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  ),
})
