// What an operation must have been answered: a repeat as the first time, byte for byte; another
// body under the same key not at all; a number goes to one order of all that ask for it; nothing
// that can be done is rejected. Source: PROTOCOL 4.2 (F30, F31, F34), CONTRACT 0 "Idempotency".

import type { OperationHistory, Operation } from '../operation-history.ts'
import { groupBy } from './time.ts'

export function checkAnswers(history: OperationHistory): string[] {
  const { operations } = history
  const found: string[] = []
  const made = new Map<string, number>()
  for (const operation of operations) {
    for (const other of operation.otherAnswers) {
      found.push(
        `F30: operation ${operation.id} was answered ${operation.answer.slice(0, 200)}, ` +
          `a repeat of it ${other.slice(0, 200)}`,
      )
    }
    found.push(...(operation.outcome === 'ok' ? checkAnswer(operation, operations) : []))
    if (operation.op === 'create' && operation.outcome === 'ok' && !operation.rejected) {
      made.set(operation.orderNumber, (made.get(operation.orderNumber) ?? 0) + 1)
    }
  }
  for (const [number, times] of made) {
    if (times > 1) found.push(`F34: ${times} orders were made under ${number}`)
  }
  return [...found, ...checkLosers(operations)]
}

function checkAnswer(operation: Operation, all: readonly Operation[]): string[] {
  const { id, op, of, status, answer, rejected } = operation
  const said = `operation ${id} (${op}) was answered ${answer.slice(0, 200)}`
  const first = of === null ? null : all[of]!
  switch (op) {
    case 'repeat':
      return answer === first!.answer ? [] : [`F30: ${said}, not ${first!.answer.slice(0, 200)}`]
    case 'other-body':
      return status === 422 && answer.includes('IDEMPOTENCY_MISMATCH') ? [] : [`F30: ${said}`]
    case 'reject':
      return rejected ? [] : [`F31: ${said}, though a part of it can't be done`]
    case 'create':
      return rejected && !answer.includes('ALREADY_EXISTS') ? [`F34: ${said}`] : []
    default:
      return rejected ? [`K1: ${said}, though nothing was wrong with it`] : []
  }
}

/** Who is told that a number is taken has somebody who took it, or may have. */
function checkLosers(operations: readonly Operation[]): string[] {
  const creates = operations.filter(({ op }) => op === 'create')
  const found: string[] = []
  for (const [number, of] of groupBy(creates, ({ orderNumber }) => orderNumber)) {
    const loser = of.find(({ outcome, rejected }) => outcome === 'ok' && rejected)
    const may = of.some(({ outcome, rejected }) => outcome !== 'fail' && !rejected)
    if (loser && !may) found.push(`F34: nobody got ${number}, which was refused to ${loser.id}`)
  }
  return found
}
