// The reserve file: space on the disk that is kept back, and freed when the disk is full, so that
// what is already committed can be finished. It stands between the committer and the file system.
// Source: PROTOCOL 3.16.

import { open, rename, rm, stat } from 'node:fs/promises'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { FillRandom } from '../../protocol/ids.ts'

const RESERVE_FILE = 'reserve'
const CHUNK_BYTES = 1024 * 1024

export interface ReserveOptions {
  readonly dir: string
  readonly bytes: number
  readonly random: FillRandom
}

export class Reserve {
  readonly #options: ReserveOptions
  readonly #path: string
  #isHeld = false

  constructor(options: ReserveOptions) {
    this.#options = options
    this.#path = join(options.dir, RESERVE_FILE)
  }

  /** False after `release` until `make` has found room again. */
  get isHeld(): boolean {
    return this.#isHeld
  }

  get bytes(): number {
    return this.#options.bytes
  }

  /** Gives the space back to the disk, at once. */
  release(): void {
    this.#isHeld = false
    rmSync(this.#path, { force: true })
  }

  /** Takes the space, if there is room for it; true when it is held then. */
  async make(): Promise<boolean> {
    const { bytes } = this.#options
    if (this.#isHeld) return true
    const there = await stat(this.#path).catch(() => null)
    this.#isHeld = there?.size === bytes || (await this.#write(bytes))
    return this.#isHeld
  }

  async #write(bytes: number): Promise<boolean> {
    const made = `${this.#path}.new`
    try {
      const file = await open(made, 'w', 0o600)
      try {
        // Random bytes: a file system that compresses would keep nothing back for zeros.
        const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, bytes))
        this.#options.random(chunk)
        for (let left = bytes; left > 0; left -= chunk.length) {
          await file.write(chunk, 0, Math.min(chunk.length, left))
        }
        await file.sync()
        if ((await file.stat()).size !== bytes) throw new Error('the disk took less than asked')
      } finally {
        await file.close()
      }
      await rename(made, this.#path)
      return true
    } catch {
      // Whatever the reason, there is no reserve; the space that was taken goes back.
      await rm(made, { force: true })
      return false
    }
  }
}
