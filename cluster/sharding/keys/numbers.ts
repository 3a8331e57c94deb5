// Generated numbers of one shard: shard s owns those integers n whose text (prefix + n) hashes to s
// and takes them in rising order. Unique by construction, found by routing, no lease. How far a
// prefix has come is a row of its own, read when it is needed: callers choose prefixes, and what
// they choose costs rows, not memory. Source: ARCHITECTURE 4 "A generated number", PROTOCOL 3.0
// `alias`.

import { LIMITS } from '../../../config/limits.ts'
import { RequestError, assert } from '../../../protocol/errors.ts'
import { nextNumberIn } from '../../../protocol/ids.ts'
import { COUNTER_SUFFIX } from '../../../storage/journal.ts'
import type { AliasRow, DerivedReader, Maybe } from '../../../storage/journal.ts'
import type { ShardSnapshot } from '../recovery/shard-snapshot.ts'
import { boundaryAbove } from './number-search.ts'

/** Numbers of one key type that begin with a prefix. */
export interface Series {
  readonly keyType: string
  readonly prefix: string
  /** The name of their counter in entries. */
  readonly counter: string
}

export function seriesOf(keyType: string, prefix: string): Series {
  return { keyType, prefix, counter: `${keyType}/${prefix}` }
}

type CountersOfShard = Pick<ShardSnapshot, 'counters' | 'countersTold'>

export interface NumbersOptions {
  readonly shard: number
  readonly shards: number
  readonly derived: Pick<DerivedReader, 'alias'>
  /** 0 <= x < 1: where a search looks. */
  readonly random: () => number
}

export class Numbers {
  readonly #options: NumbersOptions
  /** Highest number handed out or passed over, of the counters used lately. */
  readonly #known = new Map<string, number>()
  /** Counters that entries have moved and whose rows are not durable; the store's are older. */
  readonly #unflushed = new Map<string, { readonly n: number; readonly offset: number }>()
  /** One read of a row at a time: nobody moves a counter that nobody knows. */
  readonly #reads = new Map<string, Promise<void>>()
  readonly #searches = new Map<string, Promise<void>>()
  /** What an older version kept in the shard's own row, until rows of their own are durable. */
  readonly #inherited = new Map<string, number>()
  /** Those that an owner of an older version is told of: a bounded number of those moved last. */
  readonly #told = new Map<string, number>()
  /**
   * An older version may have moved them, without a look at their rows: whichever is higher counts,
   * once the row is read.
   */
  readonly #unsettled = new Set<string>()

  constructor(options: NumbersOptions) {
    this.#options = options
  }

  /** Nothing when a number may be asked for at once; else when to ask again. */
  ready({ counter }: Series): Maybe<void> {
    const search = this.#searches.get(counter) ?? this.#reads.get(counter)
    if (search !== undefined) return search
    if (this.#known.has(counter)) return
    const unflushed = this.#unflushed.get(counter)
    if (unflushed && !this.#unsettled.has(counter)) return this.#know(counter, unflushed.n)
    return this.#read(counter)
  }

  #read(counter: string): Maybe<void> {
    const running = this.#reads.get(counter)
    if (running !== undefined) return running
    const { keyType, key } = placeOf(this.#options.shard, counter)
    const row = this.#options.derived.alias(keyType, key)
    if (!(row instanceof Promise)) return this.#found(counter, row)
    const read = row
      .then(
        (found) => this.#found(counter, found),
        () => {
          const text = 'the last number could not be read; nothing was done, try again'
          throw new RequestError('UNAVAILABLE', text)
        },
      )
      .finally(() => this.#reads.delete(counter))
    this.#reads.set(counter, read)
    return read
  }

  #found(counter: string, row: AliasRow | null): void {
    const unflushed = this.#unflushed.get(counter)
    const n = Math.max(numberIn(row), unflushed?.n ?? 0)
    this.#know(counter, n)
    if (!this.#unsettled.delete(counter)) return
    if (unflushed) this.#unflushed.set(counter, { n, offset: unflushed.offset })
    if (this.#told.has(counter)) this.#told.set(counter, n)
  }

  isSettled(counters: Iterable<string>): boolean {
    if (this.#unsettled.size > 0) {
      for (const counter of counters) if (this.#unsettled.has(counter)) return false
    }
    return true
  }

  /** Reads what these counters need before they are written. Rejects when the store is away. */
  async settle(counters: Iterable<string>): Promise<void> {
    const open = [...counters].filter((counter) => this.#unsettled.has(counter))
    while (open.length > 0) {
      const some = open.splice(0, LIMITS.sharding.recoveryReadsMax)
      await Promise.all(some.map(async (counter) => this.#read(counter)))
    }
  }

  /** The next candidate of a ready series; one that a caller has chosen already is passed over. */
  next(series: Series): { readonly text: string; readonly n: number } {
    const found = this.peek(series)
    this.#known.set(series.counter, found.n)
    return found
  }

  /** What it would be, without taking it. */
  peek(series: Series, after = 0): { readonly text: string; readonly n: number } {
    const known = this.#known.get(series.counter)
    assert(known !== undefined, 'a counter is read before a number is asked for')
    const n = nextNumberIn(this.#keysOf(series), Math.max(known, after))
    return { text: series.prefix + String(n), n }
  }

  /**
   * A candidate was taken: moves the counter to where numbers are free again. One search serves all
   * who meet the same obstacle; `isTaken` looks one number up. Rejects when none is found.
   */
  skip(series: Series, isTaken: (text: string) => Maybe<boolean>): Promise<void> {
    const { counter } = series
    const running = this.#searches.get(counter)
    if (running !== undefined) return running
    const after = this.#known.get(counter) ?? 0
    const keys = this.#keysOf(series)
    const { random } = this.#options
    const search = boundaryAbove({
      after,
      nextAbove: (n) => nextNumberIn(keys, n),
      isTaken: (n) => isTaken(series.prefix + String(n)),
      random,
    })
      .then((free) => this.#know(counter, free - 1))
      .finally(() => this.#searches.delete(counter))
    this.#searches.set(counter, search)
    return search
  }

  /** Raises an entry's counters to what was handed out beside it: in the log they only rise. */
  highest(counters: Record<string, number>): Record<string, number> {
    for (const counter in counters) {
      const known = this.#known.get(counter)
      if (known !== undefined && known > counters[counter]!) counters[counter] = known
    }
    return counters
  }

  /** Counters as an entry has them. */
  heard(counters: Readonly<Record<string, number>>, offset: number): void {
    for (const counter in counters) {
      const n = Math.max(counters[counter]!, this.#unflushed.get(counter)?.n ?? 0)
      this.#unflushed.set(counter, { n, offset })
      this.#tell(counter, n)
    }
  }

  /** Counters as an entry of an owner before has them. */
  replayed(counters: Readonly<Record<string, number>>, offset: number): void {
    for (const counter in counters) this.#unsettled.add(counter)
    this.heard(counters, offset)
  }

  /** Counters of a shard's row: what isn't as it was told has been moved by an older version. */
  inherit({ counters, countersTold = {} }: CountersOfShard, offset: number): void {
    for (const counter in counters) {
      const n = counters[counter]!
      if (countersTold[counter] === n) this.#tell(counter, n)
      else {
        this.#inherited.set(counter, n)
        this.replayed({ [counter]: n }, offset)
      }
    }
  }

  /** Counters whose rows have to be written, whatever the tail says. */
  get inherited(): Iterable<string> {
    return this.#inherited.keys()
  }

  /** What the shard's row says of them. */
  told(): Required<CountersOfShard> {
    const countersTold = Object.fromEntries(this.#told)
    const counters = { ...Object.fromEntries(this.#inherited), ...countersTold }
    for (const counter of this.#inherited.keys()) delete countersTold[counter]
    return { counters, countersTold }
  }

  #tell(counter: string, n: number): void {
    if (!this.#told.has(counter) && this.#told.size >= LIMITS.sharding.countersToldMax) {
      const [oldest] = this.#told.keys()
      this.#told.delete(oldest!)
    }
    this.#told.set(counter, n)
  }

  /** The row of a counter that entries have moved. */
  rowOf(counter: string): AliasRow {
    const unflushed = this.#unflushed.get(counter)
    assert(unflushed !== undefined, 'a counter is remembered until its row is durable')
    const messageId = String(unflushed.n)
    const claim = { actorId: NOBODY, messageId, confirmed: true, clock: 0 }
    return { ...placeOf(this.#options.shard, counter), claims: [claim] }
  }

  /** The rows of these counters are durable up to `offset`. */
  flushed(counters: Iterable<string>, offset: number): void {
    for (const counter of counters) {
      this.#inherited.delete(counter)
      if ((this.#unflushed.get(counter)?.offset ?? Infinity) > offset) continue
      this.#unflushed.delete(counter)
    }
  }

  #know(counter: string, n: number): void {
    const known = this.#known.get(counter) ?? 0
    this.#known.set(counter, Math.max(known, n))
    if (this.#known.size <= LIMITS.sharding.countersKnownMax) return
    for (const oldest of this.#known.keys()) {
      if (oldest === counter || this.#searches.has(oldest)) continue
      this.#known.delete(oldest)
      return
    }
  }

  #keysOf({ keyType, prefix }: Series) {
    const { shard, shards } = this.#options
    return { type: keyType, prefix, shard, shards }
  }
}

const NOBODY = '00000000-0000-0000-0000-000000000000'

/** Where a counter's row stands: each shard has its own for a prefix. */
function placeOf(shard: number, counter: string): { keyType: string; key: string } {
  const slash = counter.indexOf('/')
  const keyType = counter.slice(0, slash) + COUNTER_SUFFIX
  return { keyType, key: `${shard}/${counter.slice(slash + 1)}` }
}

function numberIn(row: AliasRow | null): number {
  return row === null ? 0 : Number(row.claims[0]!.messageId)
}
