// The fields that a condition looks at. Source: CONTRACT 1.4, KONTOR_GRAPH_FILTER_FIELDS.

import type { Condition, FieldPath, Operand } from '../plan.ts'

/** Every field that the truth of the condition may depend on, as often as it stands there. */
export function* fieldsOf(condition: Condition): Generator<FieldPath> {
  switch (condition.kind) {
    case 'constant':
      return
    case 'and':
    case 'or':
      for (const part of condition.of) yield* fieldsOf(part)
      return
    case 'not':
      yield* fieldsOf(condition.of)
      return
    case 'missing':
    case 'array':
      yield condition.path
      return
    case 'compare':
    case 'text':
      yield* operandFields(condition.left)
      yield* operandFields(condition.right)
      return
    case 'in':
    case 'true':
      yield* operandFields(condition.operand)
  }
}

function* operandFields(operand: Operand): Generator<FieldPath> {
  switch (operand.kind) {
    case 'value':
      return
    case 'field':
      yield operand.path
      return
    case 'sum':
      yield* operandFields(operand.left)
      yield* operandFields(operand.right)
      return
    case 'millis':
    case 'midnight':
      yield* operandFields(operand.of)
      return
    case 'truth':
      yield* fieldsOf(operand.of)
  }
}
