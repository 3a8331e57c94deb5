// Reading a log over its chain of segments: rows in order, without holes. Source: PROTOCOL 3.5
// (claim 3, trim), 3.7 (I1).

import type { LogRow } from '../../storage/journal.ts'
import type { SegmentId, SegmentStore } from '../../storage/segments.ts'
import type { KnownSegment, SegmentChain } from './chain.ts'

/** A row that must be there is not, even at the serial level: the store has lost something. */
export class MissingRow extends Error {
  constructor(shard: number, offset: number) {
    super(`the log of shard ${shard} has no entry at offset ${offset}`)
    this.name = 'MissingRow'
  }
}

export interface Reading {
  readonly segments: Pick<SegmentStore, 'rows'>
  readonly chain: SegmentChain
}

export interface ReadRange {
  readonly after: number
  readonly bytesMax: number
}

/**
 * Rows with offset > after, at most about `bytesMax`, at least one if there is one. The first may
 * begin higher than behind `after` when rows were trimmed. Rejects with MissingRow on any other
 * hole, and with what the store says when it can't be read.
 */
export async function readRows(
  reading: Reading,
  shard: number,
  { after, bytesMax }: ReadRange,
): Promise<readonly LogRow[]> {
  const { chain } = reading
  const found: LogRow[] = []
  let at = after
  let bytes = 0
  let of: SegmentId = { shard, segment: await chain.locate(shard, after) }
  for (;;) {
    const range = { after: at, bytesMax: bytesMax - bytes }
    const { rows, known } = await denseRows(reading, of, range)
    // Trimmed meanwhile: who goes on from here sees the hole, as those do who begin there.
    if (found.length > 0 && holeIn(rows, at, known.head) !== null) return found
    for (const row of rows) {
      // At least one; and no more than was asked for, for the sake of another segment.
      if (found.length > 0 && bytes + row.body.length > bytesMax) return found
      found.push(row)
      bytes += row.body.length
      at = row.offset
    }
    if (rows.length > 0) chain.reached(of, at)
    if (!known.sealed) {
      if (found.length > 0 || !(await goesOn(reading, of, at))) return found
      continue
    }
    if (bytes >= bytesMax || (rows.length > 0 && at < known.head)) return found
    const next = { shard, segment: of.segment + 1 }
    if ((await chain.ensure(next)) === null) return found
    // Where nothing was left of it, reading goes on behind it.
    at = Math.max(at, known.head)
    of = next
  }
}

/** Whether there is one behind a segment that looked open: then that is sealed, and known to be. */
async function goesOn({ segments, chain }: Reading, of: SegmentId, at: number): Promise<boolean> {
  const next = { shard: of.shard, segment: of.segment + 1 }
  const rows = await segments.rows(next, { after: at, bytesMax: 1 })
  if (rows.length === 0) return false
  return (await chain.look(of))!.sealed
}

interface DenseRows {
  readonly rows: readonly LogRow[]
  readonly known: Pick<KnownSegment, 'head' | 'sealed'>
}

/** Rows of one segment; when one is missing, looks again at the serial level. */
async function denseRows(reading: Reading, of: SegmentId, range: ReadRange): Promise<DenseRows> {
  const { segments, chain } = reading
  const { after } = range
  // What is known before the read must be in it.
  const known = { ...(await chain.ensure(of))! }
  const rows = await segments.rows(of, range)
  if (holeIn(rows, after, known.head) === null) return { rows, known }
  const again = await segments.rows(of, { ...range, serial: true })
  const hole = holeIn(again, after, known.head)
  if (hole === null) return { rows: again, known }
  const now = known.sealed ? known : (await chain.look(of))!
  const isTrimmed = now.sealed && hole === after + 1 && !(await hasRowsUpTo(reading, of, after))
  if (!isTrimmed) throw new MissingRow(of.shard, hole)
  return { rows: again, known: now }
}

/** Trimming takes away from the front: where older rows are, no row is missing for that reason. */
async function hasRowsUpTo(
  { segments, chain }: Reading,
  of: SegmentId,
  offset: number,
): Promise<boolean> {
  for (let { segment } = of; segment > 0 && segment >= of.segment - 1; segment--) {
    const { base } = (await chain.ensure({ shard: of.shard, segment }))!
    const [row] = await segments.rows({ shard: of.shard, segment }, { after: base, bytesMax: 1 })
    if (row !== undefined && row.offset <= offset) return true
  }
  return false
}

/** The first offset above `after` that no row has although it must be there; null: none. */
function holeIn(rows: readonly LogRow[], after: number, head: number): number | null {
  let at = after
  for (const { offset, count } of rows) {
    if (offset - count > at) return at + 1
    at = offset
  }
  return rows.length === 0 && at < head ? at + 1 : null
}
