// Going on without what is lost: what of a shard's log can't be read, and the way back that an
// operator chooses with --accept-loss when there is no backup. The log of segment files can't be
// read to its end. Source: PROTOCOL 3.16.

import { LIMITS } from '../../../config/limits.ts'
import { assert } from '../../../protocol/errors.ts'
import { COUNTER_SUFFIX } from '../../journal.ts'
import type { Disk } from '../../segment-log/disk.ts'
import type { Part } from '../../segment-log/frame.ts'
import { fileName, type Header } from '../../segment-log/header.ts'
import type { LogGap, LogPosition } from '../../segment-log/scan.ts'
import { ShardHeads } from '../../segment-log/shard-heads.ts'
import { surveyLog, type Surveyed } from '../../segment-log/survey.ts'
import { Arena } from '../../lmdb/arena.ts'
import { getCovered, putCovered } from '../../lmdb/covered.ts'
import { JournalDamage } from '../../damage.ts'
import type { DERIVED_TABLES, JournalEnvironment } from '../../lmdb/environment.ts'
import type { EmbeddedIdentity } from './identity.ts'
import { derivedOffset, derivedShard, logKey } from '../../lmdb/layout.ts'
import { encodeHead } from '../../lmdb/rows.ts'
import { isBefore } from '../../segment-log/tail.ts'
import { shardsOf } from '../store-shards.ts'

/** What a shard has lost: everything behind `offset`. */
export interface ShardLoss {
  readonly shard: number
  readonly offset: number
  /** The highest offset that was ever heard of. */
  highest: number
  /** Index of the gap by which it was lost. */
  readonly gap: number
}

export interface LogLoss {
  readonly gaps: readonly Omit<LogGap, 'resumed'>[]
  readonly whats: readonly string[]
  readonly shards: readonly ShardLoss[]
  /** Of the file in which it is: the last one. */
  readonly header: Header
}

/**
 * What the end of the log has lost, or null when it is whole. `synced`: up to here, at least, it
 * was. Throws JournalDamage for what can't be gone on without: a file or a header that is missing.
 */
export function lossIn(
  disk: Disk,
  identity: EmbeddedIdentity,
  synced: LogPosition | null,
): LogLoss | null {
  const { log: generation, gaps } = identity
  const survey = new LossSurvey(identity)
  const options = { generation, gaps, synced, isTail: true }
  for (const found of surveyLog(disk, options)) survey.take(found)
  return survey.loss()
}

class LossSurvey {
  readonly #identity: EmbeddedIdentity
  readonly #gaps: Omit<LogGap, 'resumed'>[] = []
  readonly #whats: string[] = []
  readonly #lost = new Map<number, ShardLoss>()
  /** Shards that a frame may have been of, by the gap that it left, until a group shows not. */
  readonly #suspects = new Map<number, number>()
  #heads: ShardHeads | null = null
  #header: Header | null = null

  constructor(identity: EmbeddedIdentity) {
    this.#identity = identity
  }

  take(found: Surveyed): void {
    this.#header = found.header
    this.#heads ??= new ShardHeads(found.header.shards)
    if (found.is === 'gap') this.#heads.pass(found.gap.resumed)
    else if (found.is === 'damage') this.#damage(found)
    else for (const part of found.parts) this.#part(part)
  }

  #damage({ at, next, what, parts }: Extract<Surveyed, { is: 'damage' }>): void {
    this.#gaps.push({ ...at, next })
    this.#whats.push(what)
    this.#heads!.pass([])
    const gap = this.#gaps.length - 1
    for (const part of parts ?? []) if (part.kind === 'group') this.#lose(part, gap)
    if (parts !== null) return
    for (const shard of shardsOf(this.#identity)) {
      if (!this.#suspects.has(shard)) this.#suspects.set(shard, gap)
    }
  }

  #part(part: Part): void {
    const { shard } = part
    if (this.#heads!.take(part) || this.#heads!.isGivenUp(part)) {
      if (part.kind === 'group') this.#suspects.delete(shard)
    } else if (part.kind === 'group') {
      this.#lose(part, this.#suspects.get(shard) ?? Math.max(0, this.#gaps.length - 1))
    }
  }

  #lose({ shard, head, count }: Extract<Part, { kind: 'group' }>, gap: number): void {
    const known = this.#lost.get(shard)
    if (known) known.highest = Math.max(known.highest, head + count)
    else this.#lost.set(shard, { ...this.#from(shard, gap), highest: head + count })
  }

  #from(shard: number, gap: number): ShardLoss {
    const { head } = this.#heads!.status(shard)
    return { shard, offset: head, highest: head, gap }
  }

  loss(): LogLoss | null {
    if (this.#gaps.length === 0) return null
    for (const [shard, gap] of this.#suspects) {
      if (!this.#lost.has(shard)) this.#lost.set(shard, this.#from(shard, gap))
    }
    const shards = [...this.#lost.values()].sort((a, b) => a.shard - b.shard)
    return { gaps: this.#gaps, whats: this.#whats, shards, header: this.#header! }
  }
}

/** What a start says of it. */
export function lossDamage(disk: Disk, { gaps, whats, shards }: LogLoss): JournalDamage {
  const [gap] = gaps
  assert(gap !== undefined, 'something is lost')
  const file = `${disk.path}/${fileName(gap.file)}`
  const [first] = shards
  const { shard, offset } = first ?? { shard: null, offset: null }
  const from = shards.map((one) => `shard ${one.shard} from offset ${one.offset + 1} on`)
  if (first === undefined) {
    const what = `${file}: position ${gap.position}: ${whats[0]}. No entry of any shard is lost by it`
    return new JournalDamage(what, { file, shard, offset })
  }
  const flags = shards.map((one) => `--accept-loss ${one.shard}:${one.offset}`).join(' ')
  return new JournalDamage(
    `${file}: position ${gap.position}: ${whats[0]}. What is or may be lost: ` +
      `${from.join(', ')}. Nothing was changed. Ways back: restore the ` +
      `data directory from a backup; or give up what is lost with ${flags}`,
    { file, shard, offset: offset === null ? null : offset + 1 },
  )
}

/** The store as it goes on without what was lost, under a new generation. */
export function identityWithout(
  identity: EmbeddedIdentity,
  { gaps, shards }: LogLoss,
  generation: string,
): EmbeddedIdentity {
  const resumedAt = (one: ShardLoss): number => one.highest + LIMITS.embedded.lossOffsets
  const losses = shards.map((one) => {
    return { shard: one.shard, offset: one.offset, resumedAt: resumedAt(one) }
  })
  const accepted = gaps.map((gap, i): LogGap => {
    const own = shards.filter((one) => one.gap === i)
    return { ...gap, resumed: own.map((one) => [one.shard, resumedAt(one)]) }
  })
  return {
    ...identity,
    generation,
    losses: [...(identity.losses ?? []), ...losses],
    gaps: [...identity.gaps, ...accepted],
  }
}

/** Rows that say more than the log that is left, and go with it. The other registers hold counters
 * and offsets: higher ones than the log's do no harm, lower ones would. */
const FOLLOWS_LOG: readonly (typeof DERIVED_TABLES)[number][] = [
  'entries',
  'aliases',
  'snapshots',
  'marks',
  'images',
]

/**
 * Drops what was derived from what is lost, in one transaction; places are taken again from the
 * file on in which it is.
 */
export function dropLost(env: JournalEnvironment, { shards, header }: LogLoss): void {
  env.root.transactionSync(() => {
    for (const at of shards) {
      for (const name of [...FOLLOWS_LOG, 'ended'] as const) dropDerived(env, name, at)
      const range = { start: logKey(at.shard, at.offset + 1), end: logKey(at.shard + 1, 0) }
      for (const key of [...env.log.getKeys(range)]) env.log.removeSync(key)
    }
    const from = { file: header.key.file, position: header.end }
    const covered = getCovered(env)
    if (covered === null || isBefore(covered, from)) return
    const arena = new Arena()
    for (const [shard, head] of header.shards) {
      const { key, value } = encodeHead(arena, shard, head)
      env.heads.putSync(key, value)
    }
    putCovered(env, from)
  })
}

/** Counters of generated numbers stand among the keys; theirs begin with their type. */
function isCounter(key: Uint8Array): boolean {
  const [keyType] = Buffer.from(key).toString('latin1').split('\0')
  return keyType!.endsWith(COUNTER_SUFFIX)
}

function dropDerived(
  env: JournalEnvironment,
  name: (typeof DERIVED_TABLES)[number] | 'ended',
  at: ShardLoss,
): void {
  const lost: Uint8Array[] = []
  const table = env[name]!
  for (const { key, value } of table.getRange({})) {
    if (derivedShard(value) !== at.shard || derivedOffset(value) <= at.offset) continue
    if (name === 'aliases' && isCounter(key)) continue
    lost.push(key)
  }
  for (const key of lost) table.removeSync(key)
}
