// Access attributes: what an identity is said to be (its region, its customer numbers). Attribute
// entries open graph nodes by them (`region@graph/order:query`). Source: specification "Scopes and
// ACEs", CONTRACT 1.8 `accessAttributes`.

/** Bounds of one identity's attributes: they stand in plans, and travel with messages. */
export const ATTRIBUTE_LIMITS = {
  attributesMax: 64,
  /** Values of all attributes together. */
  attributeValuesMax: 1_000,
  /** Of a name, or of a value that is text. */
  attributeCharsMax: 1_024,
} as const

/** Values by name: a node is opened if its field has one of them. */
export type Attributes = Readonly<Record<string, readonly (string | number | boolean)[]>>

export const NO_ATTRIBUTES: Attributes = {}

/** The bound that an identity's attributes pass, in words; null: none. */
export function passedBound(attributes: Attributes): string | null {
  const { attributesMax, attributeValuesMax, attributeCharsMax } = ATTRIBUTE_LIMITS
  const entries = Object.entries(attributes)
  if (entries.length > attributesMax) return `more than ${attributesMax} attributes`
  let values = 0
  for (const [name, list] of entries) {
    values += list.length
    const isLong = [name, ...list].some((text) => String(text).length > attributeCharsMax)
    if (isLong) return `a name or value of more than ${attributeCharsMax} characters`
  }
  return values > attributeValuesMax ? `more than ${attributeValuesMax} values` : null
}
