// The mark beside the index file that says: what was written last may not be on the disk, and the
// kernel that has it is this one. It stands between the index's writer, which spares the disk while
// a load lasts, and the next start. A process that dies loses nothing of what the kernel has; a
// machine that goes down may lose any of it, in any order, and a file in which pages are missing
// need not look damaged. Source: PROTOCOL 3.16.

import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { syncFolder, writeSynced } from './synced-file.ts'

/** Name of the mark in the data directory. */
const FILE = 'graph.unsynced'

export class UnsyncedMark {
  readonly #dir: string
  readonly #file: string
  readonly #bootId: string | null

  /** `bootId`: of the kernel that runs now; null: not known, so that no mark can be set. */
  constructor(dir: string, bootId: string | null) {
    this.#dir = dir
    this.#file = join(dir, FILE)
    this.#bootId = bootId
  }

  /** True where a machine that went down can be told from a process that did. */
  get canBeSet(): boolean {
    return this.#bootId !== null
  }

  /**
   * What the life before left. `synced`: all is on the disk; `kept`: the kernel still has the rest;
   * `lost`: the machine went down since, or that can't be known.
   */
  found(): 'synced' | 'kept' | 'lost' {
    if (!existsSync(this.#file)) return 'synced'
    return readFileSync(this.#file, 'utf8').trim() === this.#bootId ? 'kept' : 'lost'
  }

  /** On the disk when this returns. */
  set(): void {
    writeSynced(this.#file, `${this.#bootId}\n`)
    syncFolder(this.#dir)
  }

  /** Everything is on the disk, or nothing is left that would have to be. */
  clear(): void {
    rmSync(this.#file, { force: true })
    syncFolder(this.#dir)
  }
}
