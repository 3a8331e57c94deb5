// The log as a thread beside the writer's sees it: followed frame by frame up to where the writer
// says that it ends. Source: PROTOCOL 3.16.

import { LIMITS } from '../../../config/limits.ts'
import { assert } from '../../../protocol/errors.ts'
import type { ShardStatus } from '../../journal.ts'
import { LogFollower } from '../../segment-log/follower.ts'
import type { FollowOptions, FrameParts } from '../../segment-log/follower.ts'
import type { Disk } from '../../segment-log/disk.ts'
import type { LogPosition } from '../../segment-log/scan.ts'
import { ShardHeads } from '../../segment-log/shard-heads.ts'
import { headsOf } from '../journal/catch-up.ts'
import { getCovered } from '../../lmdb/covered.ts'
import { JournalDamage } from '../../damage.ts'
import type { JournalEnvironment } from '../../lmdb/environment.ts'
import { LogTail, type LoggedGroup } from '../../segment-log/tail.ts'
import type { SharedEnd } from './shared-end.ts'

/** The newest have their bodies. */
interface ViewedGroup extends LoggedGroup {
  readonly body: Buffer | null
}

export interface LogViewOptions extends Pick<FollowOptions, 'generation' | 'gaps'> {
  readonly env: JournalEnvironment
  readonly disk: Disk
  readonly end: SharedEnd
}

export class LogView {
  readonly #options: LogViewOptions
  #follower: LogFollower
  #tail = new LogTail<ViewedGroup>()
  #heads: ShardHeads
  #bytes = 0

  constructor(options: LogViewOptions) {
    this.#options = options
    ;[this.#follower, this.#heads] = begin(options)
  }

  /** Everything that is committed now and that the data file may not have. */
  tail(): LogTail {
    this.#goOn()
    return this.#tail
  }

  status(shard: number): ShardStatus {
    this.#goOn()
    return this.#heads.status(shard)
  }

  /** As if it had not looked before: what it remembers may lie in a file that is gone. */
  renew(): void {
    this.#beginAgain()
  }

  close(): void {
    this.#follower.close()
  }

  #goOn(): void {
    const end = this.#options.end.load()
    if (end === null) return
    if (this.#isFarBehind(end)) this.#beginAgain()
    try {
      this.#follow()
    } catch (error) {
      if (!(error instanceof JournalDamage)) throw error
      // A file may have been given back since it was begun in; it is behind what is known by now.
      this.#beginAgain()
      this.#follow()
    }
    if (this.#bytes > LIMITS.embedded.logViewBytesMax) this.#forget()
  }

  #follow(): void {
    // Once more: who stood still since the last look may begin behind what was the end then.
    const end = this.#options.end.load()!
    for (const frame of this.#follower.to(end)) this.#take(frame)
  }

  /** Who has not looked for long finds nearly all of what came since in the data file. */
  #isFarBehind(end: LogPosition): boolean {
    const { at } = this.#follower
    if (at === null || at.file === end.file) {
      return end.position - (at?.position ?? end.position) > LIMITS.embedded.logViewBytesMax
    }
    return end.file - at.file > 1 || end.position > LIMITS.embedded.logViewBytesMax
  }

  #beginAgain(): void {
    this.#follower.close()
    ;[this.#follower, this.#heads] = begin(this.#options)
    this.#tail = new LogTail()
    this.#bytes = 0
  }

  #take({ parts, begun, body }: FrameParts): void {
    if (begun !== null) this.#heads = new ShardHeads(begun.shards)
    for (const part of parts) {
      assert(this.#heads.take(part), 'the log goes on from where it was')
      if (part.kind === 'claim') continue
      const { shard, epoch, head, count, commitId, place } = part
      const isKept = this.#bytes + place.length <= 2 * LIMITS.embedded.logViewBytesMax
      const kept = isKept ? body(place) : null
      const group = { shard, epoch, offset: head + count, count, commitId, place, begins: null }
      this.#tail.add({ ...group, body: kept })
      this.#bytes += place.length
    }
  }

  #forget(): void {
    const { env } = this.#options
    env.root.resetReadTxn()
    const covered = getCovered(env)
    if (covered !== null) this.#bytes -= this.#tail.forget(covered)
  }
}

/** From where the data file has the log's places; the heads are those of that position. */
function begin({ env, disk, generation, gaps = [] }: LogViewOptions): [LogFollower, ShardHeads] {
  // One read transaction.
  env.root.resetReadTxn()
  const from = getCovered(env)
  return [new LogFollower(disk, { generation, from, gaps }), headsOf(env)]
}
