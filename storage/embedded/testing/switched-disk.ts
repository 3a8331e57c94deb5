// A log as it was, and from some step of its reader on as it is now: what another process gives
// back while a backup reads. Files that have gone since are cut, also for who has them open.

import type { Disk, DiskFile } from '../../segment-log/disk.ts'
import { NodeDisk } from '../../segment-log/node-disk.ts'

export class SwitchedDisk implements Disk {
  readonly path: string
  readonly #before: Disk
  readonly #now: Disk
  #left: number

  constructor(before: string, now: string, steps: number) {
    this.#before = new NodeDisk(before)
    this.#now = new NodeDisk(now)
    this.path = before
    this.#left = steps
  }

  get isSwitched(): boolean {
    return this.#left <= 0
  }

  #disk(): Disk {
    this.#left--
    return this.isSwitched ? this.#now : this.#before
  }

  list(): readonly string[] {
    return this.#disk().list()
  }

  exists(name: string): boolean {
    return this.#disk().exists(name)
  }

  open(name: string): DiskFile {
    const disk = this.#disk()
    const file = disk.open(name)
    const isGone = (): boolean => {
      this.#left--
      return disk === this.#before && this.isSwitched && !this.#isWhole(name)
    }
    return {
      bytes: () => (isGone() ? 0 : file.bytes()),
      read: (position, length) => (isGone() ? Buffer.alloc(0) : file.read(position, length)),
      writeSynced: () => Promise.reject(new Error('it is only read')),
      truncate: (length) => file.truncate(length),
      close: () => file.close(),
    }
  }

  #isWhole(name: string): boolean {
    if (!this.#now.exists(name)) return false
    const file = this.#now.open(name)
    const bytes = file.bytes()
    file.close()
    return bytes > 0
  }

  create(): Promise<DiskFile> {
    return Promise.reject(new Error('it is only read'))
  }

  link(): Promise<void> {
    return Promise.reject(new Error('it is only read'))
  }

  remove(): void {
    throw new Error('it is only read')
  }

  truncate(): void {
    throw new Error('it is only read')
  }

  replace(): Promise<void> {
    return Promise.reject(new Error('it is only read'))
  }
}
