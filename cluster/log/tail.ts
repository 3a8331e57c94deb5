// The tail of one shard's log as its owner knows it: the open segment, its head, and the one group
// that may be in it or not. Source: PROTOCOL 3.1, 3.2, 3.5 (roll).

import { LIMITS } from '../../config/limits.ts'
import type { Group } from '../../storage/journal.ts'
import type { SegmentStatics } from '../../storage/segments.ts'

/** A segment that has reached one of these is rolled before the next append. */
export interface SegmentLimits {
  readonly rowsMax: number
  readonly bytesMax: number
  /** Over the tenures of all owners, each of which counts rows and bytes from its own beginning. */
  readonly entriesMax: number
}

const PRODUCT_LIMITS: SegmentLimits = {
  rowsMax: LIMITS.storage.segmentRowsMax,
  bytesMax: LIMITS.storage.segmentBytesMax,
  entriesMax: LIMITS.storage.segmentEntriesMax,
}

export interface TailOptions {
  readonly shard: number
  readonly segment: number
  readonly statics: Pick<SegmentStatics, 'epoch' | 'base' | 'head'>
  readonly limits?: SegmentLimits
}

export class Tail {
  readonly shard: number
  readonly epoch: number
  segment: number
  base: number
  head: number
  isBusy = false
  readonly #limits: SegmentLimits
  #rows = 0
  #bytes = 0
  /** Sent, and not known to be committed. */
  #unresolved: Group | null = null

  constructor({ shard, segment, statics, limits }: TailOptions) {
    this.shard = shard
    this.segment = segment
    this.epoch = statics.epoch
    this.base = statics.base
    this.head = statics.head
    this.#limits = limits ?? PRODUCT_LIMITS
  }

  get isFull(): boolean {
    const { rowsMax, bytesMax, entriesMax } = this.#limits
    return this.#rows >= rowsMax || this.#bytes >= bytesMax || this.head - this.base >= entriesMax
  }

  /**
   * Whether the group goes on from this tail. While one is unresolved only its own bytes do; a
   * group that goes on behind it says that it was committed.
   */
  takes({ epoch, head, commitId }: Group): boolean {
    if (epoch !== this.epoch) return false
    const open = this.#unresolved
    if (open !== null && head === open.head + open.count) this.committed()
    const isOther = this.#unresolved !== null && this.#unresolved.commitId !== commitId
    return head === this.head && !isOther
  }

  sent(group: Group): void {
    this.#unresolved = group
  }

  /** The group that was sent is in. */
  committed(): void {
    const group = this.#unresolved
    if (group === null) return
    this.#unresolved = null
    this.head = group.head + group.count
    this.#rows++
    this.#bytes += group.body.length
  }

  rolled(): void {
    this.segment++
    this.base = this.head
    this.#rows = 0
    this.#bytes = 0
  }
}
