// A condition of a plan as people read it: the filter's own words, with the kind by which each
// field is compared. Source: CONTRACT 1.4 "Explain", Appendix A.

import type { Condition, FieldPath, Operand, Scalar } from '../plan.ts'

/** `hidden`: every constant is a question mark. */
export type Constants = 'shown' | 'hidden'

/** The condition in words, without a bound. */
export function conditionText(condition: Condition, constants: Constants): string {
  const text = (of: Condition): string => conditionText(of, constants)
  const operand = (of: Operand): string => operandText(of, constants)
  switch (condition.kind) {
    case 'constant':
      return String(condition.value)
    case 'and':
    case 'or':
      return condition.of.length === 0
        ? String(condition.kind === 'and')
        : condition.of.map((part) => inner(part, text)).join(` ${condition.kind} `)
    case 'not':
      return `not (${text(condition.of)})`
    case 'compare': {
      const { left, operator, right, as } = condition
      return `${operand(left)} ${operator} ${operand(right)} (as ${as})`
    }
    case 'missing':
      return `${pathText(condition.path)} == nothing`
    case 'in':
      return `${operand(condition.operand)} in ${list(condition.values, constants)}`
    case 'array':
      return `${pathText(condition.path)} ${condition.operator} ${list(condition.values, constants)}`
    case 'text':
      return `${operand(condition.left)} ${condition.operator} ${operand(condition.right)}`
    case 'true':
      return operand(condition.operand)
  }
}

function inner(part: Condition, text: (of: Condition) => string): string {
  return part.kind === 'and' || part.kind === 'or' ? `(${text(part)})` : text(part)
}

function operandText(operand: Operand, constants: Constants): string {
  switch (operand.kind) {
    case 'value':
      return constantText(operand.value, constants)
    case 'field':
      return `${pathText(operand.path)}:${operand.type}`
    case 'sum': {
      const { left, operator, right } = operand
      return `(${operandText(left, constants)} ${operator} ${operandText(right, constants)})`
    }
    case 'millis':
      return `milliseconds(${operandText(operand.of, constants)})`
    case 'midnight':
      return `midnight(${operandText(operand.of, constants)})`
    case 'truth':
      return `(${conditionText(operand.of, constants)})`
  }
}

/** Constants that are written of a list. */
const LISTED = 16

function list(values: readonly Scalar[], constants: Constants): string {
  if (constants === 'hidden') return '[?]'
  const some = values.slice(0, LISTED).map((value) => constantText(value, constants))
  if (values.length > LISTED) some.push(`… (${values.length})`)
  return `[${some.join(', ')}]`
}

const constantText = (value: Scalar, constants: Constants): string =>
  constants === 'hidden' ? '?' : JSON.stringify(value)

/** As a caller writes it. */
export function pathText([first, ...members]: FieldPath): string {
  if (first === 'dynamic') return first + members.map((name) => `->'${name}'`).join('')
  return [first!, ...members].join('.')
}

/** A text, with a mark where it was cut. */
export const cutText = (text: string, max: number): string =>
  text.length <= max ? text : `${text.slice(0, max - 1)}…`
