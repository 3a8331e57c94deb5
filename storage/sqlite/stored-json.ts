// Documents as JSON text in SQLite. For SQLite a name in a JSON path ends at U+0000, so that
// character is written another way in names of members, with U+0001 as the sign of it.

/** A member's name as the stored text has it. */
export function storedName(name: string): string {
  return name.replaceAll('\u0001', '\u00011').replaceAll('\u0000', '\u00010')
}

// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const SIGN = /\u0001[01]/g

const ownName = (stored: string): string =>
  stored.replaceAll(SIGN, (sign) => (sign === '\u00010' ? '\u0000' : '\u0001'))

export function storedJson(value: unknown): string {
  const text = JSON.stringify(value)
  // Hardly any text has them, be it in a name or elsewhere.
  const mayHaveSuch = text.includes('\\u0000') || text.includes('\\u0001')
  return mayHaveSuch ? JSON.stringify(renamed(JSON.parse(text), storedName)) : text
}

export function parseStored(text: string): unknown {
  const value = JSON.parse(text) as unknown
  return text.includes('\\u0001') ? renamed(value, ownName) : value
}

// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const WRITTEN_OTHERWISE = /["\\\0-\x1f]/

/** A text is looked through in less time than its JSON, unless hardly any is without it. */
const LOOKED_FOR_CHARS_MIN = 3

/**
 * Pattern (GLOB) that every stored text matches in which a value is this one, or, of a text, holds
 * it; null: it is written otherwise there, or too short to tell anything.
 */
export function patternOf(value: string | number, how: 'is' | 'holds'): string | null {
  const text = String(value)
  if (text.length < LOOKED_FOR_CHARS_MIN || WRITTEN_OTHERWISE.test(text)) return null
  const part = text.replaceAll(/[*?[]/g, '[$&]')
  return how === 'is' && typeof value === 'string' ? `*"${part}"*` : `*${part}*`
}

function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((one) => renamed(one, rename))
  const members = Object.entries(value as Record<string, unknown>)
  return Object.fromEntries(members.map(([name, one]) => [rename(name), renamed(one, rename)]))
}
