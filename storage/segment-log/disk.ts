// The file layer as the log of segment files uses it: one folder of flat names. The disk is the
// real one or one that forgets. Errors come as the system gives them (`code`: ENOSPC, EEXIST,
// ENOENT, EMFILE, EIO).

export interface DiskFile {
  /** Length now. */
  bytes(): number
  /** Up to `length` bytes from `position`; fewer only at the end of the file. */
  read(position: number, length: number): Buffer
  /**
   * One write of the chunks behind one another and one sync of the data. After a rejection it is
   * not known what of it is on the disk.
   */
  writeSynced(position: number, chunks: readonly Uint8Array[]): Promise<void>
  /** May be undone by a crash. Needs no descriptor of its own. */
  truncate(bytes: number): void
  close(): void
}

export interface Disk {
  /** For messages. */
  readonly path: string
  list(): readonly string[]
  exists(name: string): boolean
  /** For reading. */
  open(name: string): DiskFile
  /** A new file filled with zeros, its data and length on the disk; rejects where there is one. */
  create(name: string, bytes: number): Promise<DiskFile>
  /**
   * A second name for a file, on the disk when it resolves; rejects where `to` exists. Without a
   * descriptor (EMFILE) nothing was done; so with `replace`.
   */
  link(from: string, to: string): Promise<void>
  /** May come back after a crash. A name that isn't there is fine. */
  remove(name: string): void
  /** May be undone by a crash. */
  truncate(name: string, bytes: number): void
  /** The whole of a small file, all or nothing, on the disk when it resolves. */
  replace(name: string, text: string): Promise<void>
}
