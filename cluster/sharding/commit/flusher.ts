// The flusher of one shard: writes what is derived from committed entries (the actors' entries,
// alias rows, spilled marks, snapshots, the shard's own row) and moves the flush offset. One write
// at a time, in the order of the log, so that whatever is stored, nothing below it is missing; what
// commits meanwhile goes with the next. Until a row is durable its content stays in memory. Source:
// PROTOCOL 3.12.

import { LIMITS } from '../../../config/limits.ts'
import { ReleasingMap } from '../../../protocol/releasing-map.ts'
import type { EntryHead } from '../../../protocol/entry/entry.ts'
import { Outage } from '../../../protocol/outage.ts'
import type { AliasRow, AppendOutcome, DerivedRow } from '../../../storage/journal.ts'
import { entryRow } from '../../../storage/row-expiry.ts'
import { snapshotRow, type SnapshotCapture, type SnapshotRow } from '../turn/activation.ts'
import type { LoadedEntry } from '../turn/loading.ts'
import type { ShardContext } from '../core.ts'
import type { KeyTable } from '../keys/keys.ts'
import type { Numbers } from '../keys/numbers.ts'
import type { ShardSnapshot } from '../recovery/shard-snapshot.ts'
import { markRow } from '../turn/marks.ts'
import type { Mark, SpilledMarks } from '../turn/marks.ts'
import type { DeadLetters } from '../turn/dead-letters.ts'

/** What of a committed entry the flusher needs. */
export interface Flushable {
  readonly entry: EntryHead
  readonly bytes: Uint8Array
  readonly offset: number
  readonly aliases: readonly AliasRow[]
  readonly spilled: readonly Mark[]
  readonly snapshot: SnapshotCapture | null
}

/** Whose rows are written. */
export interface Flushed {
  readonly number: number
  readonly epoch: number
  readonly context: Pick<ShardContext, 'clock' | 'journal' | 'log'>
  readonly keys: KeyTable
  readonly numbers: Numbers
  readonly spilled: SpilledMarks
  clockMs(): number
  snapshot(offset: number): ShardSnapshot
}

export interface FlusherOptions {
  readonly shard: Flushed
  readonly deadLetters: DeadLetters
  /** Up to here the derived rows are durable. */
  readonly flush: number
  /** The store refused: the epoch is another's, or the disk is full. It is tried again. */
  readonly onRefused: (outcome: Exclude<AppendOutcome, 'committed'>) => void
  /** More has become durable. */
  readonly onDurable: () => void
}

/** Rows of one or several committed groups, on their way or waiting. */
interface Batch {
  readonly rows: DerivedRow[]
  /** Rows that may be there only when all of the others are. */
  readonly snapshots: SnapshotRow[]
  readonly flushing: Flushing[]
  /** Counters of numbers that its entries have moved: one row each. */
  readonly counters: Set<string>
  /** When its first group was committed. */
  readonly sinceMs: number
  upTo: number
  bytes: number
}

/** What of a committed entry is needed until its rows are durable; the rest may go. */
interface Flushing {
  readonly actorId: string | null
  readonly offset: number
  readonly aliases: readonly AliasRow[]
}

interface StoredWaiter {
  readonly offset: number
  readonly resolve: () => void
}

export class Flusher {
  readonly #options: FlusherOptions
  /** Up to here every derived row is durable. */
  flushed: number
  /** Up to here the store says so: what a claim starts its replay from. */
  #stored: number
  #storedAtMs: number
  readonly #tail = new ReleasingMap<string, LoadedEntry[]>()
  #tailBytes = 0
  /** A write is under way: of this batch, or, with none, of the flush offset. */
  #isWriting = false
  #flying: Batch | null = null
  readonly #waiting: Batch[] = []
  #storedWaiters: StoredWaiter[] = []
  #storeTimer: (() => void) | null = null
  #stopped = false
  readonly #outage: Outage

  constructor(options: FlusherOptions) {
    this.#options = options
    this.#outage = new Outage({
      log: options.shard.context.log,
      now: () => this.#nowMs(),
      failing: 'derived rows are not written',
      back: 'derived rows are written again',
    })
    this.flushed = options.flush
    this.#stored = options.flush
    this.#storedAtMs = this.#nowMs()
  }

  #nowMs(): number {
    return this.#options.shard.context.clock.monotonicMs()
  }

  /** Committed entries of an actor whose rows are not durable yet, oldest first. */
  tail(actorId: string): readonly LoadedEntry[] {
    return this.#tail.get(actorId) ?? NONE
  }

  /** What a claim would replay from. */
  get stored(): number {
    return this.#stored
  }

  get tailBytes(): number {
    return this.#tailBytes
  }

  get idle(): boolean {
    return !this.#isWriting
  }

  /** Too much, or too old, is committed and not durable: groups wait (PROTOCOL 3.10). */
  get isBehind(): boolean {
    const oldest = this.#flying ?? this.#waiting[0]
    if (oldest === undefined) return false
    return (
      this.#tailBytes > LIMITS.sharding.unflushedBytesMax ||
      this.#nowMs() - oldest.sinceMs > LIMITS.sharding.unflushedMsMax
    )
  }

  stop(): void {
    this.#stopped = true
    this.#storeTimer?.()
    for (const { resolve } of this.#storedWaiters.splice(0)) resolve()
  }

  /**
   * Writes what the derived rows lack of a tail that a claim has read. The head may be higher than
   * its last entry: behind an accepted loss the log goes on higher (PROTOCOL 3.16).
   */
  replayed(tail: readonly Flushable[], marks: readonly DerivedRow[], head: number): void {
    const inherited = [...this.#options.shard.numbers.inherited]
    if (tail.length === 0 && inherited.length === 0) {
      this.flushed = head
      this.#storeAtRest()
      return
    }
    const first = this.#batch()
    first.rows.push(...marks)
    for (const counter of inherited) first.counters.add(counter)
    for (const one of tail) this.#rowsOf(one, this.#batch())
    this.#waiting.at(-1)!.upTo = head
    void this.#run()
  }

  /** Writes the rows of a committed group. */
  committed(group: readonly Flushable[]): void {
    for (const one of group) this.#rowsOf(one, this.#batch())
    if (!this.#isWriting) void this.#run()
  }

  /** The batch that still takes rows. */
  #batch(): Batch {
    const last = this.#waiting.at(-1)
    if (last && last.bytes < LIMITS.sharding.flushBatchBytesMax) return last
    const sinceMs = this.#nowMs()
    const next: Batch = {
      ...{ rows: [], snapshots: [], flushing: [], counters: new Set<string>() },
      ...{ sinceMs, upTo: 0, bytes: 0 },
    }
    this.#waiting.push(next)
    return next
  }

  #rowsOf({ entry, offset, bytes, aliases, spilled, snapshot }: Flushable, batch: Batch): void {
    const { rows } = batch
    batch.upTo = offset
    batch.bytes += bytes.length
    this.#tailBytes += bytes.length
    const actorId = entry.n > 0 ? entry.p : null
    if (actorId !== null) {
      rows.push(entryRow(entry, offset, bytes))
      const known = this.#tail.get(actorId)
      if (known) known.push({ offset, body: bytes })
      else this.#tail.set(actorId, [{ offset, body: bytes }])
    }
    for (const row of aliases) rows.push({ kind: 'alias', offset, row })
    if (entry.g) for (const counter in entry.g) batch.counters.add(counter)
    for (const mark of spilled) rows.push(markRow(entry.p, mark, offset))
    if (snapshot) this.#snapshot(snapshot, entry.p, batch)
    const parked = this.#options.deadLetters.apply(entry, offset)
    if (parked) rows.push(parked)
    batch.flushing.push({ actorId, offset, aliases })
  }

  #snapshot(capture: SnapshotCapture, actorId: string, batch: Batch): void {
    // Where rows go by the shard's clock the entries stay for as long as anybody may ask.
    const { expire } = this.#options.shard.context.journal.derived
    if (capture.forgottenFrom > 0 && expire !== undefined) return
    const row = snapshotRow(capture, actorId, this.#options.shard.clockMs())
    const [{ activation }, { length }] = [capture, row.body]
    activation.snapshotBytes = length
    const since = activation.bytesSinceSnapshot * LIMITS.sharding.stateGrowthMax
    activation.stateBytesBound = Math.max(activation.stateBytesBound, length + since)
    if (length > LIMITS.sharding.snapshotBytesMax) this.#giveUp([row])
    else batch.snapshots.push(row)
  }

  async #run(): Promise<void> {
    this.#isWriting = true
    for (;;) {
      const batch = this.#waiting.shift()
      if (batch === undefined) break
      this.#flying = batch
      const { numbers } = this.#options.shard
      if (!numbers.isSettled(batch.counters) && !(await this.#settled(batch))) return
      for (const counter of batch.counters) {
        batch.rows.push({ kind: 'alias', offset: batch.upTo, row: numbers.rowOf(counter) })
      }
      if (!(await this.#written(batch.rows))) return
      // An actor's snapshot comes after its entries and marks (PROTOCOL 3.12).
      if (batch.snapshots.length > 0 && !(await this.#tried(batch.snapshots))) return
      this.#flying = null
      this.#durable(batch)
      if (this.#isStoreDue && !(await this.#store())) return
    }
    this.#isWriting = false
    this.#storeLater()
  }

  /** Rows of counters never go back, whatever an older version says. False: it has stopped. */
  async #settled({ counters }: Batch): Promise<boolean> {
    const { number, numbers } = this.#options.shard
    while (!this.#stopped) {
      try {
        await numbers.settle(counters)
        return !this.#stopped
      } catch (error) {
        this.#outage.failed({ err: error, shard: number })
        await this.#pause()
      }
    }
    return false
  }

  /** Writes rows until they are there: they are idempotent. False: this flusher has stopped. */
  async #written(rows: readonly DerivedRow[]): Promise<boolean> {
    while (!this.#stopped) {
      if (await this.#put(rows)) return !this.#stopped
      await this.#pause()
    }
    return false
  }

  /**
   * Writes snapshots, as often as may help: nothing needs them, a load has the entries. One that
   * the engine refuses for good holds up no other. False: this flusher has stopped.
   */
  async #tried(snapshots: readonly SnapshotRow[]): Promise<boolean> {
    let left = snapshots
    for (let attempt = 1; left.length > 0 && !this.#stopped; attempt++) {
      if (attempt > LIMITS.sharding.snapshotAttemptsMax) {
        this.#giveUp(left)
        break
      }
      if (attempt > 1) await this.#pause()
      const failed: SnapshotRow[] = []
      for (const some of attempt === 1 ? [left] : left.map((row) => [row])) {
        if (!this.#stopped && !(await this.#put(some))) failed.push(...some)
      }
      left = failed
    }
    return !this.#stopped
  }

  #giveUp(snapshots: readonly SnapshotRow[]): void {
    const { shard } = this.#options
    for (const { actorId, body } of snapshots) {
      const fields = { shard: shard.number, bytes: body.length, actor: actorId }
      shard.context.log.error(fields, 'a snapshot was given up: its actor is read from its entries')
    }
  }

  /** True: the rows are durable. */
  async #put(rows: readonly DerivedRow[]): Promise<boolean> {
    const { shard, onRefused } = this.#options
    const { derived } = shard.context.journal
    let outcome: AppendOutcome = 'unknown'
    try {
      outcome = await derived.write(shard.number, shard.epoch, rows)
    } catch (error) {
      this.#outage.failed({ err: error, shard: shard.number })
    }
    if (outcome === 'committed') {
      this.#outage.answered()
      return true
    }
    if (!this.#stopped) onRefused(outcome)
    return false
  }

  #pause(): Promise<void> {
    const { clock } = this.#options.shard.context
    return new Promise((resolve) => void clock.after(LIMITS.sharding.flushRetryMs, resolve))
  }

  #durable(batch: Batch): void {
    const { shard } = this.#options
    this.flushed = batch.upTo
    this.#tailBytes -= batch.bytes
    for (const { actorId, offset, aliases } of batch.flushing) {
      if (aliases.length > 0) shard.keys.flushed(aliases, offset)
      if (actorId !== null) this.#forget(actorId, batch.upTo)
    }
    shard.numbers.flushed(batch.counters, batch.upTo)
    shard.spilled.flushed(batch.upTo)
    this.#options.onDurable()
  }

  #forget(actorId: string, upTo: number): void {
    const tail = this.#tail.get(actorId)
    if (!tail || tail[0]!.offset > upTo) return
    if (tail.at(-1)!.offset <= upTo) this.#tail.delete(actorId)
    else this.#tail.set(actorId, tail.slice(tail.findIndex(({ offset }) => offset > upTo)))
  }

  /** Now and then: what lies above is replayed by the next owner. */
  get #isStoreDue(): boolean {
    if (this.flushed === this.#stored) return false
    return (
      this.#storedWaiters.length > 0 ||
      this.flushed - this.#stored >= LIMITS.sharding.flushStoredEntries ||
      this.#nowMs() - this.#storedAtMs >= LIMITS.sharding.flushStoredMs
    )
  }

  /** The shard's own row, and only then the offset that says so. */
  async #store(): Promise<boolean> {
    const { shard } = this.#options
    const offset = this.flushed
    this.#storedAtMs = this.#nowMs()
    const body = Buffer.from(JSON.stringify(shard.snapshot(offset)))
    if (!(await this.#written([{ kind: 'shard', offset, body }]))) return false
    if (!(await this.#written([{ kind: 'consumer', consumer: 'flush', offset }]))) return false
    this.#stored = offset
    const done = this.#storedWaiters.filter((waiter) => waiter.offset <= offset)
    if (done.length === 0) return true
    this.#storedWaiters = this.#storedWaiters.filter((waiter) => waiter.offset > offset)
    for (const { resolve } of done) resolve()
    return true
  }

  /** What comes to rest is stored as well, so that whoever claims it next has little to replay. */
  #storeLater(): void {
    if (this.#stored === this.flushed || this.#storeTimer !== null || this.#stopped) return
    const { clock } = this.#options.shard.context
    const leftMs = this.#storedAtMs + LIMITS.sharding.flushStoredMs - this.#nowMs()
    this.#storeTimer = clock.after(Math.max(0, leftMs), () => {
      this.#storeTimer = null
      this.#storeAtRest()
    })
  }

  #storeAtRest(): void {
    if (this.#isWriting || this.#stopped || this.#stored === this.flushed) return
    // While it is stored, what commits waits as it does behind any other write.
    this.#isWriting = true
    void this.#store().then((isStored) => (isStored ? this.#run() : undefined))
  }

  /** Resolves when the flush offset that the store has is at `offset`, or after so long. */
  storedTo(offset: number, withinMs: number): Promise<void> {
    if (this.#stored >= offset || this.#stopped) return Promise.resolve()
    return new Promise((resolve) => {
      const waiter = { offset, resolve: () => (cancel(), resolve()) }
      const cancel = this.#options.shard.context.clock.after(withinMs, () => {
        this.#storedWaiters = this.#storedWaiters.filter((other) => other !== waiter)
        resolve()
      })
      this.#storedWaiters.push(waiter)
      this.#storeAtRest()
    })
  }
}

const NONE: readonly LoadedEntry[] = []
