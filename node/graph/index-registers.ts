// Numbers about the graph index that all members of a cluster share, kept as consumer rows of the
// journal: registers that only move forward, whoever writes late. It stands between the parts of
// the index and the journal. Source: PROTOCOL 3.0, 3.13.5.
//
// An index may be lost, be ahead of a restored log, or be made for other node types; generations
// are numbered here, in the store that outlives it, and never twice. So an offset of one generation
// says nothing of another, and a lost index can't be taken for one that is filled.

import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { DerivedRow, DerivedStore } from '../../storage/journal.ts'

/** Generation that is read, and the newest one that there is, which may still be filled. */
export interface GenerationNumbers {
  readonly live: number
  readonly next: number
}

const LIVE = 'index-live'
const NEXT = 'index-next'
const GONE = 'index-gone'

/** Consumer whose offset says how far a generation holds a shard. */
export function consumerOf(generation: number): string {
  return `index-${generation}`
}

export class IndexRegisters {
  readonly #derived: DerivedStore
  readonly #epochOf: (shard: number) => number | null

  /** `epochOf`: epoch of a shard that is served here, null of any other. */
  constructor(derived: DerivedStore, epochOf: (shard: number) => number | null) {
    this.#derived = derived
    this.#epochOf = epochOf
  }

  async numbers(): Promise<GenerationNumbers> {
    const live = (await this.#derived.consumer(SYSTEM_SHARD, LIVE)) ?? 0
    const next = (await this.#derived.consumer(SYSTEM_SHARD, NEXT)) ?? 0
    return { live, next: Math.max(live, next) }
  }

  setLive(generation: number): Promise<void> {
    return this.#set(SYSTEM_SHARD, LIVE, generation)
  }

  setNext(generation: number): Promise<void> {
    return this.#set(SYSTEM_SHARD, NEXT, generation)
  }

  async offset(generation: number, shard: number): Promise<number | null> {
    return this.#derived.consumer(shard, consumerOf(generation))
  }

  setOffset(generation: number, shard: number, offset: number): Promise<void> {
    return this.#set(shard, consumerOf(generation), offset)
  }

  /** Where a shard of a generation was first begun to be filled from its actors; this, if now. */
  async begin(generation: number, shard: number, offset: number): Promise<number> {
    const consumer = `${consumerOf(generation)}-begun`
    const begun = await this.#derived.consumer(shard, consumer)
    if (begun !== null) return begun
    await this.#set(shard, consumer, offset)
    return offset
  }

  /** The newest generation that can't go on with this shard; 0: none. */
  async gone(shard: number): Promise<number> {
    return (await this.#derived.consumer(shard, GONE)) ?? 0
  }

  setGone(generation: number, shard: number): Promise<void> {
    return this.#set(shard, GONE, generation)
  }

  #set(shard: number, consumer: string, offset: number): Promise<void> {
    return this.write(shard, [{ kind: 'consumer', consumer, offset }])
  }

  /** Writes rows of an own shard. Of one that was lost nothing is written: its owner does it. */
  async write(shard: number, rows: readonly DerivedRow[]): Promise<void> {
    const epoch = this.#epochOf(shard)
    if (epoch === null) return
    const outcome = await this.#derived.write(shard, epoch, rows)
    if (outcome === 'committed' || outcome === 'fenced') return
    throw new Error(`rows of shard ${shard} were not written: ${outcome}`)
  }
}
