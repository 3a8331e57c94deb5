// Queries, sorts and strict mappings as Elasticsearch understands them, on plain sources. Source:
// PROTOCOL 3.13; the server itself, which passes the same suites.

import { assert } from '../../protocol/errors.ts'
import { compareText } from '../../protocol/graph/evaluate.ts'
import type { FieldMapping, Query, RangeQuery, Sort, Term } from '../elastic/engine.ts'

export type Source = Readonly<Record<string, unknown>>
export type Properties = Readonly<Record<string, FieldMapping>>

/** Longest term of a keyword, in bytes of UTF-8. */
const TERM_BYTES_MAX = 32_766

type Scalar = string | number | boolean

/** What a field's name leads to in a mapping; `key` inside a flattened field. */
interface Found {
  readonly mapping: FieldMapping
  readonly path: readonly string[]
  readonly key: string | null
}

function findField(field: string, properties: Properties): Found | null {
  const names = field.split('.')
  let within = properties
  for (let i = 0; i < names.length; i++) {
    const mapping = within[names[i]!]
    if (mapping === undefined) return null
    const path = names.slice(0, i + 1)
    if ('properties' in mapping && i < names.length - 1) within = mapping.properties
    else if (i === names.length - 1) return { mapping, path, key: null }
    else if ('type' in mapping && mapping.type === 'flattened') {
      return { mapping, path, key: names.slice(i + 1).join('.') }
    } else return null
  }
  return null
}

/** All leaves below a path, lists spread out, nulls left out. */
function leaves(value: unknown, path: readonly string[]): Scalar[] {
  if (value === null || value === undefined) return []
  if (Array.isArray(value)) return value.flatMap((one) => leaves(one, path))
  if (typeof value !== 'object') return path.length === 0 ? [value as Scalar] : []
  if (path.length === 0) return Object.values(value).flatMap((one) => leaves(one, []))
  const [name, ...rest] = path
  return leaves((value as Record<string, unknown>)[name!], rest)
}

/** A document's values of a field as they are indexed: dates as milliseconds. */
export function valuesOf(source: Source, field: string, properties: Properties): Scalar[] {
  const found = findField(field, properties)
  if (found === null) return []
  const { mapping, path, key } = found
  if ('enabled' in mapping) return []
  if (key !== null) {
    let held: unknown = source
    for (const name of path) held = (held as Record<string, unknown> | undefined)?.[name]
    return leaves((held as Record<string, unknown> | undefined)?.[key], []).map(String)
  }
  const values = leaves(source, path)
  if ('type' in mapping && mapping.type === 'text') {
    return values.flatMap((value) => String(value).split(' '))
  }
  return 'type' in mapping ? values.map((value) => indexed(mapping.type, value)) : values
}

function indexed(type: string, value: Scalar): Scalar {
  if (type === 'keyword') return String(value)
  return type === 'date' && typeof value === 'string' ? Date.parse(value) : value
}

function typeOf(field: string, properties: Properties): string {
  const found = findField(field, properties)
  if (found === null || found.key !== null) return 'keyword'
  return 'type' in found.mapping ? found.mapping.type : 'object'
}

/** A query ready to be asked of documents. */
export function compileQuery(query: Query, properties: Properties): (source: Source) => boolean {
  const compiled = (inner: Query): ((source: Source) => boolean) => compileQuery(inner, properties)
  if ('match_all' in query) return () => true
  if ('match_none' in query) return () => false
  if ('constant_score' in query) return compiled(query.constant_score.filter)
  if ('match_phrase' in query) {
    const [[field, { query: words }]] = Object.entries(query.match_phrase) as [
      [string, { query: string }],
    ]
    return (source) =>
      textsOf(source, field, properties).some((text) => text.includes(` ${words} `))
  }
  if ('bool' in query) {
    const filter = (query.bool.filter ?? []).map(compiled)
    const mustNot = (query.bool.must_not ?? []).map(compiled)
    const isOptional = filter.length > 0 && query.bool.minimum_should_match === undefined
    const should = isOptional ? null : (query.bool.should?.map(compiled) ?? null)
    return (source) =>
      (should === null || should.some((test) => test(source))) &&
      filter.every((test) => test(source)) &&
      !mustNot.some((test) => test(source))
  }
  if ('exists' in query) {
    const { field } = query.exists
    return (source) => valuesOf(source, field, properties).length > 0
  }
  const { field, test } = leafTest(query, properties)
  return (source) => valuesOf(source, field, properties).some(test)
}

/** What a query scores a document that it finds. */
export function scoreOf(query: Query, source: Source, properties: Properties): number {
  const isFound = (one: Query): boolean => compileQuery(one, properties)(source)
  if ('constant_score' in query) {
    return isFound(query.constant_score.filter) ? query.constant_score.boost : 0
  }
  if (!('bool' in query)) return 0
  return (query.bool.should ?? []).reduce((sum, one) => sum + scoreOf(one, source, properties), 0)
}

/** A text field's values, with a space around each word. */
function textsOf(source: Source, field: string, properties: Properties): string[] {
  const found = findField(field, properties)
  return found === null ? [] : leaves(source, found.path).map((text) => ` ${String(text)} `)
}

type Leaf = Exclude<
  Query,
  | { match_all: unknown }
  | { match_none: unknown }
  | { bool: unknown }
  | { exists: unknown }
  | { match_phrase: unknown }
  | { constant_score: unknown }
>

/** What is asked of a field's values: one that passes is enough. */
function leafTest(
  query: Leaf,
  properties: Properties,
): { readonly field: string; readonly test: (value: Scalar) => boolean } {
  const [kind] = Object.keys(query) as [string]
  const [[field, wanted]] = Object.entries(Object.values(query)[0] as object) as [[string, never]]
  const type = typeOf(field, properties)
  const term = (value: Term): Scalar => indexed(type, value)
  if (kind === 'range') {
    const { gt, gte, lt, lte } = wanted as RangeQuery
    const isBounded = (gt ?? gte) !== undefined && (lt ?? lte) !== undefined
    const isKeyed = (findField(field, properties)?.key ?? null) !== null
    assert(isBounded || !isKeyed, 'a range of a flattened field has two ends')
    return { field, test: (own) => inRange(own, wanted, term) }
  }
  if (kind === 'terms') {
    const values = new Set((wanted as readonly Term[]).map(term))
    return { field, test: (own) => values.has(own) }
  }
  const { value } = wanted as { value: string }
  if (kind === 'term') {
    const only = term(value)
    return { field, test: (own) => own === only }
  }
  if (kind === 'prefix') return { field, test: (own) => String(own).startsWith(value) }
  const pattern = wildcard(value)
  return { field, test: (own) => pattern.test(String(own)) }
}

function inRange(own: Scalar, range: RangeQuery, term: (value: Term) => Scalar): boolean {
  const { gt, gte, lt, lte } = range
  if (gt !== undefined && compare(own, term(gt)) <= 0) return false
  if (gte !== undefined && compare(own, term(gte)) < 0) return false
  if (lt !== undefined && compare(own, term(lt)) >= 0) return false
  return lte === undefined || compare(own, term(lte)) <= 0
}

function compare(a: Scalar, b: Scalar): number {
  return typeof a === 'string' ? compareText(a, String(b)) : Number(a) - Number(b)
}

/** `*` any text, `?` one character, `\` takes the next one as it is. */
function wildcard(pattern: string): RegExp {
  const text = pattern.replaceAll(/\\(.)|[*?]|[$()+.[\]^{|}]|\\/gsu, (piece, literal?: string) => {
    if (literal !== undefined) return escaped(literal)
    if (piece === '*') return '.*'
    return piece === '?' ? '.' : escaped(piece)
  })
  return new RegExp(`^${text}$`, 'su')
}

const escaped = (text: string): string => text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')

/** The value to sort by: the least of several when rising, else the greatest; null: none. */
export function sortValues(
  source: Source,
  sorts: readonly Sort[],
  { properties, score }: { readonly properties: Properties; readonly score: number },
): (Scalar | null)[] {
  return sorts.map((sort) => {
    const [[field, { order }]] = Object.entries(sort) as [[string, Sort[string]]]
    if (field === '_score') return score
    const values = valuesOf(source, field, properties).toSorted(compare)
    return (order === 'asc' ? values[0] : values.at(-1)) ?? null
  })
}

/** Order of two documents by their sort values; missing ones last either way. */
export function compareSorted(
  a: readonly unknown[],
  b: readonly unknown[],
  sorts: readonly Sort[],
): number {
  for (const [i, sort] of sorts.entries()) {
    const [x, y] = [a[i] as Scalar | null, b[i] as Scalar | null]
    if (x === null || y === null) {
      if (x !== y) return x === null ? 1 : -1
      continue
    }
    const way = compare(x, y)
    if (way !== 0) return Object.values(sort)[0]!.order === 'asc' ? way : -way
  }
  return 0
}

/** Why a strict mapping doesn't take a source; null: it does. */
export function refusalOf(source: Source, properties: Properties, isStrict = true): string | null {
  for (const [name, value] of Object.entries(source)) {
    const mapping = properties[name]
    if (mapping === undefined) {
      if (!isStrict) continue
      return `mapping set to strict, dynamic introduction of [${name}] is not allowed`
    }
    const why = refusalOfValue(name, value, mapping)
    if (why !== null) return why
  }
  return null
}

function refusalOfValue(name: string, value: unknown, mapping: FieldMapping): string | null {
  if (value === null || value === undefined || 'enabled' in mapping) return null
  if (Array.isArray(value)) {
    for (const one of value) {
      const why = refusalOfValue(name, one, mapping)
      if (why !== null) return why
    }
    return null
  }
  const isObject = typeof value === 'object'
  const bad = `failed to parse field [${name}]`
  if ('properties' in mapping) {
    if (!isObject) return bad
    return refusalOf(value as Source, mapping.properties, mapping.dynamic === 'strict')
  }
  if (mapping.type === 'flattened') return isObject ? longTerm(value) : bad
  return isObject || !isOfType(value as Scalar, mapping.type) ? bad : null
}

function isOfType(value: Scalar, type: string): boolean {
  switch (type) {
    case 'text':
      return true
    case 'keyword':
      return Buffer.byteLength(String(value)) <= TERM_BYTES_MAX
    case 'boolean':
      return typeof value === 'boolean'
    case 'date':
      return !Number.isNaN(Date.parse(String(value)))
    default:
      return typeof value === 'number'
  }
}

function longTerm(value: object): string | null {
  for (const [key, held] of Object.entries(value)) {
    for (const one of leaves(held, [])) {
      if (Buffer.byteLength(key + String(one)) + 1 > TERM_BYTES_MAX) return 'immense term'
    }
  }
  return null
}
