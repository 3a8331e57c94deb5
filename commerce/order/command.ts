// What a command of the order actor is: a name, the shape of its members, and what it does to a
// draft. It stands between the files of commands/ and decide.ts, which runs them.

import type { Static, TObject } from '@sinclair/typebox'
import type { Ask } from '../../protocol/behaviour.ts'
import type { Draft } from './draft.ts'
import { HOLDS_JSON } from '../actor/shapes.ts'

/** A command as it came in, its shape checked. */
export interface Command {
  readonly type: string
  readonly [member: string]: unknown
}

export interface CommandDefinition {
  readonly type: string
  readonly schema: TObject
  /** Members that hold any JSON; their depth, size and keys are checked apart. */
  readonly json: readonly string[]
  /** Commits records to the draft, or throws a RequestError: then the batch is rejected. */
  apply(draft: Draft, command: Command): void
  /** Instead of `apply` where the world must be asked first: a key, a number. */
  readonly ask?: (draft: Draft, command: Command) => Generator<Ask, void, unknown>
}

/** A command that needs nothing but the draft. */
export function command<T extends TObject>(
  type: string,
  schema: T,
  apply: (draft: Draft, command: Static<T>) => void,
): CommandDefinition {
  return {
    type,
    schema,
    json: jsonMembers(schema),
    apply,
  }
}

/** A command that asks on the way. */
export function askingCommand<T extends TObject>(
  type: string,
  schema: T,
  ask: (draft: Draft, command: Static<T>) => Generator<Ask, void, unknown>,
): CommandDefinition {
  return {
    type,
    schema,
    json: jsonMembers(schema),
    apply: () => undefined,
    ask,
  }
}

function jsonMembers(schema: TObject): readonly string[] {
  return Object.keys(schema.properties).filter((name) => HOLDS_JSON in schema.properties[name]!)
}
