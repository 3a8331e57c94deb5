// Standing queries by the terms of their filters: which of them may match a document is looked up
// by the document's own values, so a change costs the queries that it touches, not all that stand.
// It never leaves out one that matches; those that it gives are asked themselves. Source: CONTRACT
// 1.10.

import { type Doc, compareText, readPath } from '../../../protocol/graph/evaluate.ts'
import type {
  CompareOperator,
  Condition,
  FieldPath,
  Operand,
  Scalar,
} from '../../../protocol/graph/plan.ts'

/** One thing that a document must have for a filter to be true. */
type Term = ValueTerm | BoundTerm

interface ValueTerm {
  readonly kind: 'equal' | 'member'
  readonly path: FieldPath
  readonly value: Scalar
}

interface BoundTerm {
  readonly kind: 'above' | 'below'
  readonly path: FieldPath
  /** A document's value lies beyond it, or is it. */
  readonly bound: string | number
}

function isBound(term: Term): term is BoundTerm {
  return term.kind === 'above' || term.kind === 'below'
}

/** Values at one path, and who waits for them. */
interface PathTerms<Q> {
  readonly path: FieldPath
  readonly equal: Map<Scalar, Set<Q>>
  readonly member: Map<Scalar, Set<Q>>
  readonly above: Bounds<Q>
  readonly below: Bounds<Q>
}

export class TermIndex<Q extends object> {
  readonly #byPath = new Map<string, PathTerms<Q>>()
  /** Queries whose filters have no such terms: they are asked each time. */
  readonly #always = new Set<Q>()
  readonly #terms = new Map<Q, readonly Term[] | null>()

  get size(): number {
    return this.#terms.size
  }

  /** How many are asked whatever the document. */
  get residual(): number {
    return this.#always.size
  }

  /** `filter` null: every document matches. A query is in it once. */
  add(query: Q, filter: Condition | null): this {
    const terms = filter === null ? null : termsOf(filter, this.#costOf)
    this.#terms.set(query, terms)
    if (terms === null) this.#always.add(query)
    else for (const term of terms) this.#enter(query, term)
    return this
  }

  delete(query: Q): void {
    const terms = this.#terms.get(query)
    if (terms === undefined) return
    this.#terms.delete(query)
    this.#always.delete(query)
    for (const term of terms ?? []) this.#leave(query, term)
  }

  /** Those that may match, each once. */
  candidates(doc: Doc): ReadonlySet<Q> {
    const found = new Set<Q>()
    this.collect(doc, found)
    return found
  }

  /** The same, added to others. */
  collect(doc: Doc, found: Set<Q>): void {
    addAll(found, this.#always)
    for (const { path, equal, member, above, below } of this.#byPath.values()) {
      const value = readPath(doc, path)
      if (Array.isArray(value)) {
        if (member.size > 0) for (const one of value) addAll(found, member.get(one as Scalar))
      } else if (isScalar(value)) {
        addAll(found, equal.get(value))
        if (typeof value === 'boolean') continue
        above.collect(value, found)
        below.collect(value, found)
      }
    }
  }

  /**
   * How often queries that wait at these terms are likely to be asked: a range is passed by many
   * values, and where many wait one value asks them all.
   */
  readonly #costOf = (terms: readonly Term[]): number => {
    let cost = 0
    for (const term of terms) {
      const known = this.#byPath.get(JSON.stringify(term.path))
      cost += isBound(term) ? RANGE_COST : 1 + (known?.[term.kind].get(term.value)?.size ?? 0)
    }
    return cost
  }

  #enter(query: Q, term: Term): void {
    const key = JSON.stringify(term.path)
    const known = this.#byPath.get(key) ?? newPath<Q>(term.path)
    this.#byPath.set(key, known)
    if (isBound(term)) known[term.kind].add(term.bound, query)
    else {
      const set = known[term.kind].get(term.value) ?? new Set()
      known[term.kind].set(term.value, set.add(query))
    }
  }

  #leave(query: Q, term: Term): void {
    const key = JSON.stringify(term.path)
    const known = this.#byPath.get(key)
    if (known === undefined) return
    if (isBound(term)) known[term.kind].delete(term.bound, query)
    else {
      const set = known[term.kind].get(term.value)
      set?.delete(query)
      if (set?.size === 0) known[term.kind].delete(term.value)
    }
    const { equal, member, above, below } = known
    if (equal.size + member.size + above.size + below.size === 0) this.#byPath.delete(key)
  }
}

function newPath<Q>(path: FieldPath): PathTerms<Q> {
  const [equal, member] = [new Map<Scalar, Set<Q>>(), new Map<Scalar, Set<Q>>()]
  return { path, equal, member, above: new Bounds('above'), below: new Bounds('below') }
}

/** Queries by a bound: a value finds those whose bound it has passed. */
class Bounds<Q> {
  readonly #side: 'above' | 'below'
  /** Numbers and texts apart, each from the bound that most values pass. */
  readonly #numbers: { bound: number; query: Q }[] = []
  readonly #texts: { bound: string; query: Q }[] = []

  constructor(side: 'above' | 'below') {
    this.#side = side
  }

  get size(): number {
    return this.#numbers.length + this.#texts.length
  }

  add(bound: string | number, query: Q): void {
    if (typeof bound === 'number') this.#numbers.splice(this.#end(bound), 0, { bound, query })
    else this.#texts.splice(this.#end(bound), 0, { bound, query })
  }

  delete(bound: string | number, query: Q): void {
    const list = typeof bound === 'number' ? this.#numbers : this.#texts
    // Equal bounds stand together, before the place where one more would come.
    for (let i = this.#end(bound) - 1; i >= 0 && list[i]!.bound === bound; i--) {
      if (list[i]!.query !== query) continue
      list.splice(i, 1)
      return
    }
  }

  collect(value: string | number, into: Set<Q>): void {
    const list = typeof value === 'number' ? this.#numbers : this.#texts
    const end = this.#end(value)
    for (let i = 0; i < end; i++) into.add(list[i]!.query)
  }

  /** How many bounds the value has passed or is at. */
  #end(value: string | number): number {
    const list = typeof value === 'number' ? this.#numbers : this.#texts
    const sign = this.#side === 'above' ? 1 : -1
    let [from, to] = [0, list.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (sign * compare(list[middle]!.bound, value) <= 0) from = middle + 1
      else to = middle
    }
    return from
  }
}

function compare(a: string | number, b: string | number): number {
  return typeof a === 'string' ? compareText(a, b as string) : a - (b as number)
}

function addAll<Q>(into: Set<Q>, queries: ReadonlySet<Q> | undefined): void {
  if (queries !== undefined) for (const query of queries) into.add(query)
}

function isScalar(value: unknown): value is Scalar {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

// --- the terms of a filter ----------------------------------------------------------------------

/** As many queries at one value as a range is worth. */
const RANGE_COST = 1_000

type CostOf = (terms: readonly Term[]) => number

/** One of these must hold where the filter does; null: it can't be told by terms. */
function termsOf(condition: Condition, costOf: CostOf): readonly Term[] | null {
  switch (condition.kind) {
    case 'constant':
      return condition.value ? null : []
    case 'and':
      return cheapest(condition.of, costOf)
    case 'or': {
      const all = condition.of.map((one) => termsOf(one, costOf))
      return all.includes(null) ? null : all.flatMap((terms) => terms!)
    }
    case 'compare':
      return condition.as === 'any' ? null : compareTerms(condition)
    case 'in':
      return equalTo(condition.operand, condition.values)
    case 'true':
      return equalTo(condition.operand, [true])
    case 'array': {
      const { operator, path, values } = condition
      const needed = operator === 'anyof' ? values : values.slice(0, 1)
      return needed.length === 0 ? null : needed.map((value) => ({ kind: 'member', path, value }))
    }
    case 'not':
    case 'missing':
    case 'text':
      return null
  }
}

/** The terms of one of them, all of which must hold. */
function cheapest(conditions: readonly Condition[], costOf: CostOf): readonly Term[] | null {
  let best: readonly Term[] | null = null
  for (const condition of conditions) {
    const terms = termsOf(condition, costOf)
    if (terms !== null && (best === null || costOf(terms) < costOf(best))) best = terms
  }
  return best
}

function equalTo(operand: Operand, values: readonly Scalar[]): readonly Term[] | null {
  if (operand.kind !== 'field') return null
  const { path } = operand
  return values.map((value) => ({ kind: 'equal', path, value }))
}

const TURNED: Readonly<Record<CompareOperator, CompareOperator>> = {
  ...{ '==': '==', '!=': '!=', '<': '>', '<=': '>=', '>': '<', '>=': '<=' },
}

function compareTerms(condition: Extract<Condition, { kind: 'compare' }>): readonly Term[] | null {
  const { left, right, operator } = condition
  if (left.kind === 'value' && right.kind === 'field') {
    return compareTerms({ ...condition, left: right, right: left, operator: TURNED[operator] })
  }
  if (left.kind !== 'field' || right.kind !== 'value' || operator === '!=') return null
  if (operator === '==') return equalTo(left, [right.value])
  const { path } = left
  const bound = right.value
  if (typeof bound === 'boolean') return []
  return [{ kind: operator.startsWith('>') ? 'above' : 'below', path, bound }]
}
