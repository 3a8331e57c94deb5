// Groups that have just been committed here, kept for the consumers of the feed, so that a server's
// log isn't read again for every order. What is no longer here is read from the log. Source:
// PROTOCOL 3.13.1.

import type { LogReader, LogRow, Maybe } from '../../storage/journal.ts'

export class RecentRows implements Pick<LogReader, 'read'> {
  readonly #log: Pick<LogReader, 'read'>
  readonly #bytesMax: number
  /** By shard, in order and without a gap. */
  readonly #rows = new Map<number, LogRow[]>()
  /** All rows, the oldest first; those that were forgotten meanwhile are skipped. */
  #queue: LogRow[] = []
  #bytes = 0

  constructor(log: Pick<LogReader, 'read'>, bytesMax: number) {
    this.#log = log
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  /** A group was committed; `first` is the offset of its first entry. */
  add(shard: number, group: { readonly first: number; readonly count: number; body: Uint8Array }) {
    const { first, count, body } = group
    const rows = this.#rows.get(shard) ?? []
    if (rows.length > 0 && rows.at(-1)!.offset !== first - 1) this.forget(shard)
    const row: LogRow = { shard, epoch: 0, offset: first + count - 1, count, commitId: '', body }
    const own = this.#rows.get(shard) ?? []
    own.push(row)
    this.#rows.set(shard, own)
    this.#queue.push(row)
    this.#bytes += body.length
    if (this.#bytes > this.#bytesMax) this.#evict()
  }

  forget(shard: number): void {
    for (const { body } of this.#rows.get(shard) ?? []) this.#bytes -= body.length
    this.#rows.delete(shard)
  }

  /** Drops the oldest rows until half of the room is free: seldom, and many at a time. */
  #evict(): void {
    let at = 0
    for (; at < this.#queue.length && this.#bytes > this.#bytesMax / 2; at++) {
      const row = this.#queue[at]!
      const rows = this.#rows.get(row.shard)
      if (rows?.[0] !== row) continue
      rows.shift()
      this.#bytes -= row.body.length
    }
    this.#queue = this.#queue.slice(at).filter((row) => this.#has(row))
  }

  #has(row: LogRow): boolean {
    const rows = this.#rows.get(row.shard)
    return rows !== undefined && rows.length > 0 && rows[0]!.offset <= row.offset
  }

  read(shard: number, after: number, bytesMax: number): Maybe<readonly LogRow[]> {
    const rows = this.#rows.get(shard)
    const oldest = rows?.[0]
    if (oldest === undefined || oldest.offset - oldest.count > after) {
      return this.#log.read(shard, after, bytesMax)
    }
    const found: LogRow[] = []
    let bytes = 0
    for (let i = firstAbove(rows!, after); i < rows!.length && bytes < bytesMax; i++) {
      found.push(rows![i]!)
      bytes += rows![i]!.body.length
    }
    return found.length > 0 ? found : this.#log.read(shard, after, bytesMax)
  }
}

/** Index of the first row with an entry above `offset`. */
function firstAbove(rows: readonly LogRow[], offset: number): number {
  let low = 0
  let high = rows.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (rows[middle]!.offset > offset) high = middle
    else low = middle + 1
  }
  return low
}
