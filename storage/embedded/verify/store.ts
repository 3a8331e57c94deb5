// Reads everything a data directory holds and says what isn't as it must be: the audit that
// backups, moves and fault tests rely on. It only reads the files. Source: PROTOCOL 3.16, 3.12, 4.1
// (K4).

import { join } from 'node:path'
import type { LogReader } from '../../journal.ts'
import type { Behaviours } from '../../key-audit.ts'
import type { Report } from '../../report.ts'
import { NodeDisk } from '../../segment-log/node-disk.ts'
import { PlaceReader } from '../../segment-log/place-reader.ts'
import { getCovered } from '../../lmdb/covered.ts'
import {
  DATA_FILE,
  openEnvironment,
  refuseOthers,
  type JournalEnvironment,
} from '../../lmdb/environment.ts'
import { checkDataFile, walkDataFile } from '../../lmdb/pages.ts'
import { readIdentity, STORE_FILE, type EmbeddedIdentity } from '../journal/identity.ts'
import { LOG_FOLDER } from '../journal/journal.ts'
import { EmbeddedDerivedReader, EmbeddedLogReader } from '../journal/read.ts'
import { shardsOf } from '../store-shards.ts'
import { verifyKeys } from './keys.ts'
import { LogVerification } from './segments.ts'
import { ShardVerification } from './shard.ts'
import { verifyTables } from './tables.ts'

export interface VerifyReport {
  readonly findings: number
  readonly groups: number
  readonly entries: number
  readonly derivedRows: number
}

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
  options: VerifyOptions = {},
): Promise<VerifyReport> {
  const counts = { findings: 0, groups: 0, entries: 0, derivedRows: 0 }
  const report: Report = (line) => {
    counts.findings++
    print(line)
  }
  try {
    const identity = readIdentity(dir)
    if (identity === null) report(`${join(dir, STORE_FILE)}: there is no store`)
    else await verifyStore({ dir, identity, options, report, counts })
  } catch (error) {
    report(error instanceof Error ? error.message : String(error))
  }
  return counts
}

interface Verified {
  readonly dir: string
  readonly identity: EmbeddedIdentity
  readonly options: VerifyOptions
  readonly report: Report
  readonly counts: { groups: number; entries: number; derivedRows: number }
}

async function verifyStore(verified: Verified): Promise<void> {
  const { dir, identity, options, report, counts } = verified
  const file = join(dir, DATA_FILE)
  const disk = new NodeDisk(join(dir, LOG_FOLDER))
  const log = new LogVerification(disk, identity, report)
  if (!(await isReadable(file, report))) {
    log.run(null)
    counts.groups = log.groups
    counts.entries = log.entries
    return
  }
  const env = openEnvironment(dir, options.repair !== true)
  const places = new PlaceReader(disk)
  try {
    if (options.repair) refuseOthers(env)
    const told: Report = (what) => report(`${file}: ${what}`)
    const covered = getCovered(env)
    log.run({ env, covered })
    counts.groups = log.groups
    const source = { env, places, tail: () => log.tail, status: log.status }
    const reader = new EmbeddedLogReader(source)
    counts.entries = verifyShards(verified, { env, places, reader, told })
    counts.derivedRows = verifyTables(env, places, told)
    const { behaviours, repair = false } = options
    const stores = { env, identity, log: reader, derived: new EmbeddedDerivedReader(env, places) }
    if (behaviours) await verifyKeys(stores, { behaviours, repair, report: told })
  } finally {
    places.close()
    await env.root.close()
  }
}

function verifyShards(
  { identity, options }: Verified,
  of: {
    readonly env: JournalEnvironment
    readonly places: PlaceReader
    readonly reader: LogReader
    readonly told: Report
  },
): number {
  const { env, places, reader, told } = of
  const repair = options.repair === true
  let entries = 0
  for (const shard of shardsOf(identity)) {
    const verification = new ShardVerification({ env, places, log: reader, repair }, shard, told)
    entries += verification.run()
    env.root.resetReadTxn()
  }
  return entries
}

/**
 * Whether there is a data file, and a whole one: a broken tree would end the process in LMDB, which
 * looks for nothing of the kind.
 */
async function isReadable(file: string, report: Report): Promise<boolean> {
  try {
    // A backup has none before a node was started on it: it is made anew from the log.
    if (!checkDataFile(file)) return false
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
