// The shapes of members that only orders have, beside those that all actors have (actor/shapes.ts).
// Source: commerce/README.md "Values", "Commands".

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { HOLDS_JSON, nullable, Quantity } from '../../actor/shapes.ts'
import { ADDRESS_MEMBERS, INVOICE_ADDRESS_MEMBERS } from '../state/state.ts'

/** Sku number to quantity for one unit of the line. */
export const Skus = Type.Unsafe<Readonly<Record<string, number>>>({
  type: 'object',
  maxProperties: LIMITS.order.skusMax,
  propertyNames: { minLength: 1, maxLength: LIMITS.commerce.keyCharsMax, format: 'key' },
  additionalProperties: Quantity,
  [HOLDS_JSON]: true,
})

const AddressText = nullable(Type.String({ maxLength: LIMITS.order.addressCharsMax }))
const AddressSchema = Type.Optional(AddressText)

export const addressProperties = Object.fromEntries(
  ADDRESS_MEMBERS.map((member) => [member, AddressSchema]),
) as Record<(typeof ADDRESS_MEMBERS)[number], typeof AddressSchema>

export const invoiceAddressProperties = Object.fromEntries(
  INVOICE_ADDRESS_MEMBERS.map((member) => [member, AddressSchema]),
) as Record<(typeof INVOICE_ADDRESS_MEMBERS)[number], typeof AddressSchema>

/**
 * An order's natural key. It stands in paths beside UUIDs and the virtual id `new`, so it must not
 * look like one of them.
 */
export const OrderNumber = Type.String({
  minLength: 1,
  maxLength: LIMITS.commerce.keyCharsMax,
  format: 'naturalKey',
})
