// Numbers that the main thread and the index's worker thread share: heads as they are committed,
// and how far the index is. A commit costs the main thread a store, and a message only when the
// worker sleeps. Source: PROTOCOL 3.13, ARCHITECTURE 2 "the main thread tells it just the new
// head".

import type { Progress } from '../../../cluster/feed/lag.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { assert } from '../../../protocol/errors.ts'

/** Counters that the worker keeps. Times are in microseconds. */
const COUNTERS = [
  'entries',
  'writes',
  'batches',
  'batchUs',
  'failures',
  'resets',
  'parked',
] as const

export type ProgressCounter = (typeof COUNTERS)[number]

/** Places of the flags. */
const ASLEEP = 0
const AWAITED = 1
const READY = 2
const FLAGS = 3

/** Numbers a shard has: head, applied offset, time of the newest applied entry. */
const PER_SHARD = 3

/** One side's view of the shared numbers. Both sides are made of the same buffer. */
export class SharedProgress implements Progress {
  readonly buffer: SharedArrayBuffer
  readonly shards: number
  readonly #numbers: BigInt64Array
  readonly #flags: Int32Array

  constructor(shards: number, buffer?: SharedArrayBuffer) {
    const numbers = (shards + 1) * PER_SHARD + COUNTERS.length
    const bytes = numbers * 8 + FLAGS * 4
    this.shards = shards
    this.buffer = buffer ?? new SharedArrayBuffer(bytes)
    assert(this.buffer.byteLength === bytes, 'both sides share numbers of as many shards')
    this.#numbers = new BigInt64Array(this.buffer, 0, numbers)
    this.#flags = new Int32Array(this.buffer, numbers * 8, FLAGS)
  }

  #at(shard: number): number {
    assert(shard >= SYSTEM_SHARD && shard < this.shards, `shard ${shard} is one of this store`)
    return (shard - SYSTEM_SHARD) * PER_SHARD
  }

  head(shard: number): number {
    return Number(Atomics.load(this.#numbers, this.#at(shard)))
  }

  setHead(shard: number, head: number): void {
    Atomics.store(this.#numbers, this.#at(shard), BigInt(head))
  }

  /** All heads, `system` included, put into `heads`. */
  heads(heads = new Map<number, number>()): Map<number, number> {
    for (let shard = SYSTEM_SHARD; shard < this.shards; shard++) heads.set(shard, this.head(shard))
    return heads
  }

  applied(shard: number): number {
    return Number(Atomics.load(this.#numbers, this.#at(shard) + 1))
  }

  appliedTimeMs(shard: number): number {
    return Number(Atomics.load(this.#numbers, this.#at(shard) + 2))
  }

  setApplied(shard: number, offset: number, timeMs: number): void {
    Atomics.store(this.#numbers, this.#at(shard) + 2, BigInt(timeMs))
    Atomics.store(this.#numbers, this.#at(shard) + 1, BigInt(offset))
  }

  counter(name: ProgressCounter): number {
    return Number(Atomics.load(this.#numbers, this.#counterAt(name)))
  }

  count(name: ProgressCounter, by: number): void {
    Atomics.add(this.#numbers, this.#counterAt(name), BigInt(Math.round(by)))
  }

  set(name: ProgressCounter, value: number): void {
    Atomics.store(this.#numbers, this.#counterAt(name), BigInt(value))
  }

  #counterAt(name: ProgressCounter): number {
    return (this.shards + 1) * PER_SHARD + COUNTERS.indexOf(name)
  }

  /** The worker says that it is going to sleep. It must look at the heads once more after this. */
  fallAsleep(): void {
    Atomics.store(this.#flags, ASLEEP, 1)
  }

  /** True for the one caller who must wake the worker. */
  takeAsleep(): boolean {
    if (Atomics.load(this.#flags, ASLEEP) === 0) return false
    return Atomics.exchange(this.#flags, ASLEEP, 0) === 1
  }

  /** True: somebody waits for the index, so the worker tells of each batch. */
  get awaited(): boolean {
    return Atomics.load(this.#flags, AWAITED) === 1
  }

  set awaited(value: boolean) {
    Atomics.store(this.#flags, AWAITED, value ? 1 : 0)
  }

  /** False while the index is filled anew: it would give answers with holes. */
  get ready(): boolean {
    return Atomics.load(this.#flags, READY) === 1
  }

  set ready(value: boolean) {
    Atomics.store(this.#flags, READY, value ? 1 : 0)
  }
}
