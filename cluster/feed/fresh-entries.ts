// Entries that were committed here and that one follower has yet to take, with the states behind
// them: what is here needs not be read from the log, nor folded. Bounded; what has no room is read
// and folded. Source: PROTOCOL 3.13.9.

import type { CommittedEntry } from '../committed-entry.ts'

interface FreshGroup {
  readonly first: number
  readonly entries: readonly CommittedEntry[]
  readonly bytes: number
}

export class FreshEntries {
  readonly #bytesMax: number
  /** By shard, in order. */
  readonly #groups = new Map<number, FreshGroup[]>()
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.#bytes
  }

  /** A group was committed; `first` is the offset of its first entry. */
  add(shard: number, first: number, group: readonly CommittedEntry[]): void {
    let bytes = 0
    for (const one of group) bytes += one.bytes.length + one.stateBytes
    if (this.#bytes + bytes > this.#bytesMax) return
    this.#bytes += bytes
    // Copies, for what else waits with an entry must not wait here.
    const entries = group.map(({ entry, bytes: body, state, stateBytes }) => {
      return { entry, bytes: body, state, stateBytes }
    })
    const groups = this.#groups.get(shard)
    if (groups === undefined) this.#groups.set(shard, [{ first, entries, bytes }])
    else groups.push({ first, entries, bytes })
  }

  /** null: it is not here. */
  find(shard: number, offset: number): CommittedEntry | null {
    const group = this.#groups.get(shard)?.find(({ first, entries }) => {
      return offset < first + entries.length
    })
    return group?.entries[offset - group.first] ?? null
  }

  /** What lies up to this offset is not needed any more. */
  passed(shard: number, offset: number): void {
    const groups = this.#groups.get(shard) ?? []
    const left = groups.findIndex(({ first, entries }) => first + entries.length - 1 > offset)
    const over = groups.splice(0, left === -1 ? groups.length : left)
    for (const { bytes } of over) this.#bytes -= bytes
  }

  forget(shard: number): void {
    for (const { bytes } of this.#groups.get(shard) ?? []) this.#bytes -= bytes
    this.#groups.delete(shard)
  }
}
