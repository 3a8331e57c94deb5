// Reading by bytes where Cassandra pages by rows: a few rows at first, then as many as the bytes
// asked for are likely to hold.

import type { Row, Session } from './session.ts'

/** Rows of the first page: of the largest entries they are still a bounded answer. */
const ROWS_FIRST = 8
const ROWS_MAX = 1_000

export interface BytesRange {
  /** A SELECT of one partition, in order, with a column `body`. */
  readonly query: string
  readonly params: readonly unknown[]
  readonly bytesMax: number
}

export interface BytesRead {
  readonly rows: readonly Row[]
  readonly bytes: number
  /** False: there are more. */
  readonly isWhole: boolean
}

/** Rows up to about `bytesMax` of `body`, at least one when there is one. */
export async function readBytes(session: Session, range: BytesRange): Promise<BytesRead> {
  const found: Row[] = []
  let bytes = 0
  let rows = ROWS_FIRST
  for (let from: string | null = null; ;) {
    const page = await session.readPage(range.query, range.params, { rows, from })
    for (const row of page.rows) {
      const { length } = row['body'] as Buffer
      if (found.length > 0 && bytes + length > range.bytesMax) {
        return { rows: found, bytes, isWhole: false }
      }
      bytes += length
      found.push(row)
    }
    if (page.next === null) return { rows: found, bytes, isWhole: true }
    from = page.next
    const mean = Math.max(1, bytes / Math.max(1, found.length))
    const wanted = Math.ceil((range.bytesMax - bytes) / mean) + 1
    rows = Math.min(Math.max(wanted, 1), 8 * rows, ROWS_MAX)
  }
}
