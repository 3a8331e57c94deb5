// The hooks of an actor type: where rules are asked on the way, and which of their effects count
// there. The runtime plays rules behind the call `effects`. With an empty hook table none of this
// runs. Source: commerce/README.md "Hooks".

import type { RuntimeCall, Effect } from '../../protocol/behaviour.ts'
import type { ErrorItem } from '../../protocol/errors.ts'
import { toUuid } from '../../protocol/ids.ts'
import type { Message } from '../../protocol/message.ts'
import type { Command } from './command.ts'
import { Refused } from './refuse.ts'

/** What the hooks of an actor type go by. */
export interface HookTable<H extends string> {
  /** Effects that count, by hook. */
  readonly allowed: Readonly<Record<H, readonly string[]>>
  /** The effect that is a command to the actor itself: `orderCommand`. */
  readonly commandEffect: string
  /** What is wrong with such a command, or null. */
  readonly checkCommand: (command: unknown, index: number) => ErrorItem | null
}

export interface HookOutcome {
  readonly commands: readonly Command[]
  /** Messages that leave after the commit. */
  readonly effects: readonly Effect[]
}

/** Asks the rules of a hook; throws Refused when one says validationError. */
export type AskRules<H extends string> = (
  hook: H,
  payload: object,
) => Generator<RuntimeCall, HookOutcome, unknown>

export function hooksOf<H extends string>(table: HookTable<H>): AskRules<H> {
  return function* (hook, payload) {
    const answer = yield { call: 'effects', hook, payload: { hook, ...payload } }
    const commands: Command[] = []
    const effects: Effect[] = []
    for (const item of Array.isArray(answer) ? (answer as unknown[]) : []) {
      if (typeof item !== 'object' || item === null) continue
      const { effect, ...members } = item as { effect?: unknown; [member: string]: unknown }
      const allowed = (table.allowed[hook] as readonly unknown[]).includes(effect)
      if (effect === 'validationError') throw denial(hook, members, allowed)
      if (!allowed) continue
      if (effect === table.commandEffect) {
        commands.push(checkedCommand(hook, members, table.checkCommand))
      } else {
        effects.push(messageOf(hook, members))
      }
    }
    return { commands, effects }
  }
}

function denial(hook: string, members: Record<string, unknown>, allowed: boolean): Refused {
  if (!allowed) {
    return brokenRule(hook, 'a rule answered validationError, which does not count in this hook')
  }
  const { code, message, details } = members
  return new Refused([
    {
      code: typeof code === 'string' && code !== '' ? code : 'VALIDATION_ERROR',
      message: typeof message === 'string' ? message : `refused by a rule of ${hook}`,
      ...(typeof details === 'object' && details !== null && { details: { ...details } }),
    },
  ])
}

function checkedCommand(
  hook: string,
  members: Record<string, unknown>,
  check: (command: unknown, index: number) => ErrorItem | null,
): Command {
  const error = check(members, 0)
  if (error === null) return members as Command
  const { commandIndex: _none, ...details } = error.details ?? {}
  throw new Refused([{ ...error, message: `a rule of ${hook}: ${error.message}`, details }])
}

/**
 * `{actorType, actorId, messages}`, or in the older form `{actorType, actorId, messageType,
 * body}`.
 */
function messageOf(hook: string, members: Record<string, unknown>): Effect {
  const { actorType, actorId, messages, messageType, body } = members
  if (typeof actorType !== 'string' || typeof actorId !== 'string') {
    throw brokenRule(hook, 'messageActor needs actorType and actorId, both text')
  }
  const list = Array.isArray(messages) ? (messages as unknown[]) : [{ type: messageType, body }]
  const typed = list.map((message): Message => {
    const { type, body: content } = (message ?? {}) as { type?: unknown; body?: unknown }
    if (typeof type === 'string') return { type, body: content ?? {} }
    throw brokenRule(hook, 'a message of messageActor needs a type')
  })
  const id = toUuid(actorId)
  const to = id === null ? { type: actorType, key: actorId } : { type: actorType, id }
  return { to, messages: typed }
}

function brokenRule(hook: string, message: string): Refused {
  return new Refused([{ code: 'COMPONENT_ERROR', message: `${hook}: ${message}` }])
}
