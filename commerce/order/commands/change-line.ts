// What the commands that set members of an order line have in common: which lines may still be
// changed, and the record of what changed. Source: commerce/README.md "Machines", "Commands".

import { difference } from '../difference.ts'
import type { Draft } from '../draft.ts'
import type { OrderLinePatch } from '../records.ts'
import type { OrderLine } from '../state.ts'

type Wanted = { readonly [K in keyof OrderLinePatch]?: OrderLinePatch[K] | undefined }

/** Commits the members of `wanted` that differ; `undefined` leaves one as it is. */
export function changeLine(draft: Draft, line: OrderLine, wanted: Wanted): void {
  const changed = difference<OrderLinePatch>(line, wanted)
  if (changed === null) return
  draft.commit({ t: 'orderLineChanged', orderLineId: line.orderLineId, ...changed })
}
