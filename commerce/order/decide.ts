// Decides on order messages: what records follow, what is answered, what is asked on the way. The
// runtime plays the calls and commits. All commands of a message are one batch: one refusal and
// nothing of it remains. Source: commerce/README.md "Messages", "Hooks"; CONTRACT 1.3.

import type { RuntimeCall, Decision, Effect, Turn } from '../../protocol/behaviour.ts'
import { checkpointId } from '../../protocol/checkpoint.ts'
import {
  assert,
  type ErrorItem,
  errorItem,
  isRetryable,
  RequestError,
} from '../../protocol/errors.ts'
import { instantMs } from '../../protocol/graph/filter/instants.ts'
import type { Message } from '../../protocol/message.ts'
import { batchOf, located, ruleBatch, run } from '../actor/batch.ts'
import { decideCheckpoints } from '../actor/checkpoints.ts'
import type { Command, Placed } from '../actor/command.ts'
import { Refused } from '../actor/refuse.ts'
import { channelFault } from './channel-rules.ts'
import type { ChannelView } from './channels.ts'
import { COMMANDS } from './command-table.ts'
import { ORDER_NUMBER_KEY, reserveNumber } from './commands/order-number.ts'
import { type Completion, completeIfDone } from './completion.ts'
import { decideDelete } from './delete.ts'
import { OrderDraft } from './draft.ts'
import { orderView } from './graph/view.ts'
import { effectsOf, journalEffects } from './hooks.ts'
import { checkMessage, type CreateBody } from './messages/check.ts'
import type { OrderCreated } from './records/records.ts'
import { decideRewind } from './rewind.ts'
import { newOrderState, type OrderState } from './state/state.ts'

export const DEFAULT_NUMBER_PREFIX = 'O'
/** Commands that give a new order its number: the first of them takes effect first. */
const NUMBERING: ReadonlySet<string> = new Set(['setOrderNumber', 'generateOrderNumberByPrefix'])

/** What decisions go by beside the state and the message. */
export interface OrderOptions {
  readonly channels: ChannelView
  readonly completion: Completion
}

export type Deciding = Generator<RuntimeCall, Decision<OrderState>, unknown>

export function* decide(
  state: OrderState | null,
  message: Message,
  turn: Turn,
  options: OrderOptions,
): Deciding {
  try {
    if (message.type === 'create') {
      return yield* decideCreate(state, message.body as CreateBody, turn, options)
    }
    if (state === null || state.deleted) {
      return refused(errorItem('NOT_FOUND', `there is no order ${turn.actorId}`))
    }
    return yield* decideOn(state, message, turn, options)
  } catch (error) {
    const isRefusal = error instanceof RequestError || error instanceof Refused
    // What may be tried again is no decision: it would be the answer to every repeat.
    if (!isRefusal || isRetryable(error.errors[0]!.code)) throw error
    return { ok: false, errors: error.errors }
  }
}

function* decideOn(
  state: OrderState,
  message: Message,
  turn: Turn,
  options: OrderOptions,
): Deciding {
  switch (message.type) {
    case 'applyCommands': {
      const { commands } = message.body as { commands: readonly Command[] }
      return yield* decideCommands(state, commands, turn, options)
    }
    case 'query': {
      const data = yield { call: 'query', node: message.body, state }
      return { ok: true, records: [], state, data }
    }
    case 'getCheckpoints':
      return yield* decideCheckpoints(state)
    case 'rewind':
      return yield* decideRewind(state, message.body as { checkpointId: string }, {
        turn,
        channels: options.channels,
        // What it brings back stays as it was then.
        finish: (draft, before, effects) => {
          return finish(draft, { before, effects, completion: 'manual' })
        },
      })
    case 'delete':
      return yield* decideDelete(state, turn)
    default:
      return { ok: false, errors: checkMessage(message) ?? [] }
  }
}

function* decideCreate(
  state: OrderState | null,
  body: CreateBody,
  turn: Turn,
  { channels, completion }: OrderOptions,
): Deciding {
  if (state !== null) {
    const why = state.deleted ? 'was deleted: its id is not used again' : 'is already there'
    return refused(errorItem('ALREADY_EXISTS', `order ${turn.actorId} ${why}`))
  }
  const asked = body.createdAt === undefined ? turn.nowMs : instantMs(body.createdAt)
  assert(asked !== null, 'createdAt was checked')
  const createdMs = Math.min(asked, turn.nowMs)
  const effects: Effect[] = []
  const before = yield* beforeCreated(body, createdMs, turn, effects)
  const commands = batchOf(body.commands ?? [], before)
  const numbering = body.orderNumber === undefined ? takeNumbering(commands) : null
  const orderNumber = yield* firstNumber(body.orderNumber, numbering)
  const birth: OrderCreated = {
    t: 'orderCreated',
    orderNumber,
    currencyCode: body.currencyCode,
    taxIncluded: body.taxIncluded,
    createdMs,
    ...(body.channelKey !== undefined && { channelKey: body.channelKey }),
  }
  const draft = new OrderDraft(birth, turn, channels)
  yield* run(draft, commands, COMMANDS)
  if (turn.hooks.has('OnOrderCreated')) {
    draft.calculate()
    const outcome = yield* effectsOf('OnOrderCreated', { order: orderView(draft) })
    effects.push(...outcome.effects)
    yield* run(draft, ruleBatch(outcome.commands), COMMANDS)
  }
  yield* finish(draft, { before: null, effects, completion })
  const data = { orderId: turn.actorId, orderNumber: draft.state.orderNumber }
  // The numbering command was taken out of the batch, and is of the message all the same.
  return draft.decided(numbering === null ? commands : [numbering, ...commands], { data, effects })
}

/** Commands of OnOrderBeforeCreated rules; its order has no number yet. */
function* beforeCreated(
  body: CreateBody,
  createdMs: number,
  turn: Turn,
  effects: Effect[],
): Generator<RuntimeCall, readonly Command[], unknown> {
  if (!turn.hooks.has('OnOrderBeforeCreated')) return []
  const { currencyCode, taxIncluded, channelKey = null } = body
  const order = newOrderState({
    orderId: turn.actorId,
    orderNumber: body.orderNumber ?? '',
    currencyCode,
    taxIncluded,
    createdMs,
    channelKey,
  })
  const payload = { order: orderView({ state: order }) }
  const outcome = yield* effectsOf('OnOrderBeforeCreated', payload)
  effects.push(...outcome.effects)
  return outcome.commands
}

/** The first numbering command of a batch, taken out of it: the number comes before all else. */
function takeNumbering(commands: Placed[]): Placed | null {
  const at = commands.findIndex(({ command }) => NUMBERING.has(command.type))
  return at === -1 ? null : commands.splice(at, 1)[0]!
}

function* firstNumber(
  chosen: string | undefined,
  numbering: Placed | null,
): Generator<RuntimeCall, string, unknown> {
  if (chosen !== undefined) {
    yield* reserveNumber(chosen, 'orderNumber')
    return chosen
  }
  try {
    if (numbering?.command.type === 'setOrderNumber') {
      const number = numbering.command['value'] as string
      yield* reserveNumber(number, 'value')
      return number
    }
    const prefix = (numbering?.command['prefix'] as string | undefined) ?? DEFAULT_NUMBER_PREFIX
    const number = yield { call: 'number', keyType: ORDER_NUMBER_KEY, prefix }
    assert(typeof number === 'string', 'the answer to a number is its text')
    return number
  } catch (error) {
    throw numbering === null ? error : located(error, numbering)
  }
}

function* decideCommands(
  state: OrderState,
  commands: readonly Command[],
  turn: Turn,
  { channels, completion }: OrderOptions,
): Deciding {
  const draft = new OrderDraft(state, turn, channels)
  const effects: Effect[] = []
  const batch = batchOf(commands)
  yield* run(draft, batch, COMMANDS)
  yield* finish(draft, { before: state, effects, completion })
  if (draft.records.length === 0) {
    return { ok: true, records: [], state, data: { checkpointId: currentCheckpoint(state) } }
  }
  const data = { checkpointId: currentCheckpoint(draft.state) }
  return draft.decided(batch, { data, effects })
}

/** The checkpoint that an order stands at: that of the last message that changed it. */
function currentCheckpoint(state: OrderState): string {
  return checkpointId(state.orderId, state.messageId, state.messageMs)
}

interface Finish {
  /** null: a new order. */
  readonly before: OrderState | null
  readonly effects: Effect[]
  readonly completion: Completion
}

/** Hooks, totals and completion after the commands, in the order of commerce/README.md "Hooks". */
function* finish(
  draft: OrderDraft,
  { before, effects, completion }: Finish,
): Generator<RuntimeCall, void, unknown> {
  const { hooks } = draft.turn
  const beforeView = (): unknown => (before === null ? null : orderView({ state: before }))
  if (hooks.has('OnOrderCommands')) {
    draft.calculate()
    const payload = { before: beforeView(), order: orderView(draft) }
    const outcome = yield* effectsOf('OnOrderCommands', payload)
    effects.push(...outcome.effects)
    yield* run(draft, ruleBatch(outcome.commands), COMMANDS)
  }
  checkChannel(draft)
  draft.calculate()
  if (completion === 'automatic') completeIfDone(draft, before)
  if (hooks.has('OnOrderValidate')) {
    yield* effectsOf('OnOrderValidate', { before: beforeView(), order: orderView(draft) })
  }
  if (hooks.has('OnOrderInvoiceCreated')) {
    const invoices = draft.records.filter((record) => record.t === 'invoiceCreated')
    if (invoices.length > 0) {
      const payload = { order: orderView(draft), invoices }
      const outcome = yield* effectsOf('OnOrderInvoiceCreated', payload)
      effects.push(...outcome.effects)
    }
  }
  if (hooks.has('OnOrderJournal')) effects.push(...(yield* journalEffects(draft)))
}

/** Refuses what the order's channel doesn't allow, at the command that made it so. */
function checkChannel(draft: OrderDraft): void {
  const fault = channelFault(draft)
  if (fault === null) return
  const cause = draft.causes[fault.record] ?? null
  throw cause === null ? fault.error : located(fault.error, cause)
}

function refused(error: ErrorItem): Decision<OrderState> {
  return { ok: false, errors: [error] }
}
