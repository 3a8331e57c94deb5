// The log's files, frame by frame: whole, each group behind the one before it, and where the data
// file says that it lies. Source: PROTOCOL 3.16.

import type { ShardStatus } from '../../journal.ts'
import type { Disk } from '../../segment-log/disk.ts'
import type { GroupPart } from '../../segment-log/frame.ts'
import { fileName, numberOf, roundOf } from '../../segment-log/header.ts'
import type { LogPosition } from '../../segment-log/scan.ts'
import { ShardHeads } from '../../segment-log/shard-heads.ts'
import { surveyLog, type Surveyed } from '../../segment-log/survey.ts'
import { getUpkeep } from '../../lmdb/covered.ts'
import type { JournalEnvironment } from '../../lmdb/environment.ts'
import type { EmbeddedIdentity } from '../journal/identity.ts'
import { isWhole, logKey, readGroup } from '../../lmdb/layout.ts'
import { isBefore, LogTail } from '../../segment-log/tail.ts'
import type { Report } from '../../report.ts'

/** The data file, and up to where it has the log's places. */
export interface Covering {
  readonly env: JournalEnvironment
  readonly covered: LogPosition | null
}

export class LogVerification {
  groups = 0
  entries = 0
  /** What the data file doesn't have yet. */
  readonly tail = new LogTail()
  readonly #disk: Disk
  readonly #identity: EmbeddedIdentity
  readonly #report: Report
  #heads: ShardHeads | null = null
  #file = 0
  #isTurned = true

  constructor(disk: Disk, identity: EmbeddedIdentity, report: Report) {
    this.#disk = disk
    this.#identity = identity
    this.#report = report
  }

  readonly status = (shard: number): ShardStatus => {
    return (this.#heads ?? new ShardHeads()).status(shard)
  }

  run(data: Covering | null): void {
    const { log: generation, gaps } = this.#identity
    try {
      for (const found of surveyLog(this.#disk, { generation, gaps, isTail: false })) {
        this.#take(found, data)
      }
    } catch (error) {
      this.#report(error instanceof Error ? error.message : String(error))
    }
  }

  #take(found: Surveyed, data: Covering | null): void {
    const { header, at } = found
    const { file } = header.key
    if (file !== this.#file) {
      this.#heads = new ShardHeads(header.shards)
      // Where places were not all turned yet, some lie in what the file was made from.
      const turned = data === null ? 0 : getUpkeep(data.env, numberOf(file)).turned
      this.#isTurned = turned >= roundOf(file)
    }
    this.#file = file
    const heads = this.#heads!
    if (found.is === 'gap') heads.pass(found.gap.resumed)
    else if (found.is === 'damage') this.#damage(at, found.what)
    else {
      for (const part of found.parts) {
        if (heads.isGivenUp(part)) continue
        if (part.kind === 'group') this.#group(part, at, data)
        else heads.take(part)
      }
    }
  }

  #damage(at: LogPosition, what: string): void {
    this.#tell(at, what)
    this.#heads!.pass([])
  }

  #group(part: GroupPart, at: LogPosition, data: Covering | null): void {
    const heads = this.#heads!
    const { shard, head, count, epoch, commitId, place } = part
    this.groups++
    this.entries += count
    if (!heads.take(part)) {
      const { head: good } = heads.status(shard)
      const what = `the entries behind offset ${good} are missing: the next begin at ${head + 1}`
      this.#tell(at, `shard ${shard}, offset ${good + 1}: ${what}`)
      heads.resume(shard, head)
      heads.take({ shard, epoch })
      heads.take(part)
    }
    if (data === null) return
    const offset = head + count
    if (data.covered !== null && isBefore(at, data.covered)) {
      if (this.#isTurned) this.#row(part, at, data.env)
    } else this.tail.add({ shard, epoch, offset, count, commitId, place, begins: null })
  }

  #row({ shard, head, count, place }: GroupPart, at: LogPosition, env: JournalEnvironment): void {
    const key = logKey(shard, head + count)
    const value = env.log.get(key)
    const found = value !== undefined && isWhole(key, value) ? readGroup(value).place : null
    if (found?.file === place.file && found.position === place.position) return
    const what = found === null ? 'the data file has no place of it' : 'its place is another'
    this.#tell(at, `shard ${shard}, offset ${head + count}: ${what}`)
  }

  #tell({ file, position }: LogPosition, what: string): void {
    this.#report(`${this.#disk.path}/${fileName(file)}: position ${position}: ${what}`)
  }
}
