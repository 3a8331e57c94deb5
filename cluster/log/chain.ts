// The chain of one store's segments as far as it is known here: where each begins, which are
// sealed, and so which one holds an offset. Bases and sealed heads never change, so what was once
// read at the serial level stays true. Source: PROTOCOL 3.5.

import { LIMITS } from '../../config/limits.ts'
import { assert } from '../../protocol/errors.ts'
import type { ControlStore } from '../../storage/control.ts'
import type { SegmentId, SegmentStatics, SegmentStore } from '../../storage/segments.ts'

export interface KnownSegment {
  readonly base: number
  /** Its rows reach at least to here; when sealed, exactly. */
  head: number
  sealed: boolean
}

export interface ChainOptions {
  readonly segments: Pick<SegmentStore, 'statics'>
  readonly control: Pick<ControlStore, 'shard'>
}

export class SegmentChain {
  readonly #options: ChainOptions
  /** By shard and number. */
  readonly #known = new Map<number, Map<number, KnownSegment>>()

  constructor(options: ChainOptions) {
    this.#options = options
  }

  known({ shard, segment }: SegmentId): KnownSegment | undefined {
    return this.#known.get(shard)?.get(segment)
  }

  /** Keeps what the statics of a segment said. */
  note(of: SegmentId, { base, head, sealed }: Pick<SegmentStatics, 'base' | 'head' | 'sealed'>) {
    const { shard, segment } = of
    let known = this.#known.get(shard)
    if (known === undefined) this.#known.set(shard, (known = new Map<number, KnownSegment>()))
    const there = known.get(segment)
    if (there) {
      assert(there.base === base, `segment ${segment} of shard ${shard} begins where it began`)
      this.reached(of, head)
      if (sealed) there.sealed = true
      return
    }
    known.set(segment, { base, head, sealed })
    // The one that was noted first: it can be looked at again.
    if (known.size > LIMITS.log.segmentsKnownMax) known.delete(known.keys().next().value!)
  }

  /** A row of this segment ends at `offset`. */
  reached(of: SegmentId, offset: number): void {
    const there = this.known(of)
    if (there && offset > there.head) there.head = offset
  }

  /** The statics at the serial level, kept; null: this segment was never opened. */
  async look(of: SegmentId): Promise<SegmentStatics | null> {
    const statics = await this.#options.segments.statics(of)
    if (statics !== null) this.note(of, statics)
    return statics
  }

  /** What is known of a segment, looked at if need be; null: it was never opened. */
  async ensure(of: SegmentId): Promise<KnownSegment | null> {
    const known = this.known(of)
    if (known !== undefined) return known
    const statics = await this.look(of)
    return statics && (this.known(of) ?? { ...statics })
  }

  /** Of a segment behind which another was opened: it is sealed, where it begins and ends. */
  async sealed(of: SegmentId): Promise<Pick<KnownSegment, 'base' | 'head'>> {
    const known = this.known(of)
    if (known?.sealed) return known
    const statics = await this.#mustLook(of)
    assert(statics.sealed, `segment ${of.segment} of shard ${of.shard} is sealed, others follow`)
    return statics
  }

  /** The last segment that was opened, with its statics. */
  async last(shard: number): Promise<{ segment: number; statics: SegmentStatics }> {
    let segment = Math.max(...(this.#known.get(shard)?.keys() ?? []))
    if (segment === -Infinity) segment = (await this.#options.control.shard(shard)).segment
    let statics = await this.#mustLook({ shard, segment })
    while (statics.sealed) {
      const next = await this.look({ shard, segment: segment + 1 })
      if (next === null) break
      statics = next
      segment++
    }
    return { segment, statics }
  }

  /** The segment in which a row behind `after` is found, or will be. */
  async locate(shard: number, after: number): Promise<number> {
    let segment = this.#highestWithBase(shard, after) ?? (await this.#back(shard, after))
    for (;;) {
      const of = { shard, segment }
      let known: Pick<KnownSegment, 'head' | 'sealed'> | undefined = this.known(of)
      // Behind what was seen of it there may have been a roll, or several.
      if (known === undefined || (!known.sealed && after > known.head)) {
        known = await this.#mustLook(of)
      }
      if (!known.sealed || after < known.head) return segment
      if ((await this.ensure({ shard, segment: segment + 1 })) === null) return segment
      segment++
    }
  }

  #highestWithBase(shard: number, after: number): number | undefined {
    let highest: number | undefined
    for (const [segment, { base }] of this.#known.get(shard) ?? []) {
      if (base <= after && (highest === undefined || segment > highest)) highest = segment
    }
    return highest
  }

  /** Back from the hinted segment, in growing steps and then by halves. */
  async #back(shard: number, after: number): Promise<number> {
    let high = (await this.#options.control.shard(shard)).segment
    if ((await this.#mustLook({ shard, segment: high })).base <= after) return high
    let low = high
    for (let step = 1; ; step *= 2) {
      low = Math.max(1, high - step)
      if ((await this.#mustLook({ shard, segment: low })).base <= after) break
      high = low
    }
    // base(low) <= after < base(high); the first segment begins at 0.
    while (high - low > 1) {
      const middle = (low + high) >>> 1
      if ((await this.#mustLook({ shard, segment: middle })).base <= after) low = middle
      else high = middle
    }
    return low
  }

  async #mustLook(of: SegmentId): Promise<SegmentStatics> {
    const statics = await this.look(of)
    assert(statics !== null, `segment ${of.segment} of shard ${of.shard} has been opened`)
    return statics
  }
}
