// The newest groups of the log, by shard and offset: those whose rows the data file may not have
// yet. Segment files know places only.

import { splitEntries } from '../../protocol/entry/entry.ts'
import type { LogRow } from '../journal.ts'
import type { Place } from './frame.ts'
import { numberOf } from './header.ts'
import type { LogPosition } from './scan.ts'

/** A committed group as it is told by its place. */
export interface LoggedGroup extends Omit<LogRow, 'body'> {
  readonly place: Place
  /** Where in the body its entries begin; null for a body that isn't made of entries. */
  readonly begins: readonly number[] | null
}

/** Where each entry of a body begins; null when it isn't so many entries. */
export function beginsIn(body: Uint8Array, count: number): readonly number[] | null {
  try {
    const entries = splitEntries(body)
    return entries.length === count ? entries.map((e) => e.byteOffset - body.byteOffset) : null
  } catch {
    return null
  }
}

export class LogTail<G extends LoggedGroup = LoggedGroup> {
  /** By shard, in their order. */
  readonly #groups = new Map<number, G[]>()

  add(group: G): void {
    const known = this.#groups.get(group.shard)
    if (known === undefined) this.#groups.set(group.shard, [group])
    else known.push(group)
  }

  /** Groups that end above `after`. */
  after(shard: number, after: number): readonly G[] {
    const known = this.#groups.get(shard)
    if (known === undefined) return []
    return known.slice(firstAbove(known, after))
  }

  /** The group that has this offset. */
  at(shard: number, offset: number): G | null {
    const known = this.#groups.get(shard)
    if (known === undefined) return null
    const found = known[firstAbove(known, offset - 1)]
    return found !== undefined && found.offset - found.count < offset ? found : null
  }

  /** Forgets what lies before a position of the log; returns how many bytes of bodies that were. */
  forget(before: LogPosition): number {
    let bytes = 0
    for (const [shard, known] of this.#groups) {
      let count = 0
      while (count < known.length && isBefore(known[count]!.place, before)) {
        bytes += known[count]!.place.length
        count++
      }
      if (count === known.length) this.#groups.delete(shard)
      else if (count > 0) known.splice(0, count)
    }
    return bytes
  }
}

export function isBefore(a: LogPosition, b: LogPosition): boolean {
  const [file, other] = [numberOf(a.file), numberOf(b.file)]
  return file < other || (file === other && a.position < b.position)
}

/** Index of the first group that ends above an offset. */
function firstAbove(groups: readonly LoggedGroup[], after: number): number {
  let low = 0
  let high = groups.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (groups[middle]!.offset > after) high = middle
    else low = middle + 1
  }
  return low
}
