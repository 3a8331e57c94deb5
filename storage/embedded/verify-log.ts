// Reads everything a data directory holds and says what isn't as it must be: the audit that
// backups, moves and fault tests rely on. It stands between the data file, which it only reads, and
// whoever prints its findings. Source: PROTOCOL 3.16, 3.12, 4.1 (K4).

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { decodeWholeEntry, splitEntries, type EntryHead } from '../../protocol/entry.ts'
import { EntryAudit } from '../entry-audit.ts'
import type { AcceptedLoss, LogRow, StoreIdentity } from '../journal.ts'
import type { Behaviours } from '../key-audit.ts'
import { placeOf, RowAudit } from '../row-audit.ts'
import { isPassing } from '../row-life.ts'
import { Arena } from './journal-arena.ts'
import { floorOf, LogWalk, shardsOf } from './journal-check.ts'
import {
  DATA_FILE,
  DERIVED_TABLES,
  openEnvironment,
  refuseOthers,
  writeAlone,
  type JournalEnvironment,
} from './journal-environment.ts'
import { checkDataFile, walkDataFile } from './journal-file.ts'
import { readIdentity } from './journal-identity.ts'
import {
  derivedBody,
  derivedOffset,
  entryKey,
  entryNumber,
  isWhole,
  logKey,
  readGroup,
  readHead,
  shardKey,
  uuidAt,
} from './journal-layout.ts'
import { encodeDerived } from './journal-rows.ts'
import { verifyKeys } from './verify-keys.ts'

export interface VerifyReport {
  readonly findings: number
  readonly groups: number
  readonly entries: number
  readonly derivedRows: number
}

type Report = (line: string) => void

export interface VerifyOptions {
  /** What can be mended is. */
  readonly repair?: boolean
  /** What the actors of the store do: without them, the keys that lead to them aren't looked at. */
  readonly behaviours?: Behaviours
}

/**
 * Verifies the journal in `dir`, of a node that is stopped or of a copy; `print` gets a line for
 * each finding. Findings make a command's exit code 1. `repair` ends, and says so, as soon as
 * another process has the directory open. Never throws for what is in the files.
 */
export async function verifyLog(
  dir: string,
  print: Report,
  { repair = false, behaviours }: VerifyOptions = {},
): Promise<VerifyReport> {
  const counts = { findings: 0, groups: 0, entries: 0, derivedRows: 0 }
  const report: Report = (line) => {
    counts.findings++
    print(line)
  }
  const file = join(dir, DATA_FILE)
  if (!(await isReadable(file, report))) return counts
  const env = openEnvironment(dir, !repair)
  try {
    if (repair) refuseOthers(env)
    const identity = readIdentity(env)
    if (identity === null) {
      report(`${file}: holds no journal`)
      return counts
    }
    for (const shard of shardsOf(identity)) {
      const verified = new ShardVerification({ env, identity, repair }, shard, (what) =>
        report(`${file}: ${what}`),
      )
      verified.run()
      env.root.resetReadTxn()
      counts.groups += verified.groups
      counts.entries += verified.entries
    }
    for (const table of DERIVED_TABLES) {
      counts.derivedRows += verifyTable(env, table, (what) => report(`${file}: ${what}`))
    }
    if (env.lives) verifyTable(env, 'lives', (what) => report(`${file}: ${what}`))
    if (behaviours) {
      const told = (what: string): void => report(`${file}: ${what}`)
      await verifyKeys(env, identity, { behaviours, repair, report: told })
    }
  } catch (error) {
    report(error instanceof Error ? error.message : String(error))
  } finally {
    await env.root.close()
  }
  return counts
}

/** Looks at the pages before LMDB does: a broken tree would end the process. */
async function isReadable(file: string, report: Report): Promise<boolean> {
  try {
    if (!existsSync(file) || !checkDataFile(file)) {
      report(`${file}: there is no data file`)
      return false
    }
    let broken = 0
    walkDataFile(file, ({ what, table, log }) => {
      broken++
      const place = log === null ? '' : `, shard ${log.shard}, from about offset ${log.offset} on`
      report(`${file}: table '${table}'${place}: ${what}`)
    })
    return broken === 0
  } catch (error) {
    report(error instanceof Error ? error.message : String(error))
    return false
  }
}

/** Rows of one table: whole, and an actor's entries as they are read (row-audit.ts). */
function verifyTable(
  env: JournalEnvironment,
  table: (typeof DERIVED_TABLES)[number] | 'lives',
  report: Report,
): number {
  let rows = 0
  let actorId = ''
  let audit: RowAudit | null = null
  for (const { key, value } of env[table]!.getRange({})) {
    rows++
    if (!isWhole(key, value)) {
      const hex = Buffer.from(key).toString('hex')
      report(`table '${table}', row ${hex}: its checksum doesn't match`)
    } else if (table === 'entries') {
      const of = uuidAt(key, 0)
      const told: Report = (what) => report(`actor ${of}: ${what}`)
      if (audit === null || of !== actorId) audit = new RowAudit(told)
      actorId = of
      verifyRow(audit, { n: entryNumber(key), value }, told)
    }
  }
  return rows
}

function verifyRow(
  audit: RowAudit,
  { n, value }: { readonly n: number; readonly value: Uint8Array },
  report: Report,
): void {
  try {
    audit.next({ n, offset: derivedOffset(value), body: derivedBody(value) })
  } catch (error) {
    report(`entry ${n} can't be read: ${String(error)}`)
  }
}

interface Verified {
  readonly env: JournalEnvironment
  readonly identity: StoreIdentity
  readonly repair: boolean
}

class ShardVerification {
  groups = 0
  entries = 0
  readonly #env: JournalEnvironment
  readonly #shard: number
  readonly #report: Report
  readonly #losses: readonly AcceptedLoss[]
  readonly #commitIds = new Set<string>()
  readonly #audit: EntryAudit
  readonly #repair: boolean
  #flush = 0

  constructor({ env, identity, repair }: Verified, shard: number, report: Report) {
    this.#env = env
    this.#shard = shard
    this.#repair = repair
    this.#report = (what) => report(`shard ${shard}: ${what}`)
    this.#audit = new EntryAudit(this.#report)
    this.#losses = (identity.losses ?? []).filter((loss) => loss.shard === shard)
  }

  run(): void {
    const floor = floorOf(this.#env, this.#shard)
    if ('what' in floor) return this.#report(floor.what)
    this.#flush = floor.flush
    const walk = new LogWalk(this.#shard, floor.trimmed, this.#losses)
    const range = { start: logKey(this.#shard, 0), end: logKey(this.#shard + 1, 0) }
    let last: Uint8Array | null = null
    for (const { key, value } of this.#env.log.getRange(range)) {
      const offset = Buffer.from(key).readUIntBE(2, 6)
      const row = isWhole(key, value) ? readGroup(this.#shard, value) : null
      const what = walk.next(offset, row)
      if (what !== null) {
        this.#report(`offset ${walk.good + 1}: ${what}`)
        walk.good = offset
      }
      if (row !== null) this.#group(row)
      last = row === null ? null : value
    }
    this.#verifyHead(walk, last)
  }

  #verifyHead(walk: LogWalk, last: Uint8Array | null): void {
    const key = shardKey(this.#shard)
    const headRow = this.#env.heads.get(key)
    if (headRow === undefined || !isWhole(key, headRow)) {
      return this.#report("the row of its head doesn't match its checksum")
    }
    const { head } = readHead(headRow)
    const what = walk.end(head, headRow, last)
    if (what !== null) this.#report(`offset ${walk.good + 1}: ${what}`)
    if (this.#env.heads.getEntry(key)?.version !== head)
      this.#report("the head's two numbers differ")
    const epochRow = this.#env.epochs.getEntry(key)
    if (epochRow === undefined || !isWhole(key, epochRow.value)) {
      return this.#report("the row of its epoch doesn't match its checksum")
    }
    const epoch = derivedOffset(epochRow.value)
    if (epochRow.version !== epoch) this.#report("the epoch's two numbers differ")
    if (epoch < walk.epoch) this.#report(`its epoch is ${epoch}, its log has ${walk.epoch}`)
    if (this.#flush > head)
      this.#report(`its flush offset ${this.#flush} is above its head ${head}`)
  }

  #group(row: LogRow): void {
    this.groups++
    const first = row.offset - row.count + 1
    if (this.#commitIds.has(row.commitId)) {
      this.#report(`offset ${first}: commit id ${row.commitId} is there twice`)
    }
    this.#commitIds.add(row.commitId)
    let bodies: Buffer[] = []
    try {
      bodies = splitEntries(row.body)
    } catch (error) {
      return this.#report(`offset ${first}: ${String(error)}`)
    }
    if (bodies.length !== row.count) {
      this.#report(`offset ${first}: holds ${bodies.length} entries and says ${row.count}`)
    }
    for (const [i, body] of bodies.entries()) {
      this.entries++
      try {
        this.#entry(first + i, decodeWholeEntry(body), body)
      } catch (error) {
        this.#report(`offset ${first + i}: the entry can't be read: ${String(error)}`)
      }
    }
  }

  #entry(offset: number, entry: EntryHead, body: Buffer): void {
    this.#audit.next(offset, entry)
    // An entry of a key alone belongs to no actor.
    if (entry.n > 0) this.#verifyRow(offset, entry, body)
  }

  /** The actor's own row of this entry: there once it is flushed, and the same. */
  #verifyRow(offset: number, entry: EntryHead, body: Buffer): void {
    const { n, p: actorId } = entry
    const key = entryKey(actorId, n)
    const value = this.#env.entries.get(key)
    const place = `offset ${offset}: actor ${actorId}`
    // It may have gone, and its number may be another's.
    const mayBeGone = isPassing({ kind: 'entry', actorId, n, offset, body })
    if (value === undefined) {
      if (offset > this.#flush || mayBeGone) return
      if (this.#repair) this.#putBack(key, offset, body)
      const done = this.#repair ? '; it was put back' : ''
      this.#report(`${place}: entry ${n} is flushed and has no row${done}`)
      return
    }
    // A damaged row is reported with its table.
    if (!isWhole(key, value)) return
    const at = derivedOffset(value)
    if (at !== offset) {
      if (mayBeGone && at > offset) return
      this.#report(`${place}: ${placeOf(entry, offset)} has a row of offset ${at}`)
    } else if (!body.equals(derivedBody(value))) {
      this.#report(`${place}: entry ${n} has a row with another content`)
    }
  }

  #putBack(key: Buffer, offset: number, body: Buffer): void {
    const row = encodeDerived(new Arena(), key, { shard: this.#shard, offset }, body)
    writeAlone(this.#env, () => this.#env.entries.putSync(row.key, row.value))
  }
}
