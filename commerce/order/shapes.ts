// The shapes that members of order messages and commands have in common. They stand between the
// definitions of commands and the checks that are compiled of them. Source: commerce/README.md
// "Values".

import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { LIMITS } from '../../config/limits.ts'
import { ADDRESS_MEMBERS, INVOICE_ADDRESS_MEMBERS, type JsonObject } from './state/state.ts'

/** An object without further members. */
export function members<P extends TProperties>(properties: P) {
  return Type.Object(properties, { additionalProperties: false })
}

/** A command's members beside `type`. */
export function commandMembers<P extends TProperties>(properties: P) {
  return members({ type: Type.String(), ...properties })
}

export const Id = Type.String({ format: 'uuid' })
export const Text = Type.String({ maxLength: LIMITS.textCharsMax })
/** A name for something: a number, a key. */
export const Key = Type.String({ minLength: 1, maxLength: LIMITS.keyCharsMax, format: 'key' })
export const Tag = Type.String({ minLength: 1, maxLength: LIMITS.tagCharsMax, format: 'key' })
export const DateText = Type.String({ format: 'date' })
export const Timestamp = Type.String({ format: 'timestamp' })
export const Price = Type.Number({ minimum: 0, maximum: LIMITS.amountMax })
export const Factor = Type.Number({ minimum: 0, maximum: LIMITS.factorMax })
/** A factor of 0 to 1. */
export const Part = Type.Number({ minimum: 0, maximum: 1 })
export const Quantity = Type.Number({ exclusiveMinimum: 0, maximum: LIMITS.quantityMax })

/** What may also be null: it clears. */
export function nullable<T extends TSchema>(schema: T) {
  return Type.Unsafe<Static<T> | null>({ ...schema, type: [schema['type'] as string, 'null'] })
}

/** Marks a schema whose values hold JSON of the caller's own making; ajv does not see it. */
export const HOLDS_JSON = Symbol('holds JSON')

/** Any JSON object: checked for depth, size and keys by json.ts. */
export const JsonMembers = Type.Unsafe<JsonObject>({ type: 'object', [HOLDS_JSON]: true })

/** Sku number to quantity for one unit of the line. */
export const Skus = Type.Unsafe<Readonly<Record<string, number>>>({
  type: 'object',
  maxProperties: LIMITS.skusMax,
  propertyNames: { minLength: 1, maxLength: LIMITS.keyCharsMax, format: 'key' },
  additionalProperties: Quantity,
  [HOLDS_JSON]: true,
})

const AddressText = nullable(Type.String({ maxLength: LIMITS.addressCharsMax }))
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
  maxLength: LIMITS.keyCharsMax,
  format: 'naturalKey',
})
