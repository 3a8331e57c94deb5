// A disk that forgets, in memory. Of what wasn't synced any subset of sectors survives a crash;
// names and lengths that weren't synced lag behind or vanish. `crashed` makes the disk as it may be
// found afterwards, at any operation and without ending the run, so that one run is looked at in
// many places.

import type { Disk, DiskFile } from '../disk.ts'

const SECTOR_BYTES = 512

/** Numbers in [0, 1), the same for the same seed. */
export function drawsOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

interface Inode {
  now: Buffer
  /** As it was at the last sync. */
  synced: Buffer
}

type NameChange = (names: Map<string, Inode>) => void

export interface SimulatedOptions {
  /** Syncs say that they have done what they haven't. */
  readonly forgetsSyncs?: boolean
  /** Bytes of all files together. */
  readonly bytesMax?: number
}

export class SimulatedDisk implements Disk {
  readonly path = 'log'
  /** Called before each operation, with its number and name; what it throws is thrown. */
  before: (operation: number, name: string) => void = () => {}
  bytesMax: number
  readonly #options: SimulatedOptions
  readonly #names = new Map<string, Inode>()
  #syncedNames = new Map<string, Inode>()
  #changes: NameChange[] = []
  #operations = 0

  constructor(options: SimulatedOptions = {}) {
    this.#options = options
    this.bytesMax = options.bytesMax ?? Infinity
  }

  /** The disk after a crash here. Its files are copies. */
  crashed(draw: () => number): SimulatedDisk {
    const found = new SimulatedDisk()
    const names = new Map(this.#syncedNames)
    for (const change of this.#changes) if (draw() < 0.5) change(names)
    const copies = new Map<Inode, Inode>()
    for (const [name, inode] of names) {
      if (!copies.has(inode)) {
        const now = survivors(inode, draw)
        copies.set(inode, { now, synced: now })
      }
      found.#names.set(name, copies.get(inode)!)
    }
    found.#syncedNames = new Map(found.#names)
    return found
  }

  /** The bytes of a file, to be changed by a test. */
  bytesOf(name: string): Buffer {
    return this.#inode(name).now
  }

  /** Everything as it is now, with nothing unsynced. */
  copy(): SimulatedDisk {
    const all = new SimulatedDisk()
    for (const [name, { now }] of this.#names) {
      const bytes = Buffer.from(now)
      all.#names.set(name, { now: bytes, synced: bytes })
    }
    all.#syncedNames = new Map(all.#names)
    return all
  }

  rename(from: string, to: string): void {
    const inode = this.#inode(from)
    this.#change((names) => void names.set(to, inode))
    this.#change((names) => void names.delete(from))
  }

  list(): readonly string[] {
    return [...this.#names.keys()]
  }

  exists(name: string): boolean {
    return this.#names.has(name)
  }

  open(name: string): DiskFile {
    return this.#fileOf(this.#inode(name))
  }

  async create(name: string, bytes: number): Promise<DiskFile> {
    await this.#operation('create')
    if (this.#names.has(name)) throw failure('EEXIST')
    const all = new Set(this.#names.values())
    const used = [...all].reduce((sum, { now }) => sum + now.length, 0)
    if (used + bytes > this.bytesMax) throw failure('ENOSPC')
    const inode = { now: Buffer.alloc(0), synced: Buffer.alloc(0) }
    this.#change((names) => void names.set(name, inode))
    inode.now = Buffer.alloc(bytes)
    await this.#operation('fill')
    this.#sync(inode)
    return this.#fileOf(inode)
  }

  async link(from: string, to: string): Promise<void> {
    await this.#operation('link')
    const inode = this.#inode(from)
    if (this.#names.has(to)) throw failure('EEXIST')
    this.#change((names) => void names.set(to, inode))
    await this.#syncNames()
  }

  remove(name: string): void {
    this.#step('remove')
    if (this.#names.has(name)) this.#change((names) => void names.delete(name))
  }

  truncate(name: string, bytes: number): void {
    this.#truncate(this.#inode(name), bytes)
  }

  #truncate(inode: Inode, bytes: number): void {
    this.#step('truncate')
    inode.now = Buffer.from(inode.now.subarray(0, bytes))
  }

  async replace(name: string, text: string): Promise<void> {
    await this.#operation('replace')
    const inode = { now: Buffer.from(text), synced: Buffer.alloc(0) }
    await this.#operation('sync of replace')
    this.#sync(inode)
    this.#change((names) => void names.set(name, inode))
    await this.#syncNames()
  }

  #fileOf(inode: Inode): DiskFile {
    return {
      bytes: () => inode.now.length,
      read: (position, length) => Buffer.from(inode.now.subarray(position, position + length)),
      writeSynced: async (position, chunks) => {
        const bytes = Buffer.concat(chunks)
        await this.#operation('write')
        const now = Buffer.alloc(Math.max(inode.now.length, position + bytes.length))
        inode.now.copy(now)
        bytes.copy(now, position)
        inode.now = now
        await this.#operation('sync')
        this.#sync(inode)
      },
      truncate: (length) => this.#truncate(inode, length),
      close: () => {},
    }
  }

  #inode(name: string): Inode {
    const inode = this.#names.get(name)
    if (!inode) throw failure('ENOENT')
    return inode
  }

  #change(change: NameChange): void {
    change(this.#names)
    this.#changes.push(change)
  }

  #sync(inode: Inode): void {
    if (!this.#options.forgetsSyncs) inode.synced = Buffer.from(inode.now)
  }

  async #syncNames(): Promise<void> {
    await this.#operation('sync of names')
    this.#syncedNames = new Map(this.#names)
    this.#changes = []
  }

  async #operation(name: string): Promise<void> {
    // Long enough for an answer that doesn't wait to be ahead, and not always the same.
    const turns = 1 + ((this.#operations * 7) % 23)
    for (let turn = 0; turn < turns; turn++) await Promise.resolve()
    this.#step(name)
  }

  #step(name: string): void {
    this.before(this.#operations++, name)
  }
}

/** Of each sector either what was synced or what is there now; of the length likewise. */
function survivors({ now, synced }: Inode, draw: () => number): Buffer {
  if (now.equals(synced)) return Buffer.from(now)
  const length = draw() < 0.5 ? now.length : synced.length
  const found = Buffer.alloc(length)
  synced.copy(found)
  const keep = [0, 0.5, 0.9, 1][Math.floor(draw() * 4)]!
  for (let at = 0; at < length; at += SECTOR_BYTES) {
    if (draw() >= keep) continue
    const end = Math.min(at + SECTOR_BYTES, length)
    // What a truncate took and a length of before brings back comes back as zeros.
    found.fill(0, at, end)
    if (at < now.length) now.copy(found, at, at, end)
  }
  return found
}

export function failure(code: string): Error {
  return Object.assign(new Error(`${code}: the simulated disk`), { code })
}
