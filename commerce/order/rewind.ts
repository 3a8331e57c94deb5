// The message `rewind`: the order as it was at a checkpoint, written as one new record. What was
// given to the outside stays as it is: keys, invoices, and the counters that numbers come from.
// Refused past an invoice that is not cancelled. Hooks come after it as after commands.
// Source: CONTRACT 1.3, commerce/README.md "Messages", "Hooks", PROTOCOL 3.12.

import type {
  ActorRecord,
  RuntimeCall,
  Decision,
  Effect,
  NodeRef,
  Turn,
} from '../../protocol/behaviour.ts'
import { checkpointId } from '../../protocol/checkpoint.ts'
import { minorDigits } from '../../protocol/money.ts'
import { settleMap, stateAt } from '../actor/checkpoints.ts'
import { metaOf } from '../actor/draft.ts'
import { invalidState } from '../actor/refuse.ts'
import type { ChannelView } from './channels.ts'
import { OrderDraft } from './draft.ts'
import { journalEffects } from './hooks.ts'
import type { Rewound } from './records/records.ts'
import { evolve } from './state/evolve.ts'
import { toSnapshot } from './state/snapshot.ts'
import { type Billable, copyState, type OrderState, unreckoned } from './state/state.ts'
import { calculate } from './totals/totals.ts'

/** The turn, and what comes after a batch: hooks, the channel's rules, totals. */
export interface Finishing {
  readonly turn: Turn
  readonly channels: ChannelView
  readonly finish: (
    draft: OrderDraft,
    before: OrderState,
    effects: Effect[],
  ) => Generator<RuntimeCall, void, unknown>
}

export function* decideRewind(
  state: OrderState,
  body: { readonly checkpointId: string },
  { turn, channels, finish }: Finishing,
): Generator<RuntimeCall, Decision<OrderState>, unknown> {
  const wanted = body.checkpointId.toLowerCase()
  const then = yield* stateAt<OrderState>(wanted, `order ${state.orderNumber}`)
  for (const { invoiceId, invoiceNumber, isCancelled } of state.invoices.values()) {
    if (isCancelled || then.invoices.has(invoiceId)) continue
    invalidState(
      `invoice ${invoiceNumber} was made after that checkpoint and is not cancelled: an issued ` +
        'document is never unmade',
    )
  }
  const meta = metaOf(turn, turn.version + 1)
  const target = targetOf(state, then)
  const totals = calculate(target, minorDigits(target.currencyCode))
  if (totals !== null) evolve(target, totals, meta)
  const nodes = settleChildren(state, target, turn.nowMs)
  const record: Rewound = {
    t: 'rewound',
    checkpointId: wanted,
    state: toSnapshot(target),
    nodes: nodes.map(({ node, id }) => [node, id] as const),
  }
  // Rules may refuse it or add commands, as after any batch; those work on what it brought back.
  const back = evolve(state, record, meta)
  const draft = new OrderDraft(back, { ...turn, version: meta.version }, channels)
  const effects: Effect[] = []
  if (turn.hooks.has('OnOrderJournal')) {
    effects.push(...(yield* journalEffects({ turn, records: [record], state: back })))
  }
  yield* finish(draft, state, effects)
  return {
    ok: true,
    records: [record, ...draft.records] as unknown as readonly ActorRecord[],
    state: draft.state,
    data: {
      success: true,
      checkpointId: checkpointId(turn.actorId, turn.messageId, turn.nowMs),
    },
    ...(effects.length > 0 && { effects }),
  }
}

/** The business state of then, with what a rewind never touches as it is now. */
function targetOf(now: OrderState, then: OrderState): OrderState {
  const target: OrderState = {
    ...copyState(then),
    orderNumber: now.orderNumber,
    externalReference: now.externalReference,
    invoices: new Map(now.invoices),
    invoiceLines: new Map(now.invoiceLines),
    seq: Math.max(now.seq, then.seq),
    lastDeliveryNumber: now.lastDeliveryNumber,
    lastLineNumber: now.lastLineNumber,
    lastInvoiceNumber: now.lastInvoiceNumber,
  }
  freeCancelled(target.lines, now)
  freeCancelled(target.deliveries, now)
  freeCancelled(target.returns, now)
  return target
}

/** What stood on an invoice that is cancelled by now is released again. */
function freeCancelled<T extends Billable>(things: Map<string, T>, now: OrderState): void {
  for (const [id, thing] of things) {
    if (thing.invoiceId === null || !now.invoices.get(thing.invoiceId)!.isCancelled) continue
    things.set(id, unreckoned({ ...thing, invoiceId: null, invoiceLineId: null }))
  }
}

/** Nodes that came, changed or went; a child that is as it is now keeps its time of change. */
function settleChildren(now: OrderState, target: OrderState, nowMs: number): NodeRef[] {
  return [
    { node: 'order', id: now.orderId },
    ...settleMap('delivery', now.deliveries, target.deliveries, nowMs),
    ...settleMap('orderLine', now.lines, target.lines, nowMs),
    ...settleMap('staticDiscount', now.discounts, target.discounts, nowMs),
    ...settleMap('return', now.returns, target.returns, nowMs),
  ]
}
