// The shapes that members of messages and commands have in common. Source: commerce/README.md
// "Values".

import { type Static, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { LIMITS } from '../../config/limits.ts'
import type { JsonObject } from './json.ts'

/** An object without further members. */
export function members<P extends TProperties>(properties: P) {
  return Type.Object(properties, { additionalProperties: false })
}

/** A command's members beside `type`. */
export function commandMembers<P extends TProperties>(properties: P) {
  return members({ type: Type.String(), ...properties })
}

export const Id = Type.String({ format: 'uuid' })
export const Text = Type.String({ maxLength: LIMITS.commerce.textCharsMax })
/** A name for something: a number, a key. */
export const Key = Type.String({
  minLength: 1,
  maxLength: LIMITS.commerce.keyCharsMax,
  format: 'key',
})
export const Tag = Type.String({
  minLength: 1,
  maxLength: LIMITS.commerce.tagCharsMax,
  format: 'key',
})
export const DateText = Type.String({ format: 'date' })
export const Timestamp = Type.String({ format: 'timestamp' })
export const Price = Type.Number({ minimum: 0, maximum: LIMITS.commerce.amountMax })
export const Factor = Type.Number({ minimum: 0, maximum: LIMITS.commerce.factorMax })
/** A factor of 0 to 1. */
export const Part = Type.Number({ minimum: 0, maximum: 1 })
export const Quantity = Type.Number({ exclusiveMinimum: 0, maximum: LIMITS.commerce.quantityMax })

/** What may also be null: it clears. */
export function nullable<T extends TSchema>(schema: T) {
  return Type.Unsafe<Static<T> | null>({ ...schema, type: [schema['type'] as string, 'null'] })
}

/** Marks a schema whose values hold JSON of the caller's own making; ajv does not see it. */
export const HOLDS_JSON = Symbol('holds JSON')

/** Any JSON object: checked for depth, size and keys by json.ts. */
export const JsonMembers = Type.Unsafe<JsonObject>({ type: 'object', [HOLDS_JSON]: true })
