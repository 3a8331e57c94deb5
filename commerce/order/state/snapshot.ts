// An order's state as plain JSON and back: for snapshots, and for the record of a rewind. FORMAT
// rises with every change that an older version can't read. Source: PROTOCOL 3.12.

import { assert } from '../../../protocol/errors.ts'
import type { OrderState } from './state.ts'

const FORMAT = 1

/** Maps of children by the member that holds their id. */
const CHILDREN = {
  deliveries: 'deliveryId',
  lines: 'orderLineId',
  discounts: 'discountId',
  returns: 'returnId',
  invoices: 'invoiceId',
  invoiceLines: 'invoiceLineId',
} as const
type ChildMap = keyof typeof CHILDREN

export function toSnapshot(state: OrderState): unknown {
  const { lineCounts: _counts, discountsOf: _discounts, ...kept } = state
  const snapshot: Record<string, unknown> = { format: FORMAT, ...kept }
  for (const map of Object.keys(CHILDREN) as ChildMap[]) snapshot[map] = [...state[map].values()]
  return snapshot
}

export function fromSnapshot(snapshot: unknown): OrderState {
  const { format, ...kept } = snapshot as Record<string, unknown>
  assert(format === FORMAT, `an order snapshot has format ${String(format)}, not ${FORMAT}`)
  const maps: Record<string, Map<string, unknown>> = {}
  for (const [map, idMember] of Object.entries(CHILDREN)) {
    const children = kept[map] as Record<string, unknown>[]
    maps[map] = new Map(children.map((child) => [child[idMember] as string, child]))
  }
  const state = {
    ...kept,
    ...maps,
    lineCounts: new Map(),
    discountsOf: new Map(),
  } as unknown as OrderState
  for (const { deliveryId } of state.lines.values()) {
    state.lineCounts.set(deliveryId, (state.lineCounts.get(deliveryId) ?? 0) + 1)
  }
  for (const { discountId, targetId } of state.discounts.values()) {
    if (targetId === null) continue
    state.discountsOf.set(targetId, [...(state.discountsOf.get(targetId) ?? []), discountId])
  }
  return state
}

/** The state that a rewind goes back to; its record holds it whole. */
export function reinstated(state: OrderState, snapshot: unknown, now: number): OrderState {
  const next = fromSnapshot(snapshot)
  assert(next.orderId === state.orderId, 'a rewind leads to another order')
  next.modifiedMs = now
  return next
}
