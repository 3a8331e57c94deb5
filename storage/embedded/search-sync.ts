// When the embedded index waits for the disk. A load that comes fast is written without a sync:
// SQLite's syncs of its log and file stand in the way of the journal's, for which callers wait. All
// that is then needed after the machine has gone down is in the journal, and the mark says that the
// index has to be filled again. As soon as the load is over everything is synced and the mark goes.
// It stands between the writer and the file. Source: PROTOCOL 3.16.

import type { DatabaseSync } from 'node:sqlite'
import { LIMITS } from '../../config/limits.ts'
import { CHECKPOINT_PAGES } from './search-file.ts'
import type { UnsyncedMark } from './search-mark.ts'

export class IndexSync {
  readonly #db: DatabaseSync
  readonly #mark: UnsyncedMark
  #isUnsynced: boolean
  /** Rows written since it was last looked whether a load lasts. */
  #rows = 0

  /** `isUnsynced`: the mark stands, of the life before. */
  constructor(db: DatabaseSync, mark: UnsyncedMark, isUnsynced: boolean) {
    this.#db = db
    this.#mark = mark
    this.#isUnsynced = isUnsynced
    if (isUnsynced) db.exec('PRAGMA synchronous = OFF')
  }

  /** Before a transaction of so many rows. */
  willWrite(rows: number): void {
    this.#rows += rows
    if (this.#isUnsynced || this.#rows < LIMITS.indexUnsyncedRows || !this.#mark.canBeSet) return
    try {
      this.#mark.set()
    } catch {
      // No room for a mark: it goes on with syncs, and tries again with the next rows.
      return
    }
    this.#isUnsynced = true
    this.#db.exec('PRAGMA synchronous = OFF')
  }

  /** Called every LIMITS.indexSyncLookMs: syncs once no load has come for so long. */
  look(): void {
    const rows = this.#rows
    this.#rows = 0
    if (this.#isUnsynced && rows < LIMITS.indexUnsyncedRows / 10) this.settle()
  }

  /**
   * Brings everything to the disk and takes the mark away; leaves both as they are when a reader
   * still reads an older state. Throws when the disk fails: the file can't be relied on then.
   */
  settle(): void {
    if (!this.#isUnsynced) return
    // The checkpoint that a commit does by itself keeps its failure to itself.
    this.#db.exec('PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0')
    try {
      if (!this.#isWritten()) return
      this.#mark.clear()
      this.#isUnsynced = false
    } finally {
      const level = this.#isUnsynced ? 'OFF' : 'NORMAL'
      this.#db.exec(
        `PRAGMA synchronous = ${level}; PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`,
      )
    }
  }

  /**
   * A commit syncs the whole log, and a checkpoint of all of it the whole file; where there is
   * nothing to commit or to copy SQLite syncs nothing.
   */
  #isWritten(): boolean {
    this.#db.exec(`INSERT OR REPLACE INTO meta VALUES ('settled', random())`)
    const done = this.#db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get()
    return done?.['busy'] === 0 && done['log'] === done['checkpointed']
  }
}
