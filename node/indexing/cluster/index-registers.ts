// Numbers about the graph index that all members of a cluster share, kept as consumer rows of the
// journal: registers that only move forward, whoever writes late. Source: PROTOCOL 3.0, 3.13.5.
//
// An index may be lost, be ahead of a restored log, or be made for other node types; generations
// are numbered here, in the store that outlives it, and never twice. So an offset of one generation
// says nothing of another, and a lost index can't be taken for one that is filled.

import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { GENERATION_CONSUMERS } from '../../../storage/journal.ts'
import type { DerivedRow, DerivedStore } from '../../../storage/journal.ts'
import type { Fill } from '../../../storage/search.ts'

/** Generation that is read, and the newest one that there is, which may still be filled. */
export interface GenerationNumbers {
  readonly live: number
  readonly next: number
}

const { live: LIVE, next: NEXT, gone: GONE } = GENERATION_CONSUMERS

/** Behind the consumer of a generation: where filling a shard began, and how far it is. */
const BEGUN = '-begun'
const FILLED = '-filled'
/** The one row of its kind. */
const FILL_ROW = '00000000-0000-0000-0000-000000000000'

type FillPlace = Pick<Fill, 'after' | 'step'>
const NO_PLACE: FillPlace = { after: null, step: 1 }

/** Consumer whose offset says how far a generation holds a shard. */
export function consumerOf(generation: number): string {
  return `index-${generation}`
}

/** All shards of a store that has so many beside `system`. */
export function shardsOf(shards: number): readonly number[] {
  return Array.from({ length: shards + 1 }, (_, i) => SYSTEM_SHARD + i)
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

  /** How far a shard of a generation has been filled from its actors; null: not begun. */
  async fill(generation: number, shard: number): Promise<Fill | null> {
    const consumer = consumerOf(generation)
    const begun = await this.#derived.consumer(shard, `${consumer}${BEGUN}`)
    if (begun === null) return null
    const [row] = await this.#derived.parked(shard, `${consumer}${FILLED}`)
    const place = row ? (JSON.parse(Buffer.from(row.body).toString()) as FillPlace) : NO_PLACE
    return { shard, begun, ...place }
  }

  async setFill(generation: number, { shard, begun, after, step }: Fill): Promise<void> {
    const consumer = consumerOf(generation)
    if (after === null) return this.#set(shard, `${consumer}${BEGUN}`, begun)
    const place: FillPlace = { after, step }
    const body = Buffer.from(JSON.stringify(place))
    const row = { kind: 'parked', consumer: `${consumer}${FILLED}`, actorId: FILL_ROW } as const
    // Of two owners' places the further one stays.
    return this.write(shard, [{ ...row, body, offset: step }])
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
