// Finds where numbers are free again behind a stretch that callers have chosen: an import of a
// million numbers is passed in some dozens of reads, several at a time. Source: ARCHITECTURE 4 "A
// generated number".

import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { Maybe } from '../../../storage/journal.ts'

interface Searched {
  /** A taken number is above it. */
  readonly after: number
  /** The next number of the shard's share. */
  readonly nextAbove: (n: number) => number
  readonly isTaken: (n: number) => Maybe<boolean>
  /** 0 <= x < 1. */
  readonly random: () => number
}

/** Each stretch that is looked into is so many times as long as the one before. */
const GROWTH = 16
const FIRST_STRETCH = 1_024
/** So far ahead at most: what is counted stays far below the exact integers. */
const STRETCH_MAX = 2 ** 48

/**
 * A free number above `after` whose neighbour below, of those that were looked at, is taken: the
 * next free one where only few are taken, the end of the stretch where all are. Far ahead it looks
 * at random places, in stretches that grow: so one number that was chosen far ahead moves nothing,
 * and to push the counter on by n somebody has to take about n numbers. Throws when every place
 * that was looked at is taken.
 */
export async function boundaryAbove(search: Searched): Promise<number> {
  const near = nearest(search)
  const [free, low] = await firstFree(search, near, search.after)
  if (free !== null) return free
  for (let stretch = FIRST_STRETCH; stretch <= STRETCH_MAX; stretch *= GROWTH) {
    const [high, taken] = await firstFree(search, somewhere(search, low, stretch), low)
    if (high !== null) return narrowed(search, taken, high)
  }
  const text = 'too many numbers with this prefix are taken; nothing was done, try again'
  throw new RequestError('TOO_BUSY', text)
}

function nearest({ after, nextAbove }: Searched): number[] {
  const found: number[] = []
  for (let n = after; found.length < LIMITS.sharding.numberProbesTogether;)
    found.push((n = nextAbove(n)))
  return found
}

function somewhere({ nextAbove, random }: Searched, low: number, stretch: number): number[] {
  const at = (): number => nextAbove(low + Math.floor(random() * stretch))
  const places = Array.from({ length: LIMITS.sharding.numberProbesTogether }, at)
  return [...new Set(places)].toSorted((a, b) => a - b)
}

/** Between a taken and a free number, until nothing of the share is between them. */
async function narrowed(search: Searched, low: number, high: number): Promise<number> {
  for (;;) {
    const step = (high - low) / (LIMITS.sharding.numberProbesTogether + 1)
    const places = new Set([search.nextAbove(low)])
    for (let i = 1; i <= LIMITS.sharding.numberProbesTogether; i++) {
      places.add(search.nextAbove(low + Math.floor(i * step)))
    }
    const between = [...places].filter((n) => n < high)
    if (between.length === 0) return high
    const [free, taken] = await firstFree(search, between, low)
    low = taken
    high = free ?? high
  }
}

/** The lowest free one of rising numbers (null: none), and the highest taken one below it. */
async function firstFree(
  search: Searched,
  places: readonly number[],
  low: number,
): Promise<[free: number | null, taken: number]> {
  const taken = await Promise.all(places.map(async (n) => search.isTaken(n)))
  const at = taken.indexOf(false)
  if (at === -1) return [null, places.at(-1)!]
  return [places[at]!, at === 0 ? low : places[at - 1]!]
}
