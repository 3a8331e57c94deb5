// What random filters compare: terms of a node type, literals of every kind, and what a comparison
// of two values means. Source: CONTRACT Appendix A.

import fc from 'fast-check'
import type { NodeType } from '../../protocol/graph/node-type.ts'
import { DATES, INSTANTS, MEMBERS, NUMBERS, TEXTS, type Doc } from './search-nodes.ts'

/** Time that `now` stands for in random filters. */
export const NOW = Date.parse('2026-02-01T00:00:00.000Z')

/** A value in a filter: how it is written, and what it is in a document. */
export interface Term {
  readonly text: string
  readonly kind: 'text' | 'number' | 'boolean' | 'instant' | 'date' | 'member'
  readonly of: (doc: Doc) => unknown
  /** All that it is compared with: an enum's values. */
  readonly values?: readonly string[] | undefined
}

/** The order of Unicode code points, one by one. */
export function codePointOrder(a: string, b: string): number {
  if (a === b) return 0
  const x = Array.from(a, (c) => c.codePointAt(0)!)
  const y = Array.from(b, (c) => c.codePointAt(0)!)
  for (let i = 0; i < Math.min(x.length, y.length); i++) if (x[i] !== y[i]) return x[i]! - y[i]!
  return x.length - y.length
}

export const isMissing = (value: unknown): boolean => value === undefined || value === null

/** A member of a document by its path; nothing lies below anything but an object. */
export function memberOf(doc: Doc, path: readonly string[]): unknown {
  let value: unknown = doc
  for (const name of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    value = Object.hasOwn(value, name) ? (value as Doc)[name] : undefined
  }
  return value
}

export const quote = (text: string): string =>
  `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
const doubleQuote = (text: string): string =>
  `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`

export const textLiteral = fc
  .record({ value: fc.constantFrom(...TEXTS), double: fc.boolean() })
  .map(({ value, double }) => ({ text: double ? doubleQuote(value) : quote(value), value }))
export const numberLiteral = fc.constantFrom(
  ...NUMBERS.map((value) => ({ text: String(value), value })),
  { text: '10%', value: 0.1 },
  { text: '1e0', value: 1 },
  { text: '-100%', value: -1 },
)
export const booleanLiteral = fc.constantFrom(
  { text: 'true', value: true },
  { text: 'false', value: false },
)
const instantLiteral = fc.oneof(
  fc
    .constantFrom(...INSTANTS)
    .chain((value) => fc.constantFrom({ text: quote(value), value }, { text: value, value })),
  fc.constantFrom(
    { text: 'now', value: new Date(NOW).toISOString() },
    { text: 'now - 31 days', value: '2026-01-01T00:00:00.000Z' },
    { text: 'now - 1 week + 2 days - 13 days - 12 hours', value: '2026-01-13T12:00:00.000Z' },
    { text: "'2026-01-01'", value: '2026-01-01T00:00:00.000Z' },
    { text: '2026-03-01', value: '2026-03-01T00:00:00.000Z' },
    { text: "'2026-01-31T13:00:00+01:00'", value: '2026-01-31T12:00:00.000Z' },
  ),
)
const dateLiteral = fc
  .constantFrom(...DATES)
  .chain((value) => fc.constantFrom({ text: quote(value), value }, { text: value, value }))

export type Literal = { readonly text: string; readonly value: unknown }
const LITERALS: Readonly<Record<string, fc.Arbitrary<Literal>>> = {
  text: textLiteral,
  number: numberLiteral,
  boolean: booleanLiteral,
  instant: instantLiteral,
  date: dateLiteral,
}

const KINDS: Readonly<Record<string, Term['kind']>> = {
  text: 'text',
  enum: 'text',
  number: 'number',
  boolean: 'boolean',
  instant: 'instant',
  date: 'date',
}

/** All terms of a node type that can be compared. */
export function termsOf(type: NodeType): Term[] {
  const terms: Term[] = []
  const add = (text: string, kind: Term['kind'], path: string[], values?: Term['values']): void => {
    terms.push({ text, kind, of: (doc) => memberOf(doc, path), values })
  }
  for (const { name, type: fieldType, members, values } of type.fields) {
    const kind = KINDS[fieldType]
    if (kind !== undefined) add(name, kind, [name], values)
    for (const member of members ?? []) {
      add(`${name}.${member.name}`, KINDS[member.type]!, [name, member.name])
    }
    if (fieldType !== 'dynamic') continue
    for (const member of MEMBERS) add(`${name}->${quote(member)}`, 'member', [name, member])
    add(`${name}->'x'->'x'`, 'member', [name, 'x', 'x'])
  }
  return terms
}

export const literalsOf = ({ values }: Term, kind: string): fc.Arbitrary<Literal> =>
  values === undefined
    ? LITERALS[kind]!
    : fc.constantFrom(...values.map((value) => ({ text: quote(value), value })))

export const OPERATORS = ['==', '!=', '<', '<=', '>', '>='] as const

/** A comparison of two values that are there and of one kind. */
export function compare(operator: string, a: unknown, b: unknown): boolean {
  if (isMissing(a) || isMissing(b) || typeof a !== typeof b) return false
  if (typeof a === 'object') return false
  if (operator === '==') return a === b
  if (operator === '!=') return a !== b
  if (typeof a === 'boolean') return false
  const order =
    typeof a === 'string' ? codePointOrder(a, b as string) : (a as number) - (b as number)
  if (operator === '<') return order < 0
  if (operator === '<=') return order <= 0
  return operator === '>' ? order > 0 : order >= 0
}

export const equality = (kind: string, operator: string): string =>
  kind === 'boolean' && (operator === '<=' || operator === '>=') ? '!=' : operator
