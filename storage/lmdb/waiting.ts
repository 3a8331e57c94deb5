// Derived rows that wait for a transaction. Rows that go together share pages and a flush. Its
// bound is the caller's, who keeps at most LIMITS.sharding.unflushedBytesMax above a shard's flush
// offset.

import { LIMITS } from '../../config/limits.ts'
import type { AppendOutcome, DerivedRow } from '../journal.ts'
import { bytesOfRow } from './rows.ts'

/** One call of `write`, all or part of which may be under way. */
interface WaitingWrite {
  readonly shard: number
  readonly epoch: number
  readonly rows: readonly DerivedRow[]
  /** Rows before this one were taken. */
  next: number
  readonly resolve: (outcome: AppendOutcome) => void
}

/** Rows that go into one transaction. */
export interface TakenRows {
  readonly write: WaitingWrite
  readonly shard: number
  readonly epoch: number
  readonly rows: readonly DerivedRow[]
}

export class WaitingRows {
  #writes: WaitingWrite[] = []
  #bytes = 0
  #timer: NodeJS.Timeout | null = null
  #hasWaited = false
  readonly #whenDue: () => void

  /** `whenDue` is called when something has waited for its time, or there is enough of it. */
  constructor(whenDue: () => void) {
    this.#whenDue = whenDue
  }

  get size(): number {
    return this.#writes.length
  }

  get isDue(): boolean {
    return this.#hasWaited || this.#bytes >= LIMITS.lmdb.derivedWaitBytes
  }

  add(shard: number, epoch: number, rows: readonly DerivedRow[]): Promise<AppendOutcome> {
    return new Promise((resolve) => {
      this.#writes.push({ shard, epoch, rows, next: 0, resolve })
      for (const row of rows) this.#bytes += bytesOfRow(row)
      if (this.isDue) this.#whenDue()
      else this.startTimer()
    })
  }

  /** Something is due in LIMITS.lmdb.derivedWaitMs, if no rows are it before. */
  startTimer(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      this.#hasWaited = true
      this.#whenDue()
    }, LIMITS.lmdb.derivedWaitMs)
  }

  /**
   * Rows for the next transaction, oldest first: at most `rowsMax`, at least one, and of
   * LIMITS.lmdb.derivedTransactionBytesMax or one.
   */
  take(rowsMax: number): TakenRows[] {
    const taken: TakenRows[] = []
    let room: number = LIMITS.lmdb.derivedTransactionBytesMax
    let left = Math.max(1, rowsMax)
    while (this.#writes.length > taken.length && room > 0 && left > 0) {
      const write = this.#writes[taken.length]!
      const from = write.next
      while (write.next < write.rows.length && room > 0 && left > 0) {
        room -= bytesOfRow(write.rows[write.next]!)
        left--
        write.next++
      }
      const { shard, epoch } = write
      const isWhole = from === 0 && write.next === write.rows.length
      const rows = isWhole ? write.rows : write.rows.slice(from, write.next)
      taken.push({ write, shard, epoch, rows })
    }
    const isLastWhole = taken.every(({ write }) => write.next === write.rows.length)
    this.#writes.splice(0, isLastWhole ? taken.length : taken.length - 1)
    this.#bytes -= LIMITS.lmdb.derivedTransactionBytesMax - room
    this.#hasWaited = this.#writes.length > 0
    return taken
  }

  /** Says how the transaction ended; when well, a write with rows to come goes on waiting. */
  settle(taken: TakenRows, outcome: AppendOutcome): void {
    const { write } = taken
    if (outcome === 'committed' && write.next < write.rows.length) return
    write.resolve(outcome)
    if (write.next === write.rows.length) return
    for (const row of write.rows.slice(write.next)) this.#bytes -= bytesOfRow(row)
    this.#writes = this.#writes.filter((other) => other !== write)
  }

  /** Ends all that wait with this outcome. */
  refuse(outcome: AppendOutcome): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    for (const write of this.#writes) write.resolve(outcome)
    this.#writes = []
    this.#bytes = 0
  }
}
