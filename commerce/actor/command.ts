// What a command of an actor is: a name, the shape of its members, and what it does to a draft.
// batch.ts runs them.

import type { Static, TObject } from '@sinclair/typebox'
import type { RuntimeCall } from '../../protocol/behaviour.ts'
import { HOLDS_JSON } from './shapes.ts'

/** A command as it came in, its shape checked. */
export interface Command {
  readonly type: string
  readonly [member: string]: unknown
}

/** A command with its place in the message; commands of rules have none. */
export interface Placed {
  readonly command: Command
  readonly index: number | null
}

/** What a command looks like. */
export interface CommandShape {
  readonly type: string
  readonly schema: TObject
  /** Members that hold any JSON; their depth, size and keys are checked apart. */
  readonly json: readonly string[]
}

/** A command that works on drafts of type `D`. */
export interface CommandDefinition<D> extends CommandShape {
  /** Commits records to the draft, or throws a RequestError: then the batch is rejected. */
  apply(draft: D, command: Command): void
  /** Instead of `apply` where the runtime is called first: for a key, a number. */
  readonly applyCalling?: (draft: D, command: Command) => Generator<RuntimeCall, void, unknown>
}

/** How the commands of an actor type are defined: the members of a command follow its schema. */
export interface CommandMakers<D> {
  /** A command that needs nothing but the draft. */
  readonly command: <T extends TObject>(
    type: string,
    schema: T,
    apply: (draft: D, command: Static<T>) => void,
  ) => CommandDefinition<D>
  /** A command that calls the runtime on its way. */
  readonly callingCommand: <T extends TObject>(
    type: string,
    schema: T,
    applyCalling: (draft: D, command: Static<T>) => Generator<RuntimeCall, void, unknown>,
  ) => CommandDefinition<D>
}

export function commandMakers<D>(): CommandMakers<D> {
  return {
    command: (type, schema, apply) => ({ type, schema, json: jsonMembers(schema), apply }),
    callingCommand: (type, schema, applyCalling) => ({
      type,
      schema,
      json: jsonMembers(schema),
      apply: () => undefined,
      applyCalling,
    }),
  }
}

function jsonMembers(schema: TObject): readonly string[] {
  return Object.keys(schema.properties).filter((name) => HOLDS_JSON in schema.properties[name]!)
}
