// Waiting for the index: requests that name positions sleep until the index has come there. Source:
// PROTOCOL 3.13.6.

import { RequestError } from '../../../protocol/errors.ts'
import type { Position } from '../../../protocol/ids.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { Clock } from '../../../cluster/clock.ts'
import type { Maybe } from '../../../storage/journal.ts'
import type { IndexWatch } from '../../graph/graph.ts'
import { LackingPositions } from '../lacking-positions.ts'
import type { SharedProgress } from './shared-progress.ts'

/** How often the flush offset is read while a request waits for it. */
const RECORDED_POLL_MS = 5

export interface ProgressWatchOptions {
  /** Of the index that is read. */
  readonly progress: () => SharedProgress
  readonly clock: Clock
  /** False for a shard that brings nothing to the graph: it need not be waited for. */
  readonly follows: (shard: number) => boolean
  /** Offset up to which the shard's derived rows are written (consumer `flush`). */
  readonly flushed: (shard: number) => Maybe<number>
}

interface Waiter {
  readonly positions: readonly Position[]
  readonly end: (isThere: boolean) => void
}

export class ProgressWatch implements IndexWatch {
  generation = 1
  readonly #options: ProgressWatchOptions
  readonly #waiters: LackingPositions<Waiter>

  constructor(options: ProgressWatchOptions) {
    this.#options = options
    this.#waiters = new LackingPositions((shard) => options.progress().applied(shard))
  }

  unready(): string | null {
    if (this.#options.progress().ready) return null
    return 'the graph index is being filled from the journal; it answers when it is complete'
  }

  head(shard: number): number {
    const { progress, follows } = this.#options
    return follows(shard) ? progress().head(shard) : Number.POSITIVE_INFINITY
  }

  get waiting(): number {
    return this.#waiters.size
  }

  reached(positions: readonly Position[], waitMs: number): Promise<boolean> | true {
    const { progress, clock, follows } = this.#options
    const awaited = positions.filter(({ shard }) => follows(shard))
    const has = (): boolean =>
      awaited.every(({ shard, offset }) => progress().applied(shard) >= offset)
    if (has()) return true
    if (this.#waiters.size >= LIMITS.indexing.consistencyWaitersMax) {
      throw new RequestError(
        'TOO_BUSY',
        `${LIMITS.indexing.consistencyWaitersMax} requests wait for the graph index already`,
      )
    }
    return new Promise<boolean>((resolve) => {
      const cancel = clock.after(Math.max(0, waitMs), () => {
        this.#waiters.remove(waiter)
        waiter.end(has())
      })
      const waiter: Waiter = {
        positions: awaited,
        end: (isThere) => {
          cancel()
          progress().awaited = this.#waiters.size > 0
          resolve(isThere)
        },
      }
      progress().awaited = true
      // The index may have come there before it could see that it is awaited.
      if (!this.#waiters.add(waiter)) waiter.end(true)
    })
  }

  /** The index has moved. */
  applied(): void {
    for (const waiter of this.#waiters.moved()) waiter.end(true)
  }

  async recorded(positions: readonly Position[], waitMs: number): Promise<boolean> {
    const { clock, flushed, follows } = this.#options
    const endMs = clock.monotonicMs() + waitMs
    for (const { shard, offset } of positions) {
      if (!follows(shard)) continue
      while ((await flushed(shard)) < offset) {
        if (clock.monotonicMs() >= endMs) return false
        await new Promise<void>((resolve) => void clock.after(RECORDED_POLL_MS, resolve))
      }
    }
    return true
  }
}
