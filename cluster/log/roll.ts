// The roll: a full segment is sealed at its head, the next one opened, the hint moved, in this
// order, so that there is never more than one place where a shard's log can grow. Source: PROTOCOL
// 3.5 (roll).

import type { ControlStore, Outcome } from '../../storage/control.ts'
import type { SegmentId, SegmentStatics, SegmentStore } from '../../storage/segments.ts'

export interface RollOptions {
  readonly segments: Pick<SegmentStore, 'seal' | 'open' | 'statics'>
  readonly control: Pick<ControlStore, 'hintSegment' | 'shard'>
  /** Told of the statics as they are after each step. */
  readonly onStatics: (of: SegmentId, statics: SegmentStatics) => void
  readonly onBug: (shard: number, text: string) => void
}

/** `unknown`: begin again from the first step; those that are done stay done. */
export type Rolled = 'rolled' | 'fenced' | 'unknown'

/** No append of the shard may be in flight. `at`: epoch and head of its owner. */
export async function roll(
  options: RollOptions,
  of: SegmentId,
  at: { readonly epoch: number; readonly head: number },
): Promise<Rolled> {
  const { segments, control } = options
  const { shard } = of
  const { epoch, head } = at
  const sealed = await settle(options, of, await segments.seal(of, at), {
    epoch,
    isWanted: (statics) => statics.sealed && statics.head === head,
  })
  if (sealed !== 'rolled') return sealed
  const next = { shard, segment: of.segment + 1 }
  const opened = await settle(options, next, await segments.open(next, at), {
    epoch,
    isWanted: (statics) => statics.base === head && statics.head === head && !statics.sealed,
  })
  if (opened !== 'rolled') return opened
  if ((await control.hintSegment(shard, next.segment, { epoch })) !== 'applied') {
    // A hint may stay behind: claims follow the chain. A newer owner is one, though.
    if ((await control.shard(shard)).epoch > epoch) return 'fenced'
  }
  return 'rolled'
}

/** What became of a step: the statics at the serial level decide when its answer doesn't. */
async function settle(
  { segments, onStatics, onBug }: RollOptions,
  of: SegmentId,
  outcome: Outcome,
  wanted: { readonly epoch: number; readonly isWanted: (statics: SegmentStatics) => boolean },
): Promise<Rolled> {
  if (outcome === 'applied') return 'rolled'
  const statics = await segments.statics(of)
  if (statics) {
    onStatics(of, statics)
    if (statics.epoch > wanted.epoch) return 'fenced'
    if (statics.epoch === wanted.epoch && wanted.isWanted(statics)) return 'rolled'
  }
  if (outcome === 'unknown') return 'unknown'
  const said = JSON.stringify(statics)
  onBug(of.shard, `segment ${of.segment} could not be rolled in epoch ${wanted.epoch}: ${said}`)
  return 'fenced'
}
