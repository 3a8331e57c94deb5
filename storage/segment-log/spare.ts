// The next segment file, filled with zeros ahead. Each file's name holds its salt, so that two
// writers never share one.

import { randomBytes } from 'node:crypto'
import type { Disk, DiskFile } from './disk.ts'

const PREFIX = 'spare-'
/** Of files that are on their way to stand for others (rewrite.ts). */
export const REWRITE_PREFIX = 'rewrite-'

export interface Spare {
  readonly name: string
  readonly salt: Buffer
  readonly bytes: number
  readonly file: DiskFile
}

/** What writers before this one left filled. Only names go: one may be a segment file's second. */
export function removeSpares(disk: Disk): void {
  for (const name of disk.list()) {
    if (name.startsWith(PREFIX) || name.startsWith(REWRITE_PREFIX)) disk.remove(name)
  }
}

/** Rejects with what the disk says; then nothing of the file is left. */
export async function fillSpare(disk: Disk, bytes: number): Promise<Spare> {
  const salt = randomBytes(16)
  const name = `${PREFIX}${salt.toString('hex')}`
  try {
    return { name, salt, bytes, file: await disk.create(name, bytes) }
  } catch (error) {
    disk.remove(name)
    throw error
  }
}

export class SpareAhead {
  readonly #disk: Disk
  readonly #mayMake: (bytes: number) => boolean
  #filling: Promise<Spare | null> | null = null

  constructor(disk: Disk, mayMake: (bytes: number) => boolean) {
    this.#disk = disk
    this.#mayMake = mayMake
  }

  /** In the background. A failure is told when the file is taken, by trying again. */
  fill(bytes: number): void {
    this.#filling ??= this.#make(bytes).catch(() => null)
  }

  /** A file of `bytes` at least. */
  async take(bytes: number): Promise<Spare> {
    const spare = await this.#filling
    this.#filling = null
    if (spare && spare.bytes >= bytes) return spare
    if (spare) this.#drop(spare)
    return this.#make(bytes)
  }

  async #make(bytes: number): Promise<Spare> {
    if (this.#mayMake(bytes)) return fillSpare(this.#disk, bytes)
    const message = `${this.#disk.path}: the room that is left is kept back`
    throw Object.assign(new Error(message), { code: 'ENOSPC' })
  }

  async close(): Promise<void> {
    const spare = await this.#filling
    this.#filling = null
    if (spare) this.#drop(spare)
  }

  #drop(spare: Spare): void {
    spare.file.close()
    this.#disk.remove(spare.name)
  }
}
