// What a start does before the journal serves: it takes the places of what was committed last, and
// which the data file doesn't have yet, from the log. A data file that has nothing gets all of
// them, in steps. Source: PROTOCOL 3.16.

import { LIMITS } from '../../../config/limits.ts'
import { assert } from '../../../protocol/errors.ts'
import type { Disk } from '../../segment-log/disk.ts'
import { LogFollower, type FrameParts } from '../../segment-log/follower.ts'
import { numberOf, roundOf } from '../../segment-log/header.ts'
import type { LogPosition } from '../../segment-log/scan.ts'
import { ShardHeads } from '../../segment-log/shard-heads.ts'
import { Arena } from '../../lmdb/arena.ts'
import {
  getCovered,
  getLogId,
  getUpkeep,
  putCovered,
  putLogId,
  upkeepRow,
} from '../../lmdb/covered.ts'
import { damagedRow } from '../../damage.ts'
import { causeOfFailure, type JournalEnvironment } from '../../lmdb/environment.ts'
import type { EmbeddedIdentity } from './identity.ts'
import { isWhole, readHead, shardOfKey } from '../../lmdb/layout.ts'
import { pathBytes, type Room } from '../../lmdb/room.ts'
import { encodeGroup, encodeHead } from '../../lmdb/rows.ts'
import { beginsIn, type LoggedGroup } from '../../segment-log/tail.ts'

/** Paths of pages for the heads, how far the data file has the log, and LMDB's own tables. */
const ROWS_BESIDE = 4

export interface CatchUpOptions {
  readonly env: JournalEnvironment
  readonly room: Pick<Room, 'left'>
  readonly disk: Disk
  readonly identity: EmbeddedIdentity
  /** The log's end, and where its shards are there. */
  readonly until: LogPosition
  readonly heads: ShardHeads
}

/**
 * Rows are written up to the end: the tail begins empty. Throws JournalDamage, and Error where the
 * disk has no room for them.
 */
export async function catchUp(options: CatchUpOptions): Promise<void> {
  const { env, room, disk, identity, until, heads } = options
  const from = getCovered(env)
  const { log: generation, gaps } = identity
  const follower = new LogFollower(disk, { generation, from, gaps })
  const step = new Step(env, room)
  // A start that ended on its way may have passed a gap: what was given up lies behind it, too.
  for (const gap of gaps) {
    if (gap.file === from?.file && gap.position < from.position) step.heads.pass(gap.resumed)
  }
  try {
    for (const frame of follower.to(until)) {
      step.take(frame)
      if (step.groups.length >= LIMITS.embedded.catchUpGroups) await step.write(frame.next)
    }
  } finally {
    follower.close()
  }
  // Behind the last frame something may have been given up: the log knows where shards go on.
  step.heads = heads
  await step.write(until)
}

/** Rows of another log say nothing of this one: throws Error. */
export function checkLogId(env: JournalEnvironment, { log }: EmbeddedIdentity): void {
  const found = getLogId(env)
  if (found === log) return
  if (found === null) {
    env.root.transactionSync(() => putLogId(env, log))
    return
  }
  throw new Error(
    `${env.file}: it belongs to another store (${found}, not ${log}). Nothing was changed. Take ` +
      'the file away and start again: it is made anew from the log',
  )
}

/** Places on their way into the data file. */
class Step {
  groups: LoggedGroup[] = []
  readonly #env: JournalEnvironment
  readonly #room: Pick<Room, 'left'>
  heads: ShardHeads
  /** Files that stand for others, whose places are on their way. */
  readonly #rewritten: number[] = []

  constructor(env: JournalEnvironment, room: Pick<Room, 'left'>) {
    this.#env = env
    this.#room = room
    this.heads = headsOf(env)
  }

  take({ parts, begun, passed, body }: FrameParts): void {
    if (begun !== null) this.heads = new ShardHeads(begun.shards)
    if (begun?.rewritten !== undefined) this.#rewritten.push(begun.key.file)
    for (const { resumed } of passed) this.heads.pass(resumed)
    for (const part of parts) {
      if (this.heads.isGivenUp(part)) continue
      assert(this.heads.take(part), 'the log goes on from where it was')
      if (part.kind === 'claim') continue
      const { shard, epoch, head, count, commitId, place } = part
      const begins = beginsIn(body(place), count)
      this.groups.push({ shard, epoch, offset: head + count, count, commitId, place, begins })
    }
  }

  async write(covered: LogPosition): Promise<void> {
    const env = this.#env
    const arena = new Arena()
    const groups = this.groups.map((group) => encodeGroup(arena, group))
    const heads = this.heads.entries().map(([shard, at]) => encodeHead(arena, shard, at))
    // Heads are all written, side by side.
    const shards = new Set(this.groups.map(({ shard }) => shard)).size
    this.#refuseWithoutRoom(2 * arena.used + pathBytes(shards + ROWS_BESIDE))
    this.groups = []
    // All places are those of the file: whatever it was made from isn't asked for any more.
    const upkeeps = this.#rewritten.splice(0).map((file) => {
      const number = numberOf(file)
      return upkeepRow(number, { ...getUpkeep(env, number), turned: roundOf(file) })
    })
    try {
      await env.root.batch(() => {
        for (const row of groups) void env.log.put(row.key, row.value)
        for (const row of heads) void env.heads.put(row.key, row.value)
        for (const row of upkeeps) void env.meta.put(row.key, row.value)
        putCovered(env, covered)
      })
    } catch (error) {
      const cause = await causeOfFailure(error)
      throw new Error(`${env.file}: can't be written: ${cause.message}`, { cause: error })
    }
  }

  /** LMDB must not be the one to find out (storage/lmdb/room.ts). */
  #refuseWithoutRoom(bytes: number): void {
    const left = this.#room.left()
    if (left >= bytes) return
    throw new Error(
      `${this.#env.file}: ${left} bytes are left on the disk, and ${bytes} may be needed for the ` +
        'places of what the log holds: make room, and start again',
    )
  }
}

/** Where the shards were at the position up to which the data file has the log. */
export function headsOf(env: JournalEnvironment): ShardHeads {
  const found = env.heads.getRange({}).map(({ key, value }) => {
    if (!isWhole(key, value)) throw damagedRow(env.file, 'heads', key)
    return [shardOfKey(key), readHead(value)] as const
  })
  return new ShardHeads(found)
}
