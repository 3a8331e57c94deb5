// How much memory the activations of a member take, over all its shards: where few shards have most
// of what is asked, they have most of it. Source: PROTOCOL 3.12.

import { LIMITS } from '../../../config/limits.ts'

export class ActivationMemory {
  readonly #countMax: number
  readonly #bytesMax: number
  #count = 0
  #bytes = 0

  /** @param heapBytes most that the heap may grow to: where there is more, more actors stay */
  constructor(heapBytes: number) {
    const { activationsMax, activationsBytesMax, activationsHeapShare } = LIMITS.sharding
    const more = Math.max(1, (heapBytes * activationsHeapShare) / activationsBytesMax)
    this.#countMax = activationsMax * more
    this.#bytesMax = activationsBytesMax * more
  }

  /** So many came, and so many bytes; what went is negative. */
  add(count: number, bytes: number): void {
    this.#count += count
    this.#bytes += bytes
  }

  /** @param share of what there is, 0 to 1 */
  isOver(share: number): boolean {
    return this.#count > this.#countMax * share || this.#bytes > this.#bytesMax * share
  }
}
