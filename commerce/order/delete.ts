// The message `delete`: the order goes, its keys stay taken. Refused while an invoice is not
// cancelled: an issued document is never unmade. Source: CONTRACT 1.3, commerce/README.md
// "Messages", "Hooks".

import type { ActorRecord, RuntimeCall, Decision, Turn } from '../../protocol/behaviour.ts'
import { metaOf } from '../actor/draft.ts'
import { invalidState } from '../actor/refuse.ts'
import { refs } from './graph/project.ts'
import { orderView } from './graph/view.ts'
import { effectsOf, journalEffects } from './hooks.ts'
import type { OrderDeleted } from './records/records.ts'
import { evolve } from './state/evolve.ts'
import { copyState, type OrderState } from './state/state.ts'

export function* decideDelete(
  state: OrderState,
  turn: Turn,
): Generator<RuntimeCall, Decision<OrderState>, unknown> {
  for (const { isCancelled, invoiceNumber } of state.invoices.values()) {
    if (isCancelled) continue
    invalidState(`invoice ${invoiceNumber} is not cancelled: the order can't be deleted`)
  }
  if (turn.hooks.has('OnOrderBeforeDeleted')) {
    yield* effectsOf('OnOrderBeforeDeleted', { order: orderView({ state }) })
  }
  const outcome = turn.hooks.has('OnOrderDeleted')
    ? yield* effectsOf('OnOrderDeleted', { order: orderView({ state }) })
    : null
  const record: OrderDeleted = {
    t: 'orderDeleted',
    nodes: refs(state).map(({ node, id }) => [node, id] as const),
  }
  const effects = [...(outcome?.effects ?? [])]
  if (turn.hooks.has('OnOrderJournal')) {
    // The order as it was: nothing else is left of it to show.
    effects.push(...(yield* journalEffects({ turn, records: [record], state })))
  }
  return {
    ok: true,
    records: [record as unknown as ActorRecord],
    state: evolve(copyState(state), record, metaOf(turn, turn.version + 1)),
    ...(effects.length > 0 && { effects }),
  }
}
