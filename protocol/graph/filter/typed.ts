// Typed expressions: what a piece of a filter is (a field, a constant, a sum) and of which type,
// with arithmetic worked out as far as constants go. Source: CONTRACT Appendix A.

import { isUuid, toUuid } from '../../ids.ts'
import { nearNames } from '../../near-names.ts'
import { article, FieldMistake, type MayName, resolveField } from './fields.ts'
import { DAY_MS, dateMs, instantMs, instantText } from './instants.ts'
import { SyntaxMistake } from './lexer.ts'
import type { Expr, LiteralExpr } from './parser.ts'
import type { FieldPath, Operand, OperandType, ValueKind } from '../plan.ts'
import type { GraphNode } from '../schema.ts'

/** A point in time as far as it is known: text plus a constant, or plain milliseconds. */
export type Moment =
  | { readonly at: Operand; readonly offsetMs: number }
  | { readonly millis: Operand }

export type Typed =
  /** A quoted string: text, unless the other side makes it a timestamp, date or UUID. */
  | { readonly type: 'quoted'; readonly value: string }
  | {
      readonly type: ValueKind | 'uuid' | 'duration'
      readonly operand: Operand
      /** All that an enum field may be. */
      readonly values?: readonly string[] | undefined
    }
  | { readonly type: 'instant' | 'date'; readonly moment: Moment }
  | { readonly type: 'member'; readonly operand: Operand; readonly path: FieldPath }
  /** Fields that only `== nothing` and, for lists, anyof and allof are for. */
  | { readonly type: '[text]' | 'object' | 'dynamic' | 'value' | 'dimensions' }
  | { readonly type: 'nothing' }

/** What the typing of one filter needs. */
export interface Scope {
  readonly node: GraphNode
  readonly nowMs: number
  readonly depthMax: number
  readonly mayName: MayName
}

export function fieldOperand(path: FieldPath, type: OperandType): Operand {
  return { kind: 'field', path, type }
}

export const constant = (value: string | number | boolean): Operand => ({ kind: 'value', value })

/** Types everything but comparisons, which typing.ts hands in as booleans. */
export function typedValue(expr: Expr, scope: Scope): Typed {
  switch (expr.kind) {
    case 'path':
      return typedPath(expr, scope)
    case 'literal':
      return typedLiteral(expr)
    case 'now':
      return { type: 'instant', moment: atMs(scope.nowMs, 'instant', expr.position) }
    case 'duration':
      return { type: 'duration', operand: constant(expr.ms) }
    default:
      throw new SyntaxMistake(expr.position, 'a value is needed here')
  }
}

function typedPath(expr: Extract<Expr, { kind: 'path' }>, scope: Scope): Typed {
  const { path, type, values, isMember } = resolved(expr, scope)
  const operand = (as: OperandType): Operand => fieldOperand(path, isMember ? 'dynamic' : as)
  switch (type) {
    case 'text':
    case 'enum': {
      // A word that is none of them is told with them: not to who isn't shown the field.
      const told = scope.mayName(path) ? values : undefined
      return { type: 'text', operand: operand('text'), values: told }
    }
    case 'uuid':
      return { type: 'uuid', operand: operand('text') }
    case 'number':
    case 'boolean':
      return { type, operand: operand(type) }
    case 'instant':
    case 'date':
      return { type, moment: { at: operand(type), offsetMs: 0 } }
    case 'member':
      return { type, operand: fieldOperand(path, 'dynamic'), path }
    default:
      return { type }
  }
}

export function resolved(expr: Extract<Expr, { kind: 'path' }>, scope: Scope) {
  try {
    return resolveField(expr, scope.node, scope.mayName)
  } catch (mistake) {
    if (mistake instanceof FieldMistake) throw new SyntaxMistake(expr.position, mistake.message)
    throw mistake
  }
}

/** Literals need no names. */
export function typedLiteral(expr: LiteralExpr): Typed {
  switch (expr.type) {
    case 'text':
      return { type: 'quoted', value: expr.value as string }
    case 'number':
    case 'boolean':
      return { type: expr.type, operand: constant(expr.value as number | boolean) }
    case 'uuid':
      return { type: 'uuid', operand: constant(expr.value as string) }
    case 'date':
    case 'timestamp': {
      const type = expr.type === 'date' ? 'date' : 'instant'
      return { type, moment: momentOf(expr.value as string, type, expr.position) }
    }
    case 'nothing':
      return { type: 'nothing' }
  }
}

/** Reads text as a date or an instant; a date is also an instant, its midnight (UTC). */
export function momentOf(text: string, type: 'instant' | 'date', position: number): Moment {
  const day = dateMs(text)
  if (day !== null) return atMs(day, type, position)
  const ms = type === 'instant' ? instantMs(text) : null
  if (ms !== null) return atMs(ms, type, position)
  const right =
    type === 'date'
      ? 'a date, as in 2026-01-31'
      : 'a timestamp, as in 2026-01-31T12:00:00Z, or a date'
  throw new SyntaxMistake(position, `${JSON.stringify(text.slice(0, 40))} is not ${right}`)
}

/** A constant moment. */
export function atMs(ms: number, type: 'instant' | 'date', position: number): Moment {
  const text = instantText(ms)
  if (text === null) throw new SyntaxMistake(position, 'the time is outside the years 0 to 9999')
  return { at: constant(type === 'date' ? text.slice(0, 10) : text), offsetMs: 0 }
}

/** A quoted string as what the other side is: text, UUID, timestamp or date. */
export function convertQuoted(value: string, to: Typed, position: number): Typed {
  switch (to.type) {
    case 'instant':
    case 'date':
      return convertMoment(value, to.type, position)
    case 'uuid': {
      const uuid = toUuid(value)
      // A field may hold ids that are not UUIDs only if its type says text.
      if (uuid !== null && isUuid(uuid)) return { type: 'uuid', operand: constant(uuid) }
      throw new SyntaxMistake(position, `${JSON.stringify(value.slice(0, 40))} is not a UUID`)
    }
    case 'text':
      checkEnum(value, to.values, position)
      return { type: 'text', operand: constant(value) }
    default:
      return { type: 'text', operand: constant(value) }
  }
}

/** What an enum field can never be is a slip of the pen: it would find nothing, and say nothing. */
function checkEnum(value: string, values: readonly string[] | undefined, position: number): void {
  if (values === undefined || values.includes(value)) return
  const shown = JSON.stringify(value.slice(0, 40))
  const near = nearNames(value, values)
  const meant = near.length === 0 ? '' : `; did you mean ${near.join(' or ')}?`
  throw new SyntaxMistake(position, `${shown} is none of ${values.join(', ')}${meant}`)
}

function convertMoment(value: string, type: 'instant' | 'date', position: number): Typed {
  // A timestamp beside a date field: the date is taken as its midnight.
  if (type === 'date' && instantMs(value) !== null) {
    return { type: 'instant', moment: momentOf(value, 'instant', position) }
  }
  return { type, moment: momentOf(value, type, position) }
}

/** Milliseconds of a moment, a number. */
export function millisOf(moment: Moment): Operand {
  if ('millis' in moment) return moment.millis
  const { at, offsetMs } = moment
  if (at.kind === 'value') return constant(Date.parse(isoOf(at.value as string)) + offsetMs)
  return sum('+', { kind: 'millis', of: at }, constant(offsetMs))
}

const isoOf = (text: string): string => (text.length === 10 ? `${text}T00:00:00.000Z` : text)

/** A date as the instant of its midnight. */
export function asInstant(typed: Extract<Typed, { moment: Moment }>): Moment {
  const { moment } = typed
  if (typed.type === 'instant' || 'millis' in moment) return moment
  const { at, offsetMs } = moment
  if (at.kind === 'value') return { at: constant(isoOf(at.value as string)), offsetMs }
  return { at: { kind: 'midnight', of: at }, offsetMs }
}

/** Sum of two numbers, computed when both are known. */
export function sum(operator: '+' | '-', left: Operand, right: Operand): Operand {
  if (left.kind === 'value' && right.kind === 'value') {
    const a = left.value as number
    const b = right.value as number
    return constant(operator === '+' ? a + b : a - b)
  }
  if (right.kind === 'value' && right.value === 0) return left
  return { kind: 'sum', operator, left, right }
}

type SumExpr = Extract<Expr, { kind: 'sum' }>

/** Types `left + right` and `left - right`. */
export function typedSum(expr: SumExpr, first: Typed, second: Typed): Typed {
  const { operator } = expr
  const left = inSum(first, expr.left.position)
  const right = inSum(second, expr.right.position)
  if (left.type === 'number' && right.type === 'number') {
    return { type: 'number', operand: sum(operator, left.operand, right.operand) }
  }
  if (left.type === 'duration' && right.type === 'duration') {
    return { type: 'duration', operand: sum(operator, left.operand, right.operand) }
  }
  if ('moment' in left && right.type === 'duration') return moved(expr, left, right.operand)
  if (operator === '+' && left.type === 'duration' && 'moment' in right) {
    return moved(expr, right, left.operand)
  }
  if (operator === '-' && 'moment' in left && 'moment' in right) {
    return { type: 'duration', operand: sum('-', millisOf(left.moment), millisOf(right.moment)) }
  }
  const verb = operator === '+' ? 'added to' : 'subtracted from'
  const [what, whereTo] = operator === '+' ? [left, right] : [right, left]
  throw new SyntaxMistake(
    expr.position,
    `${article(shownType(what))} can't be ${verb} ${article(shownType(whereTo))}`,
  )
}

/** In a sum a member of dynamic is a number, and a quoted string a timestamp or a date. */
function inSum(typed: Typed, position: number): Exclude<Typed, { type: 'quoted' | 'member' }> {
  if (typed.type === 'member') return { type: 'number', operand: typed.operand }
  if (typed.type !== 'quoted') return typed
  const type = dateMs(typed.value) === null ? 'instant' : 'date'
  return { type, moment: momentOf(typed.value, type, position) }
}

function moved(expr: SumExpr, start: Extract<Typed, { moment: Moment }>, by: Operand): Typed {
  const { type, moment } = start
  const known = by.kind === 'value'
  if (type === 'date' && !(known && (by.value as number) % DAY_MS === 0)) {
    throw new SyntaxMistake(expr.position, 'a date is moved by whole days or weeks only')
  }
  if (!known || 'millis' in moment) {
    return { type, moment: { millis: sum(expr.operator, millisOf(moment), by) } }
  }
  const offsetMs = moment.offsetMs + (expr.operator === '+' ? 1 : -1) * (by.value as number)
  if (moment.at.kind !== 'value') return { type, moment: { at: moment.at, offsetMs } }
  const ms = Date.parse(isoOf(moment.at.value as string)) + offsetMs
  return { type, moment: atMs(ms, type, expr.position) }
}

export function shownType(typed: Typed): string {
  return typed.type === 'quoted' ? 'text' : typed.type
}
