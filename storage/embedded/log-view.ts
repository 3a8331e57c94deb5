// The log as a thread beside the writer's sees it: followed frame by frame up to where the writer
// says that it ends. It stands between the segment files and the reading half of the journal in a
// worker thread. Source: PROTOCOL 3.16.

import { LIMITS } from '../../config/limits.ts'
import { assert } from '../../protocol/errors.ts'
import type { ShardStatus } from '../journal.ts'
import { LogFollower } from '../segment-log/follower.ts'
import type { FollowOptions, FrameParts } from '../segment-log/follower.ts'
import type { Disk } from '../segment-log/disk.ts'
import { ShardHeads } from '../segment-log/shard-heads.ts'
import { headsOf } from './journal-catch-up.ts'
import { getCovered } from './journal-covered.ts'
import type { JournalEnvironment } from './journal-environment.ts'
import { LogTail, type LoggedGroup } from './log-tail.ts'
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
  readonly #follower: LogFollower
  readonly #tail = new LogTail<ViewedGroup>()
  #heads: ShardHeads
  #bytes = 0

  constructor(options: LogViewOptions) {
    this.#options = options
    const { env, disk, generation, gaps } = options
    // One read transaction: the heads are those of that position.
    env.root.resetReadTxn()
    const from = getCovered(env)
    this.#heads = headsOf(env)
    this.#follower = new LogFollower(disk, { generation, from, gaps: gaps ?? [] })
  }

  /** Everything that is committed now and that the data file may not have. */
  tail(): LogTail {
    this.#goOn()
    if (this.#bytes > LIMITS.logViewBytesMax) this.#forget()
    return this.#tail
  }

  status(shard: number): ShardStatus {
    this.#goOn()
    return this.#heads.status(shard)
  }

  close(): void {
    this.#follower.close()
  }

  #goOn(): void {
    const end = this.#options.end.load()
    if (end === null) return
    for (const frame of this.#follower.to(end)) this.#take(frame)
  }

  #take({ parts, begun, body }: FrameParts): void {
    if (begun !== null) this.#heads = new ShardHeads(begun.shards)
    for (const part of parts) {
      assert(this.#heads.take(part), 'the log goes on from where it was')
      if (part.kind === 'claim') continue
      const { shard, epoch, head, count, commitId, place } = part
      const isKept = this.#bytes + place.length <= 2 * LIMITS.logViewBytesMax
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
