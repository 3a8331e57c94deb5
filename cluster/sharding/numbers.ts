// Generated numbers of one shard: shard s owns those integers n whose text (prefix + n) hashes to
// s and takes them in rising order. Unique by construction, found by routing, no lease. Source:
// ARCHITECTURE 4 "A generated number".

import { nextNumberIn } from '../../protocol/ids.ts'

export class Numbers {
  readonly #shard: number
  readonly #shards: number
  readonly #counters = new Map<string, number>()

  constructor(shard: number, shards: number) {
    this.#shard = shard
    this.#shards = shards
  }

  /** The next candidate; a number that a caller has chosen already must be skipped. */
  next(keyType: string, prefix: string): { readonly text: string; readonly n: number } {
    const counter = `${keyType}/${prefix}`
    const keys = { type: keyType, prefix, shard: this.#shard, shards: this.#shards }
    const n = nextNumberIn(keys, this.#counters.get(counter) ?? 0)
    this.#counters.set(counter, n)
    return { text: prefix + String(n), n }
  }

  /** What it would be, without taking it. */
  peek(keyType: string, prefix: string, after = 0): { readonly text: string; readonly n: number } {
    const counter = `${keyType}/${prefix}`
    const was = this.#counters.get(counter)
    this.#counters.set(counter, Math.max(was ?? 0, after))
    const next = this.next(keyType, prefix)
    if (was === undefined) this.#counters.delete(counter)
    else this.#counters.set(counter, was)
    return next
  }

  /** Counters as the log has them. */
  heard(counters: Readonly<Record<string, number>>): void {
    for (const [counter, n] of Object.entries(counters)) {
      if (n > (this.#counters.get(counter) ?? 0)) this.#counters.set(counter, n)
    }
  }

  all(): Record<string, number> {
    return Object.fromEntries(this.#counters)
  }
}
