// Conditions and sort keys evaluated on a node's document, in memory: for `query` messages, history
// nodes, live queries and the index's memory twin. It says what SQL has to say too. Source:
// CONTRACT 1.4, Appendix A.

import { assert } from '../errors.ts'
import type {
  CompareOperator,
  Condition,
  FieldPath,
  Operand,
  Scalar,
  SortKey,
  ValueKind,
} from './plan.ts'

export type Doc = Readonly<Record<string, unknown>>

/** A condition ready to be asked of documents. */
export type Test = (doc: Doc) => boolean

/** Reads a value of the kind that was asked for; undefined: missing, or of another kind. */
type Read = (doc: Doc) => Scalar | undefined

type Kind = ValueKind | 'any'

/** The value at a path, undefined when there is none. Null and absent are both missing. */
export function readPath(doc: Doc, path: FieldPath): unknown {
  let value: unknown = doc
  for (const name of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    if (!Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value ?? undefined
}

/** Order of two texts by Unicode code point (JavaScript's own `<` goes by UTF-16 unit). */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    let x = a.charCodeAt(i)
    let y = b.charCodeAt(i)
    if (x === y) continue
    // Surrogates stand for the code points above all others, but sort below U+E000 by unit.
    if (x >= 0xd800 && y >= 0xd800) {
      x = x >= 0xe000 ? x - 0x800 : x + 0x2000
      y = y >= 0xe000 ? y - 0x800 : y + 0x2000
    }
    return x - y
  }
  return a.length - b.length
}

/** Order of nodes that nothing else tells apart. */
export function compareIds(
  a: { readonly id: string; readonly actorId: string },
  b: { readonly id: string; readonly actorId: string },
): number {
  return compareText(a.id, b.id) || compareText(a.actorId, b.actorId)
}

/** Order of a phrase's hits: the best first; no order where there is no phrase. */
export function compareRanks(a: { readonly rank?: number }, b: { readonly rank?: number }): number {
  return (b.rank ?? 0) - (a.rank ?? 0)
}

export function compileCondition(condition: Condition): Test {
  switch (condition.kind) {
    case 'constant':
      return () => condition.value
    case 'and': {
      const tests = condition.of.map(compileCondition)
      return (doc) => tests.every((test) => test(doc))
    }
    case 'or': {
      const tests = condition.of.map(compileCondition)
      return (doc) => tests.some((test) => test(doc))
    }
    case 'not': {
      const test = compileCondition(condition.of)
      return (doc) => !test(doc)
    }
    case 'compare':
      return compileCompare(condition)
    case 'missing':
      return (doc) => readPath(doc, condition.path) === undefined
    case 'in': {
      const read = reader(condition.operand, condition.as)
      const values = new Set(condition.values)
      return (doc) => {
        const value = read(doc)
        return value !== undefined && values.has(value)
      }
    }
    case 'array':
      return compileArray(condition)
    case 'text':
      return compileText(condition)
    case 'true': {
      const read = reader(condition.operand, 'boolean')
      return (doc) => read(doc) === true
    }
  }
}

function compileCompare(condition: Extract<Condition, { kind: 'compare' }>): Test {
  const { operator, as } = condition
  const left = reader(condition.left, as)
  const right = reader(condition.right, as)
  return (doc) => {
    const a = left(doc)
    if (a === undefined) return false
    const b = right(doc)
    return b !== undefined && typeof a === typeof b && holds(operator, a, b)
  }
}

function holds(operator: CompareOperator, a: Scalar, b: Scalar): boolean {
  if (operator === '==') return a === b
  if (operator === '!=') return a !== b
  if (typeof a === 'boolean') return false
  const order = typeof a === 'string' ? compareText(a, b as string) : a - (b as number)
  switch (operator) {
    case '<':
      return order < 0
    case '<=':
      return order <= 0
    case '>':
      return order > 0
    case '>=':
      return order >= 0
  }
}

function compileArray(condition: Extract<Condition, { kind: 'array' }>): Test {
  const { operator, path, values } = condition
  return (doc) => {
    const list = readPath(doc, path)
    if (!Array.isArray(list)) return false
    return operator === 'anyof'
      ? values.some((value) => list.includes(value))
      : values.every((value) => list.includes(value))
  }
}

function compileText(condition: Extract<Condition, { kind: 'text' }>): Test {
  const { operator } = condition
  const left = reader(condition.left, 'text')
  const right = reader(condition.right, 'text')
  return (doc) => {
    const text = left(doc)
    const part = right(doc)
    if (typeof text !== 'string' || typeof part !== 'string') return false
    if (operator === 'contains') return text.includes(part)
    return operator === 'startsWith' ? text.startsWith(part) : text.endsWith(part)
  }
}

function reader(operand: Operand, as: Kind): Read {
  switch (operand.kind) {
    case 'value':
      return () => operand.value
    case 'field': {
      const { path } = operand
      return (doc) => ofKind(readPath(doc, path), as)
    }
    case 'sum': {
      const left = reader(operand.left, 'number')
      const right = reader(operand.right, 'number')
      const sign = operand.operator === '+' ? 1 : -1
      return (doc) => {
        const a = left(doc)
        const b = right(doc)
        if (a === undefined || b === undefined) return undefined
        return ofKind((a as number) + sign * (b as number), 'number')
      }
    }
    case 'millis': {
      const read = reader(operand.of, 'text')
      return (doc) => {
        const text = read(doc)
        return text === undefined ? undefined : ofKind(Date.parse(text as string), 'number')
      }
    }
    case 'midnight': {
      const read = reader(operand.of, 'text')
      return (doc) => {
        const text = read(doc)
        return text === undefined ? undefined : `${text as string}T00:00:00.000Z`
      }
    }
    case 'truth':
      return compileCondition(operand.of)
  }
}

function ofKind(value: unknown, as: Kind): Scalar | undefined {
  switch (typeof value) {
    case 'string':
      return as === 'text' || as === 'any' ? value : undefined
    case 'number':
      return (as === 'number' || as === 'any') && !Number.isNaN(value) ? value : undefined
    case 'boolean':
      return as === 'boolean' || as === 'any' ? value : undefined
    default:
      return undefined
  }
}

const RANK: Readonly<Record<string, number>> = { boolean: 0, number: 1, string: 2 }

/** What a sort key reads; undefined: missing. */
export function readSortValue(doc: Doc, { path, as }: SortKey): Scalar | undefined {
  return ofKind(readPath(doc, path), as)
}

/** Compares two documents by sort keys. Returns 0 when all are equal: the caller breaks the tie. */
export function compareDocs(keys: readonly SortKey[], a: Doc, b: Doc): number {
  for (const key of keys) {
    const x = readSortValue(a, key)
    const y = readSortValue(b, key)
    if (x === undefined || y === undefined) {
      // Missing values come last in both directions.
      if (x === y) continue
      return x === undefined ? 1 : -1
    }
    const order = compareScalars(x, y)
    if (order !== 0) return key.direction === 'asc' ? order : -order
  }
  return 0
}

function compareScalars(a: Scalar, b: Scalar): number {
  if (typeof a !== typeof b) return RANK[typeof a]! - RANK[typeof b]!
  if (typeof a === 'string') return compareText(a, b as string)
  return Number(a) - Number(b)
}

/** Number of the place a node has among its siblings; nodes without one come last. */
export function placeOf(doc: Doc, position: string | null): number {
  const place = position === null ? undefined : doc[position]
  return typeof place === 'number' ? place : Number.MAX_VALUE
}

/** The fields of a document as the answer shows them; a field that is missing is null. */
export function pickFields(doc: Doc, fields: readonly FieldPath[]): Record<string, unknown> {
  const picked: Record<string, unknown> = {}
  for (const path of fields) {
    if (path.length === 1) picked[path[0]!] = doc[path[0]!] ?? null
    else pickNested(doc, path, picked)
  }
  return picked
}

function pickNested(doc: Doc, path: FieldPath, picked: Record<string, unknown>): void {
  let into = picked
  for (let i = 0; i < path.length - 1; i++) {
    const name = path[i]!
    const there = into[name]
    assert(there === undefined || typeof there === 'object', 'a field is picked whole and in part')
    into = (there ?? (into[name] = {})) as Record<string, unknown>
  }
  into[path.at(-1)!] = readPath(doc, path) ?? null
}
