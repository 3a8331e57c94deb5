// The derived rows in memory: the twin of what drivers keep beside the log. The registers outlive
// it as a disk does. Source: PROTOCOL 3.0, 3.12.

import { assert } from '../../protocol/errors.ts'
import type {
  AppendOutcome,
  DerivedRow,
  DerivedStore,
  EntryRange,
  EntryRow,
  Maybe,
} from '../journal.ts'
import type { MemoryRegisters } from './registers.ts'

export interface MemoryDerivedOptions {
  readonly registers: MemoryRegisters
  /** The shard's epoch in this store; without it nothing is fenced, late rows lose by offset. */
  readonly epochOf?: (shard: number) => number
  /** An outcome is the answer, and nothing is in; null lets the write go on. */
  readonly beforeWrite?: (shard: number, rows: readonly DerivedRow[]) => Maybe<AppendOutcome | null>
}

export class MemoryDerived implements DerivedStore {
  readonly #options: MemoryDerivedOptions
  readonly #registers: MemoryRegisters

  constructor(options: MemoryDerivedOptions) {
    this.#options = options
    this.#registers = options.registers
  }

  async write(shard: number, epoch: number, rows: readonly DerivedRow[]): Promise<AppendOutcome> {
    const before = await this.#options.beforeWrite?.(shard, rows)
    if (before !== null && before !== undefined) return before
    if ((this.#options.epochOf?.(shard) ?? 0) > epoch) return 'fenced'
    for (const row of rows) this.#registers.put(shard, row)
    return 'committed'
  }

  alias(keyType: string, key: string) {
    return this.#registers.alias(keyType, key)
  }

  snapshot(actorId: string) {
    return this.#registers.snapshot(actorId)
  }

  entries(actorId: string, range: EntryRange): readonly EntryRow[] {
    return this.#registers.entries(actorId, range)
  }

  mark(actorId: string, day: number, messageId: string) {
    assert(day >= 0, 'the clock of a shard starts on day 0')
    return this.#registers.mark(actorId, day, messageId)
  }

  shard(shard: number) {
    return this.#registers.shard(shard)
  }

  consumer(shard: number, consumer: string) {
    return this.#registers.consumer(shard, consumer)
  }

  parked(shard: number, consumer: string) {
    return this.#registers.parked(shard, consumer)
  }

  image() {
    return this.#registers.image()
  }

  actors(after: string | null, limit: number): readonly string[] {
    return this.#registers.actors(after, limit)
  }

  expire(clockOf: (shard: number) => number | null): Promise<void> {
    this.#registers.expire(clockOf)
    return Promise.resolve()
  }

  trimImages(): Promise<void> {
    this.#registers.trimImages()
    return Promise.resolve()
  }
}
