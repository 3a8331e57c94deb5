// How far the data file has the log's places, and of which log: two rows that are written with
// them. For whoever goes on from there, in any thread.

import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { LogPosition } from '../segment-log/scan.ts'
import { Arena } from './arena.ts'
import { damagedRow } from '../damage.ts'
import type { JournalEnvironment } from './environment.ts'
import { derivedBody, isWhole, type Row } from './layout.ts'
import { encodeDerived } from './rows.ts'

const COVERED_KEY = Buffer.from('covered')
const LOG_KEY = Buffer.from('log')
const NO_ORIGIN = { shard: SYSTEM_SHARD, offset: 0 }

function put(env: JournalEnvironment, key: Buffer, what: unknown): void {
  const body = Buffer.from(JSON.stringify(what))
  const row = encodeDerived(new Arena(256), key, NO_ORIGIN, body)
  void env.meta.put(row.key, row.value)
}

function get(env: JournalEnvironment, key: Buffer): unknown {
  const value = env.meta.get(key)
  if (value === undefined) return null
  if (!isWhole(key, value)) throw damagedRow(env.file, 'meta', key)
  return JSON.parse(derivedBody(value).toString())
}

/** Within a transaction. */
export function putCovered(env: JournalEnvironment, covered: LogPosition): void {
  put(env, COVERED_KEY, covered)
}

/** Of what lies before it the data file has every place; null: of nothing. */
export function getCovered(env: JournalEnvironment): LogPosition | null {
  return get(env, COVERED_KEY) as LogPosition | null
}

/** How far giving room back has come with a file of the log. */
export interface FileUpkeep {
  /** The newest round of which every place is in the data file; 0: none. */
  readonly turned: number
  /** When it was read through last: shards whose entries had all had their time by then. */
  readonly due: number
  /** Bytes since then of entries whose actors are forgotten by now. */
  readonly ended?: number
}

const NO_UPKEEP: FileUpkeep = { turned: 0, due: -1 }

/** Within a transaction, or one of its own. By the file's number. */
export function upkeepRow(number: number, upkeep: FileUpkeep): Row {
  const body = Buffer.from(JSON.stringify(upkeep))
  return encodeDerived(new Arena(256), upkeepKey(number), NO_ORIGIN, body)
}

export function getUpkeep(env: JournalEnvironment, number: number): FileUpkeep {
  return (get(env, upkeepKey(number)) as FileUpkeep | null) ?? NO_UPKEEP
}

function upkeepKey(number: number): Buffer {
  return Buffer.from(`file ${number}`)
}

/** Within a transaction: the rows are those of this log (store.json). */
export function putLogId(env: JournalEnvironment, log: string): void {
  put(env, LOG_KEY, log)
}

/** null: a data file that nothing was written to yet. */
export function getLogId(env: JournalEnvironment): string | null {
  return get(env, LOG_KEY) as string | null
}
