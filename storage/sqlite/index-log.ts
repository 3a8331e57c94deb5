// How long SQLite's log of the embedded index gets. Past a size it is copied into the file by
// itself, but it is begun anew only when no reader is at it; of readers that overlap one always is,
// and then it would grow for as long as they come. Source: https://sqlite.org/wal.html "Avoiding
// Excessively Large WAL Files", PROTOCOL 3.16.

import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'

export interface IndexLogOptions {
  readonly db: DatabaseSync
  /** The log's file. */
  readonly file: string
  /** Past so many bytes it is copied by itself; it is tried again after so many more. */
  readonly logBytes: number
  /** Past so many the writer waits for readers. */
  readonly logBytesMax: number
}

export class IndexLog {
  readonly #options: IndexLogOptions
  #nextBytes: number

  constructor(options: IndexLogOptions) {
    this.#options = options
    this.#nextBytes = options.logBytesMax
  }

  /**
   * Called before a transaction is begun. Past the bound it waits until those who read now are done
   * (no longer than a lock is waited for; a plan takes no longer either), and the log is cut to
   * nothing. Who begins to read meanwhile has all of it in the file already.
   */
  bound(): void {
    const { db, logBytes, logBytesMax } = this.#options
    const bytes = this.#bytes()
    if (bytes < this.#nextBytes) return
    // Where it fails the transaction goes on: it is the next one's fault again, or gone by then.
    this.#nextBytes = bytes + logBytes
    db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()
    if (this.#bytes() < logBytesMax) this.#nextBytes = logBytesMax
  }

  #bytes(): number {
    return statSync(this.#options.file, { throwIfNoEntry: false })?.size ?? 0
  }
}
