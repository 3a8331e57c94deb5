// The shape of commands, each checked by its own schema at the edge, with messages that say what is
// wrong, where, and what would be right. Source: CONTRACT 1.13.

import { type ErrorItem, errorItem } from '../../protocol/errors.ts'
import { suggestion } from '../../protocol/near-names.ts'
import { compileShape, type ShapeCheck } from '../../protocol/json/validation.ts'
import type { Command, CommandShape } from './command.ts'
import { jsonProblem } from './json.ts'

export interface CommandChecks {
  /** What is wrong with the shape of one command, or null. `index`: its place in the batch. */
  readonly checkCommand: (command: unknown, index: number) => ErrorItem | null
  /** The same of a batch; stops at the first. */
  readonly checkCommands: (commands: readonly unknown[]) => readonly ErrorItem[] | null
}

/** Checks of these commands; `later` are known by name and answer NOT_AVAILABLE. */
export function commandChecks(
  table: ReadonlyMap<string, CommandShape>,
  later: ReadonlySet<string>,
): CommandChecks {
  const checks = new Map<string, ShapeCheck>(
    [...table.values()].map(({ type, schema }) => [type, compileShape(schema)]),
  )
  const checkCommand = (command: unknown, index: number): ErrorItem | null => {
    if (typeof command !== 'object' || command === null || Array.isArray(command)) {
      return commandError('must be an object with a `type`', { commandIndex: index })
    }
    const { type } = command as { type?: unknown }
    const check = checks.get(type as string)
    if (check === undefined) return unknownCommand(type, index, { table, later })
    const problem = check(command) ?? checkJson(table.get(type as string)!, command as Command)
    if (problem === null) return null
    const where = problem.member === '' ? '' : `${problem.member} `
    return commandError(`${where}${problem.message}`, {
      commandIndex: index,
      commandType: type,
      ...(problem.member !== '' && { member: problem.member }),
    })
  }
  const checkCommands = (commands: readonly unknown[]): readonly ErrorItem[] | null => {
    for (let i = 0; i < commands.length; i++) {
      const error = checkCommand(commands[i], i)
      if (error !== null) return [error]
    }
    return null
  }
  return { checkCommand, checkCommands }
}

function checkJson(
  { json }: CommandShape,
  command: Command,
): { member: string; message: string } | null {
  for (const member of json) {
    const value = command[member]
    if (value === undefined) continue
    const message = jsonProblem(value)
    if (message !== null) return { member, message }
  }
  return null
}

function unknownCommand(
  type: unknown,
  index: number,
  known: { readonly table: ReadonlyMap<string, unknown>; readonly later: ReadonlySet<string> },
): ErrorItem {
  if (typeof type !== 'string') {
    return commandError('type is missing: it names the command', {
      commandIndex: index,
      member: 'type',
    })
  }
  if (known.later.has(type)) {
    return errorItem('NOT_AVAILABLE', `commands[${index}]: ${type} is not available yet`, {
      commandIndex: index,
      commandType: type,
    })
  }
  const shown = type.slice(0, 100)
  const near = suggestion(type, [...known.table.keys()])
  return commandError(`there is no command ${JSON.stringify(shown)}${near}`, {
    commandIndex: index,
    commandType: shown,
    member: 'type',
  })
}

function commandError(
  message: string,
  details: { readonly commandIndex: number; readonly [member: string]: unknown },
): ErrorItem {
  return errorItem('INVALID_COMMAND', placed(message, details), details)
}

/** `commands[2] createOrderLine: quantity must be > 0`: what, where. */
export function placed(
  message: string,
  { commandIndex, commandType }: { commandIndex?: unknown; commandType?: unknown },
): string {
  const name = typeof commandType === 'string' ? ` ${commandType}` : ''
  return `commands[${String(commandIndex)}]${name}: ${message}`
}
