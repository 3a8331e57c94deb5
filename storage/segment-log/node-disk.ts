// The file layer over the file system of the machine. Errors are passed on as they come.

import * as fs from 'node:fs'
import * as fsp from 'node:fs/promises'
import { join } from 'node:path'
import type { Disk, DiskFile } from './disk.ts'

const FILL = Buffer.alloc(1024 * 1024)
/** Buffers of one writev; Linux takes 1024. */
const CHUNKS_MAX = 1_000

export class NodeDisk implements Disk {
  readonly path: string

  /** The folder is made if it isn't there. */
  constructor(path: string) {
    this.path = path
    fs.mkdirSync(path, { recursive: true })
  }

  list(): readonly string[] {
    return fs.readdirSync(this.path)
  }

  exists(name: string): boolean {
    // Not `existsSync`: it calls any error a missing name, and a fence would be overlooked.
    return fs.statSync(join(this.path, name), { throwIfNoEntry: false }) !== undefined
  }

  open(name: string): DiskFile {
    return new NodeFile(fs.openSync(join(this.path, name), 'r'))
  }

  async create(name: string, bytes: number): Promise<DiskFile> {
    const file = await fsp.open(join(this.path, name), 'wx+', 0o600)
    try {
      for (let at = 0; at < bytes;) {
        const length = Math.min(FILL.length, bytes - at)
        at += (await file.write(FILL, 0, length, at)).bytesWritten
        // Piece by piece: one sync of all of it would hold up the commits beside it.
        await file.datasync()
      }
      await file.sync()
    } finally {
      await file.close()
    }
    return new NodeFile(fs.openSync(join(this.path, name), 'r+'))
  }

  async link(from: string, to: string): Promise<void> {
    await this.#inFolder(() => fsp.link(join(this.path, from), join(this.path, to)))
  }

  remove(name: string): void {
    fs.rmSync(join(this.path, name), { force: true })
  }

  truncate(name: string, bytes: number): void {
    fs.truncateSync(join(this.path, name), bytes)
  }

  async replace(name: string, text: string): Promise<void> {
    const fresh = join(this.path, `${name}.new`)
    const file = await fsp.open(fresh, 'w', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await this.#inFolder(() => fsp.rename(fresh, join(this.path, name)))
  }

  /** A change of names, on the disk when it resolves. */
  async #inFolder(change: () => Promise<void>): Promise<void> {
    // First: without a descriptor for it the name would be there, and nobody could say so.
    const folder = await fsp.open(this.path, 'r')
    try {
      await change()
      await folder.sync()
    } finally {
      await folder.close()
    }
  }
}

class NodeFile implements DiskFile {
  readonly #fd: number

  constructor(fd: number) {
    this.#fd = fd
  }

  bytes(): number {
    return fs.fstatSync(this.#fd).size
  }

  read(position: number, length: number): Buffer {
    const buffer = Buffer.allocUnsafe(length)
    let filled = 0
    while (filled < length) {
      const more = fs.readSync(this.#fd, buffer, filled, length - filled, position + filled)
      if (more === 0) break
      filled += more
    }
    return buffer.subarray(0, filled)
  }

  async writeSynced(position: number, chunks: readonly Uint8Array[]): Promise<void> {
    let at = position
    for (let i = 0; i < chunks.length; i += CHUNKS_MAX) {
      let rest = chunks.slice(i, i + CHUNKS_MAX)
      while (rest.length > 0) {
        const written = await this.#write(rest, at)
        at += written
        rest = behind(rest, written)
      }
    }
    await new Promise<void>((resolve, reject) => {
      fs.fdatasync(this.#fd, (error) => (error ? reject(error) : resolve()))
    })
  }

  #write(chunks: readonly Uint8Array[], position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      fs.writev(this.#fd, chunks, position, (error, written) =>
        error ? reject(error) : resolve(written),
      )
    })
  }

  truncate(bytes: number): void {
    fs.ftruncateSync(this.#fd, bytes)
  }

  close(): void {
    fs.closeSync(this.#fd)
  }
}

/** What of the chunks lies behind the first `bytes`. */
function behind(chunks: readonly Uint8Array[], bytes: number): Uint8Array[] {
  let skip = bytes
  const rest: Uint8Array[] = []
  for (const chunk of chunks) {
    if (skip < chunk.length) rest.push(skip > 0 ? chunk.subarray(skip) : chunk)
    skip = Math.max(0, skip - chunk.length)
  }
  return rest
}
