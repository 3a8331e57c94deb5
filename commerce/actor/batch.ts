// The commands of one message as a batch: run one after another on one draft, so that a refusal
// leaves nothing of it, with the place of the command in it. Source: commerce/README.md "Messages",
// CONTRACT 1.13.

import type { RuntimeCall } from '../../protocol/behaviour.ts'
import { assert, type ErrorItem, RequestError } from '../../protocol/errors.ts'
import { placed } from './check-commands.ts'
import type { Command, CommandDefinition, Placed } from './command.ts'
import { Refused } from './refuse.ts'

/** The commands of a message behind those that rules put before them. */
export function batchOf(commands: readonly Command[], ofRules: readonly Command[] = []): Placed[] {
  const batch = ruleBatch(ofRules)
  for (let index = 0; index < commands.length; index++) {
    batch.push({ command: commands[index]!, index })
  }
  return batch
}

/** Commands of rules. */
export function ruleBatch(commands: readonly Command[]): Placed[] {
  return commands.map((command) => ({ command, index: null }))
}

/** Runs a batch on a draft; throws Refused, with the command's place, at the first refusal. */
export function* run<D extends { cause: Placed | null }>(
  draft: D,
  batch: readonly Placed[],
  commands: ReadonlyMap<string, CommandDefinition<D>>,
): Generator<RuntimeCall, void, unknown> {
  for (const item of batch) {
    const definition = commands.get(item.command.type)
    assert(definition !== undefined, `no such command: ${item.command.type}`)
    draft.cause = item
    try {
      if (definition.applyCalling === undefined) definition.apply(draft, item.command)
      else yield* definition.applyCalling(draft, item.command)
    } catch (error) {
      throw located(error, item)
    } finally {
      draft.cause = null
    }
  }
}

/** Puts the command's place into a refusal; passes on anything else unchanged. */
export function located(error: unknown, { command, index }: Placed): unknown {
  if (!(error instanceof RequestError)) return error
  return new Refused(
    error.errors.map((item): ErrorItem => {
      const where = { commandIndex: index, commandType: command.type }
      return {
        code: item.code,
        message: placed(item.message, index === null ? { commandType: command.type } : where),
        details: { ...where, ...item.details },
      }
    }),
  )
}
