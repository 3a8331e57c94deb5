// Type checking of filters: turns the syntax tree into a condition over one node type, with every
// name resolved, quoted values converted and constants computed. Source: CONTRACT Appendix A.

import { article } from './fields.ts'
import { SyntaxMistake } from './lexer.ts'
import { parseFilter, type Expr, type LiteralExpr } from './parser.ts'
import type { CompareOperator, Condition, Operand, Scalar, ValueKind } from '../plan.ts'
import {
  asInstant,
  atMs,
  constant,
  convertQuoted,
  millisOf,
  resolved,
  shownType,
  typedLiteral,
  typedSum,
  typedValue,
  type Moment,
  type Scope,
  type Typed,
} from './typed.ts'

/** The condition that a filter states of nodes of `scope.node`. Throws SyntaxMistake. */
export function typeFilter(text: string, scope: Scope): Condition {
  return condition(parseFilter(text, scope.depthMax), scope)
}

function condition(expr: Expr, scope: Scope): Condition {
  switch (expr.kind) {
    case 'and':
    case 'or':
      return { kind: expr.kind, of: expr.of.map((part) => condition(part, scope)) }
    case 'not':
      return { kind: 'not', of: condition(expr.of, scope) }
    case 'compare':
      return comparison(expr, scope)
    case 'list':
      return expr.operator === 'in' ? membership(expr, scope) : arrayTest(expr, scope)
    case 'text':
      return textTest(expr, scope)
    default:
      return truthOf(typeOf(expr, scope), expr)
  }
}

/** A value that stands where a condition is needed. */
function truthOf(value: Typed, expr: Expr): Condition {
  if (value.type === 'boolean') return unwrapped(value.operand)
  if (value.type === 'member') return { kind: 'true', operand: value.operand }
  throw new SyntaxMistake(
    expr.position,
    `${article(shownType(value))} is no condition; compare it with something`,
  )
}

function unwrapped(operand: Operand): Condition {
  if (operand.kind === 'truth') return operand.of
  if (operand.kind === 'value') return { kind: 'constant', value: operand.value as boolean }
  return { kind: 'true', operand }
}

function typeOf(expr: Expr, scope: Scope): Typed {
  if (expr.kind === 'sum') {
    return typedSum(expr, typeOf(expr.left, scope), typeOf(expr.right, scope))
  }
  if (expr.kind === 'path' || expr.kind === 'literal') return typedValue(expr, scope)
  if (expr.kind === 'now' || expr.kind === 'duration') return typedValue(expr, scope)
  return { type: 'boolean', operand: { kind: 'truth', of: condition(expr, scope) } }
}

type Compare = Extract<Expr, { kind: 'compare' }>

function comparison(expr: Compare, scope: Scope): Condition {
  const { operator } = expr
  const first = typeOf(expr.left, scope)
  const second = typeOf(expr.right, scope)
  if (first.type === 'nothing' || second.type === 'nothing') return nothingTest(expr, scope)
  const left = converted(first, second, expr.left)
  const right = converted(second, first, expr.right)
  if ('moment' in left && 'moment' in right) {
    const sameType = left.type === right.type
    return momentTest(
      operator,
      sameType ? left.moment : asInstant(left),
      sameType ? right.moment : asInstant(right),
      { type: sameType ? left.type : 'instant', position: expr.position },
    )
  }
  const as = commonKind(left, right, expr.position)
  if (as === 'boolean' && operator !== '==' && operator !== '!=') {
    throw new SyntaxMistake(expr.position, `booleans have no order; use == or !=`)
  }
  return {
    kind: 'compare',
    operator,
    as,
    left: operandOf(left, expr.left),
    right: operandOf(right, expr.right),
  }
}

/** A quoted string as what it is compared with. */
function converted(typed: Typed, other: Typed, expr: Expr): Typed {
  return typed.type === 'quoted' ? convertQuoted(typed.value, other, expr.position) : typed
}

function nothingTest(expr: Compare, scope: Scope): Condition {
  if (expr.operator !== '==' && expr.operator !== '!=') {
    throw new SyntaxMistake(expr.position, `nothing has no order; use == or !=`)
  }
  const other = typeOf(expr.left, scope).type === 'nothing' ? expr.right : expr.left
  const equal = expr.operator === '=='
  if (other.kind === 'literal' && other.type === 'nothing') {
    return { kind: 'constant', value: equal }
  }
  const missing = missingTest(other, scope)
  return equal ? missing : { kind: 'not', of: missing }
}

function missingTest(expr: Expr, scope: Scope): Condition {
  if (expr.kind === 'path') return { kind: 'missing', path: resolved(expr, scope).path }
  throw new SyntaxMistake(expr.position, 'only a field can be compared with nothing')
}

/** The kind as which two values of agreeing types are compared. */
function commonKind(left: Typed, right: Typed, position: number): ValueKind | 'any' {
  const a = kindOf(left)
  const b = kindOf(right)
  // A duration is a number of milliseconds to us, never to the caller.
  const agree = (left.type === 'duration') === (right.type === 'duration')
  if (a !== null && b !== null && agree) {
    if (a === 'any') return b
    if (b === 'any' || a === b) return a
  }
  throw new SyntaxMistake(
    position,
    `${article(shownType(left))} can't be compared with ${article(shownType(right))}`,
  )
}

function kindOf(typed: Typed): ValueKind | 'any' | null {
  switch (typed.type) {
    case 'quoted':
    case 'text':
    case 'uuid':
    case 'instant':
    case 'date':
      return 'text'
    case 'number':
    case 'duration':
      return 'number'
    case 'boolean':
      return 'boolean'
    case 'member':
      return 'any'
    default:
      return null
  }
}

/** What executions read. A moment beside a member of dynamic is its canonical text. */
function operandOf(typed: Typed, expr: Expr): Operand {
  if ('operand' in typed) return typed.operand
  if (typed.type === 'quoted') return constant(typed.value)
  if ('moment' in typed && 'at' in typed.moment && typed.moment.offsetMs === 0) {
    return typed.moment.at
  }
  throw new SyntaxMistake(expr.position, `this can't be compared with a member of dynamic`)
}

interface MomentKind {
  readonly type: 'instant' | 'date'
  readonly position: number
}

/**
 * Compares two moments: as text whenever a constant can take the offsets, which an index can serve,
 * else as milliseconds.
 */
function momentTest(
  operator: CompareOperator,
  left: Moment,
  right: Moment,
  kind: MomentKind,
): Condition {
  if ('at' in left && 'at' in right) {
    const shift = right.offsetMs - left.offsetMs
    if (shift === 0) {
      return { kind: 'compare', operator, as: 'text', left: left.at, right: right.at }
    }
    if (right.at.kind === 'value') {
      const at = constant(shifted(right.at, shift, kind))
      return { kind: 'compare', operator, as: 'text', left: left.at, right: at }
    }
    if (left.at.kind === 'value') {
      const at = constant(shifted(left.at, -shift, kind))
      return { kind: 'compare', operator, as: 'text', left: at, right: right.at }
    }
  }
  const [a, b] = [millisOf(left), millisOf(right)]
  return { kind: 'compare', operator, as: 'number', left: a, right: b }
}

function shifted(at: Operand, byMs: number, kind: MomentKind): string {
  const ms = millisOf({ at, offsetMs: byMs })
  const moment = atMs((ms as { value: number }).value, kind.type, kind.position)
  return (moment as { at: { value: string } }).at.value
}

type List = Extract<Expr, { kind: 'list' }>

function membership(expr: List, scope: Scope): Condition {
  const left = typeOf(expr.left, scope)
  if (left.type === '[text]') {
    throw new SyntaxMistake(expr.position, 'a list of text is tested with anyof or allof, not in')
  }
  const tests: Condition[] = []
  const values = expr.values.filter((value) => value.type !== 'nothing')
  if (values.length < expr.values.length) tests.push(missingTest(expr.left, scope))
  for (const [as, group] of grouped(values, left)) {
    tests.push(
      as === 'millis'
        ? { kind: 'in', as: 'number', operand: millisOf(momentIn(left)), values: group }
        : { kind: 'in', as, operand: plainOperand(left, expr.left), values: group },
    )
  }
  return anyOf(tests)
}

function anyOf(tests: readonly Condition[]): Condition {
  if (tests.length === 0) return { kind: 'constant', value: false }
  return tests.length === 1 ? tests[0]! : { kind: 'or', of: tests }
}

function momentIn(typed: Typed): Moment {
  return (typed as Extract<Typed, { moment: Moment }>).moment
}

function plainOperand(left: Typed, expr: Expr): Operand {
  if (left.type === 'nothing' || kindOf(left) === null) {
    throw new SyntaxMistake(
      expr.position,
      `${article(shownType(left))} can't be looked up in a list`,
    )
  }
  return operandOf(left, expr)
}

/** The values of a list by the kind as which they are compared, each value once. */
function grouped(values: readonly LiteralExpr[], left: Typed): Map<ValueKind | 'millis', Scalar[]> {
  const groups = new Map<ValueKind | 'millis', Set<Scalar>>()
  for (const literal of values) {
    const { as, value } = listValue(literal, left)
    const group = groups.get(as) ?? new Set()
    groups.set(as, group.add(value))
  }
  return new Map(Array.from(groups, ([as, group]) => [as, [...group]]))
}

/** One value of a list, compared with `left` as if by ==. */
function listValue(literal: LiteralExpr, left: Typed): { as: ValueKind | 'millis'; value: Scalar } {
  const value = converted(typedLiteral(literal), left, literal)
  if ('moment' in left && 'moment' in value) {
    if (left.type === value.type && 'at' in left.moment && left.moment.offsetMs === 0) {
      return { as: 'text', value: (operandOf(value, literal) as { value: Scalar }).value }
    }
    return { as: 'millis', value: (millisOf(value.moment) as { value: number }).value }
  }
  // A literal's kind is known, so the common one is.
  const as = commonKind(left, value, literal.position) as ValueKind
  return { as, value: (operandOf(value, literal) as { value: Scalar }).value }
}

function arrayTest(expr: List, scope: Scope): Condition {
  const operator = expr.operator === 'allof' ? 'allof' : 'anyof'
  const left = typeOf(expr.left, scope)
  if (left.type !== '[text]' && left.type !== 'member') {
    throw new SyntaxMistake(
      expr.position,
      `${operator} is for lists; ${article(shownType(left))} is tested with in`,
    )
  }
  const { path } = resolved(expr.left as Extract<Expr, { kind: 'path' }>, scope)
  const nothing = expr.values.find((value) => value.type === 'nothing')
  if (nothing) throw new SyntaxMistake(nothing.position, 'a list never holds nothing')
  const element: Typed = left.type === '[text]' ? { type: 'text', operand: constant('') } : left
  const tests: Condition[] = []
  for (const [as, values] of grouped(expr.values, element)) {
    tests.push({ kind: 'array', operator, path, as: as as ValueKind, values })
  }
  if (operator === 'anyof') return anyOf(tests)
  if (tests.length === 0) return { kind: 'array', operator, path, as: 'text', values: [] }
  return tests.length === 1 ? tests[0]! : { kind: 'and', of: tests }
}

function textTest(expr: Extract<Expr, { kind: 'text' }>, scope: Scope): Condition {
  const side = (of: Expr): Operand => {
    const value = typeOf(of, scope)
    if (value.type === 'quoted') return constant(value.value)
    if (value.type === 'text' || value.type === 'uuid' || value.type === 'member') {
      return value.operand
    }
    throw new SyntaxMistake(
      of.position,
      `${expr.operator} is for text, this is ${article(shownType(value))}`,
    )
  }
  return { kind: 'text', operator: expr.operator, left: side(expr.left), right: side(expr.right) }
}
