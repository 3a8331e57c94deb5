// The hooks of an order: where rules are asked on the way, and which of their effects count there.
// The runtime plays rules behind the call `effects`. With an empty hook table none of this runs.
// Source: commerce/README.md "Hooks".

import type { RuntimeCall, Effect } from '../../protocol/behaviour.ts'
import { metaOf } from '../actor/draft.ts'
import { hooksOf } from '../actor/hooks.ts'
import type { OrderDraft } from './draft.ts'
import { history } from './graph/journal.ts'
import { orderView } from './graph/view.ts'
import { checkCommand } from './messages/check.ts'

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
} as const satisfies Record<
  string,
  readonly ('orderCommand' | 'validationError' | 'messageActor')[]
>

/** Asks the rules of a hook; throws Refused when one says validationError. */
export const effectsOf = hooksOf({ allowed: ALLOWED, commandEffect: 'orderCommand', checkCommand })

/** OnOrderJournal, once for each journal entry that the records show; `state` is what they left. */
export function* journalEffects({
  turn,
  records,
  state,
}: Pick<OrderDraft, 'turn' | 'records' | 'state'>): Generator<
  RuntimeCall,
  readonly Effect[],
  unknown
> {
  const order = orderView({ state })
  const effects: Effect[] = []
  let version = turn.version
  for (const record of records) {
    version++
    for (const { node, doc } of history(record, metaOf(turn, version))) {
      if (node !== 'orderJournalEntry') continue
      const outcome = yield* effectsOf('OnOrderJournal', { order, journalEntry: doc })
      effects.push(...outcome.effects)
    }
  }
  return effects
}
