// How a command is refused: one way to say no, with what, where and what would be right. A decision
// turns a refusal into the whole batch's answer. Source: CONTRACT 1.13.

import { type ErrorItem, RequestError } from '../../protocol/errors.ts'

/** `member`: the command's member that is wrong. */
export function invalid(message: string, member?: string): never {
  throw new RequestError('INVALID_COMMAND', message, member === undefined ? undefined : { member })
}

export function invalidState(message: string): never {
  throw new RequestError('INVALID_STATE', message)
}

/** Refuses a command that has none of `members`, or several: exactly one is to be sent. */
export function onlyOne(members: Readonly<Record<string, number | undefined>>): void {
  const names = Object.keys(members)
  const sent = names.filter((name) => members[name] !== undefined)
  if (sent.length === 1) return
  const found = sent.length === 0 ? 'none of them is there' : `${sent.join(' and ')} are there`
  invalid(`exactly one of ${names.join(', ')} is to be sent; ${found}`, sent[1] ?? names[0])
}

/**
 * A refusal with items that are already made: a command's with its place, a rule's with its code.
 */
export class Refused extends Error {
  readonly errors: readonly ErrorItem[]
  constructor(errors: readonly ErrorItem[]) {
    super(errors[0]?.message)
    this.errors = errors
  }
}
