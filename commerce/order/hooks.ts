// The hooks of an order: where rules are asked on the way, and which of their effects count there.
// It stands between decide.ts and the rules, which the runtime plays behind the ask `effects`; with
// an empty hook table none of this runs. Source: commerce/README.md "Hooks".

import type { Ask, Effect } from '../../protocol/behaviour.ts'
import { toUuid } from '../../protocol/ids.ts'
import type { Message } from '../../protocol/message.ts'
import { checkCommand } from './messages/check.ts'
import type { Command } from '../actor/command.ts'
import type { OrderDraft } from './draft.ts'
import { history } from './graph/journal.ts'
import { Refused } from '../actor/refuse.ts'
import { orderView } from './graph/view.ts'

type EffectKind = 'orderCommand' | 'validationError' | 'messageActor'

/** Effects that count, by hook. `scheduleJob` and `sendEmail` join with jobs and sendings. */
const ALLOWED = {
  OnOrderBeforeCreated: ['validationError', 'orderCommand', 'messageActor'],
  OnOrderCreated: ['orderCommand', 'messageActor'],
  OnOrderCommands: ['validationError', 'orderCommand', 'messageActor'],
  OnOrderValidate: ['validationError'],
  OnOrderInvoiceCreated: ['messageActor'],
  OnOrderJournal: ['messageActor'],
  OnOrderBeforeDeleted: ['validationError'],
  OnOrderDeleted: ['messageActor'],
} as const satisfies Record<string, readonly EffectKind[]>

export type OrderHook = keyof typeof ALLOWED

export interface HookOutcome {
  readonly commands: readonly Command[]
  /** Messages that leave after the commit. */
  readonly effects: readonly Effect[]
}

/** Asks the rules of a hook; throws Refused when one says validationError. */
export function* effectsOf(hook: OrderHook, payload: object): Generator<Ask, HookOutcome, unknown> {
  const answer = yield { ask: 'effects', hook, payload: { hook, ...payload } }
  const commands: Command[] = []
  const effects: Effect[] = []
  for (const item of Array.isArray(answer) ? (answer as unknown[]) : []) {
    if (typeof item !== 'object' || item === null) continue
    const { effect, ...members } = item as { effect?: unknown; [member: string]: unknown }
    const allowed = (ALLOWED[hook] as readonly unknown[]).includes(effect)
    if (effect === 'validationError') throw denial(hook, members, allowed)
    if (!allowed) continue
    if (effect === 'orderCommand') commands.push(checkedCommand(hook, members))
    else effects.push(messageOf(hook, members))
  }
  return { commands, effects }
}

function denial(hook: OrderHook, members: Record<string, unknown>, allowed: boolean): Refused {
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

function checkedCommand(hook: OrderHook, members: Record<string, unknown>): Command {
  const error = checkCommand(members, 0)
  if (error === null) return members as Command
  const { commandIndex: _none, ...details } = error.details ?? {}
  throw new Refused([{ ...error, message: `a rule of ${hook}: ${error.message}`, details }])
}

/**
 * `{actorType, actorId, messages}`, or in the older form `{actorType, actorId, messageType,
 * body}`.
 */
function messageOf(hook: OrderHook, members: Record<string, unknown>): Effect {
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

function brokenRule(hook: OrderHook, message: string): Refused {
  return new Refused([{ code: 'COMPONENT_ERROR', message: `${hook}: ${message}` }])
}

/** OnOrderJournal, once for each journal entry that the records show; `state` is what they left. */
export function* journalEffects({
  turn,
  records,
  state,
}: Pick<OrderDraft, 'turn' | 'records' | 'state'>): Generator<Ask, readonly Effect[], unknown> {
  const order = orderView({ state })
  const effects: Effect[] = []
  let version = turn.version
  for (const record of records) {
    version++
    const meta = {
      actorId: turn.actorId,
      version,
      timeMs: turn.nowMs,
      by: turn.by,
      messageId: turn.messageId,
    }
    for (const { node, doc } of history(record, meta)) {
      if (node !== 'orderJournalEntry') continue
      const outcome = yield* effectsOf('OnOrderJournal', { order, journalEntry: doc })
      effects.push(...outcome.effects)
    }
  }
  return effects
}
