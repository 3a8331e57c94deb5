// Reads everything a data directory holds and says what isn't as it must be: the audit that
// backups, moves and fault tests rely on. It stands between the data file, which it only reads, and
// whoever prints its findings. Source: PROTOCOL 3.16, 3.12, 4.1 (K4).

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { decodeEntry, splitEntries, type Entry } from '../../protocol/entry.ts'
import type { AcceptedLoss, LogRow, StoreIdentity } from '../journal.ts'
import type { Behaviours } from '../key-audit.ts'
import { floorOf, LogWalk, shardsOf } from './journal-check.ts'
import {
  DATA_FILE,
  DERIVED_TABLES,
  openEnvironment,
  type JournalEnvironment,
} from './journal-environment.ts'
import { checkDataFile, walkDataFile } from './journal-file.ts'
import { readIdentity } from './journal-identity.ts'
import {
  derivedBody,
  derivedOffset,
  derivedShard,
  entryKey,
  entryNumber,
  isWhole,
  logKey,
  readGroup,
  readHead,
  shardKey,
  uuidAt,
} from './journal-layout.ts'
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
 * each finding. Findings make a command's exit code 1. Never throws for what is in the files.
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
    const identity = readIdentity(env)
    if (identity === null) {
      report(`${file}: holds no journal`)
      return counts
    }
    for (const shard of shardsOf(identity)) {
      const verified = new ShardVerification(env, identity, shard, (what) =>
        report(`${file}: ${what}`),
      )
      verified.run()
      counts.groups += verified.groups
      counts.entries += verified.entries
    }
    for (const table of DERIVED_TABLES) {
      counts.derivedRows += verifyTable(env, table, (what) => report(`${file}: ${what}`))
    }
    if (env.expiries) verifyTable(env, 'expiries', (what) => report(`${file}: ${what}`))
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

/** Rows of one table: whole, and an actor's entries dense and in the order of their offsets. */
function verifyTable(
  env: JournalEnvironment,
  table: (typeof DERIVED_TABLES)[number] | 'expiries',
  report: Report,
): number {
  let rows = 0
  let before: EntryPlace | null = null
  const losses = readIdentity(env)?.losses ?? []
  for (const { key, value } of env[table]!.getRange({})) {
    rows++
    if (!isWhole(key, value)) {
      const hex = Buffer.from(key).toString('hex')
      report(`table '${table}', row ${hex}: its checksum doesn't match`)
      before = null
    } else if (table === 'entries') {
      const place: EntryPlace = {
        actorId: uuidAt(key, 0),
        n: entryNumber(key),
        offset: derivedOffset(value),
        shard: derivedShard(value),
      }
      if (before !== null) verifyOrder(before, place, { losses, report })
      before = place
    }
  }
  return rows
}

interface EntryPlace {
  readonly actorId: string
  readonly n: number
  readonly offset: number
  readonly shard: number
}

function verifyOrder(
  before: EntryPlace,
  next: EntryPlace,
  by: { readonly losses: readonly AcceptedLoss[]; readonly report: Report },
): void {
  if (before.actorId !== next.actorId) return
  const { actorId, n, offset } = next
  const isBehindLoss = by.losses.some(
    (loss) => loss.shard === next.shard && before.offset <= loss.offset && loss.resumedAt < offset,
  )
  if (n !== before.n + 1 && !isBehindLoss) {
    by.report(`actor ${actorId}: entry ${n} comes behind entry ${before.n}`)
  }
  if (offset <= before.offset) {
    by.report(`actor ${actorId}: entry ${n} has offset ${offset}, entry ${before.n} a higher one`)
  }
}

/** Where an actor stands while its entries are read in the order of the log. */
interface ActorPlace {
  n: number
  version: number
  offset: number
}

class ShardVerification {
  groups = 0
  entries = 0
  readonly #env: JournalEnvironment
  readonly #shard: number
  readonly #report: Report
  readonly #losses: readonly AcceptedLoss[]
  readonly #commitIds = new Set<string>()
  readonly #actors = new Map<string, ActorPlace>()
  #flush = 0

  constructor(env: JournalEnvironment, identity: StoreIdentity, shard: number, report: Report) {
    this.#env = env
    this.#shard = shard
    this.#report = (what) => report(`shard ${shard}: ${what}`)
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
        this.#entry(first + i, decodeEntry(body), body)
      } catch (error) {
        this.#report(`offset ${first + i}: the entry can't be read: ${String(error)}`)
      }
    }
  }

  #entry(offset: number, entry: Entry, body: Buffer): void {
    // An entry of a key alone belongs to no actor.
    if (entry.n === 0) return
    const before = this.#actors.get(entry.p)
    const isGap = before !== undefined && this.#isAcrossLoss(before.offset, offset)
    if (before !== undefined && !isGap) {
      if (entry.n !== before.n + 1) {
        this.#report(`offset ${offset}: actor ${entry.p}: entry ${entry.n} behind ${before.n}`)
      }
      if (entry.v !== before.version) {
        const versions = `goes on from version ${entry.v}, it was at ${before.version}`
        this.#report(`offset ${offset}: actor ${entry.p}: ${versions}`)
      }
    }
    const version = entry.v + entry.r.length
    this.#actors.set(entry.p, { n: entry.n, version, offset })
    this.#verifyRow(offset, entry, body)
  }

  #isAcrossLoss(from: number, to: number): boolean {
    return this.#losses.some((loss) => from <= loss.offset && to > loss.resumedAt)
  }

  /** The actor's own row of this entry: there once it is flushed, and the same. */
  #verifyRow(offset: number, entry: Entry, body: Buffer): void {
    const key = entryKey(entry.p, entry.n)
    const value = this.#env.entries.get(key)
    const place = `offset ${offset}: actor ${entry.p}: entry ${entry.n}`
    if (value === undefined) {
      if (offset <= this.#flush) this.#report(`${place} is flushed and has no row`)
      return
    }
    // A damaged row is reported with its table.
    if (!isWhole(key, value)) return
    if (derivedOffset(value) !== offset) {
      this.#report(`${place} has a row of offset ${derivedOffset(value)}`)
    }
    if (!body.equals(derivedBody(value))) this.#report(`${place} has a row with another content`)
  }
}
