// The tables of the data file, row by row: whole, and an actor's entries as they are read
// (row-audit.ts). Source: PROTOCOL 3.12.

import type { PlaceReader } from '../../segment-log/place-reader.ts'
import { RowAudit } from '../../row-audit.ts'
import { DERIVED_TABLES, type JournalEnvironment } from '../../lmdb/environment.ts'
import { getEnded } from '../../lmdb/ended.ts'
import { contentOf, derivedOffset, entryNumber, isWhole, uuidAt } from '../../lmdb/layout.ts'
import type { Report } from '../../report.ts'

/** Returns how many derived rows were read. */
export function verifyTables(env: JournalEnvironment, places: PlaceReader, report: Report): number {
  let rows = 0
  for (const table of DERIVED_TABLES) rows += verifyTable(env, { table, places }, report)
  for (const table of ['meta', 'lives', 'ended', 'log', 'heads'] as const) {
    if (env[table]) verifyTable(env, { table, places }, report)
  }
  return rows
}

type Audited = (typeof DERIVED_TABLES)[number] | 'meta' | 'lives' | 'ended' | 'log' | 'heads'

function verifyTable(
  env: JournalEnvironment,
  of: {
    readonly table: Audited
    readonly places: PlaceReader
  },
  report: Report,
): number {
  const { table, places } = of
  let rows = 0
  let actorId = ''
  let audit: RowAudit | null = null
  for (const { key, value } of env[table]!.getRange({})) {
    rows++
    if (!isWhole(key, value)) {
      const hex = Buffer.from(key).toString('hex')
      report(`table '${table}', row ${hex}: its checksum doesn't match`)
    } else if (table === 'entries') {
      const own = uuidAt(key, 0)
      const told: Report = (what) => report(`actor ${own}: ${what}`)
      if (audit === null || own !== actorId) audit = new RowAudit(told)
      actorId = own
      const ended = getEnded(env, key.subarray(0, 16))
      const isForgotten = ended !== null && derivedOffset(value) < ended.offset
      verifyRow(audit, { n: entryNumber(key), value, places, isForgotten }, told)
    }
  }
  return rows
}

function verifyRow(
  audit: RowAudit,
  of: {
    readonly n: number
    readonly value: Uint8Array
    readonly places: PlaceReader
    readonly isForgotten: boolean
  },
  report: Report,
): void {
  const { n, value, places, isForgotten } = of
  try {
    const content = contentOf(value)
    const body = 'file' in content ? places.read(content) : content
    audit.next({ n, offset: derivedOffset(value), body }, isForgotten)
  } catch (error) {
    report(`entry ${n} can't be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}
