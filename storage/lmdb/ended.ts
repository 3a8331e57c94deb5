// Actors that are forgotten: a row for each from the moment that its end is in the entries' table,
// until the last of it has left the log. Rows of its entries stay as long as the log has their
// bytes, for whoever makes the data file anew finds there what is in the log: so the end goes last,
// and nothing before it is ever met without it. Source: PROTOCOL 3.12 "Forgotten actors".

import { LIMITS } from '../../config/limits.ts'
import { damagedRow } from '../damage.ts'
import type { Arena } from './arena.ts'
import type { JournalEnvironment } from './environment.ts'
import { contentOf, derivedBody, derivedOffset, derivedShard } from './layout.ts'
import { entryKey, isWhole, uuidKey } from './layout.ts'
import { encodeDerived, type DerivedTableRow } from './rows.ts'

/** The newest entry that says so of an actor. */
export interface Ended {
  readonly shard: number
  readonly offset: number
  /** The shard's clock from which its time counts. */
  readonly from: number
}

const FROM_BYTES = 6

export function encodeEnded(
  arena: Arena,
  env: JournalEnvironment,
  { actorId, shard, offset, from }: Ended & { readonly actorId: string },
): DerivedTableRow {
  const body = Buffer.allocUnsafe(FROM_BYTES)
  body.writeUIntLE(Math.ceil(from), 0, FROM_BYTES)
  const row = encodeDerived(arena, uuidKey(actorId), { shard, offset }, body)
  return { table: env.ended!, ...row, offset, isRegister: true }
}

/** null: it is not known to have ended. Throws JournalDamage. */
export function getEnded(env: JournalEnvironment, key: Uint8Array): Ended | null {
  const value = env.ended?.get(key)
  if (value === undefined) return null
  if (!isWhole(key, value)) throw damagedRow(env.file, 'ended', key)
  const from = derivedBody(value).readUIntLE(0, FROM_BYTES)
  return { shard: derivedShard(value), offset: derivedOffset(value), from }
}

/** Rows of an actor's entries, and their bytes by the file of the log in which they lie. */
export function bytesByFile(
  env: JournalEnvironment,
  actorId: string,
): { readonly rows: number; readonly bytes: ReadonlyMap<number, number> } {
  const bytes = new Map<number, number>()
  let rows = 0
  for (const { key, value } of entryRows(env, actorId)) {
    rows++
    const content = isWhole(key, value) ? contentOf(value) : null
    if (content === null || !('file' in content)) continue
    bytes.set(content.file, (bytes.get(content.file) ?? 0) + content.length)
  }
  return { rows, bytes }
}

/** Rows of an actor's entries, in the order of their numbers, so many at most. */
export function entryRows(env: JournalEnvironment, actorId: string) {
  const [start, end] = [entryKey(actorId, 0), entryKey(actorId, Number.MAX_SAFE_INTEGER)]
  return env.entries.getRange({ start, end, limit: LIMITS.lmdb.endedRowsMax })
}
