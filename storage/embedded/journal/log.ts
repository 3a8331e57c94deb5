// The log of the embedded journal: groups are appended to the segment files, and are found by their
// offsets in the tail and, once it has their places, in the data file. Source: PROTOCOL 3.2, 3.16.

import { assert } from '../../../protocol/errors.ts'
import type { AppendOutcome, ClaimedShard, Group, LogStore } from '../../journal.ts'
import type { CommittedFrame, SegmentLog } from '../../segment-log/segment-log.ts'
import { consumerKey, derivedOffset } from '../../lmdb/layout.ts'
import { EmbeddedLogReader, getDerived, type LogSource } from './read.ts'
import type { JournalWriter } from '../../lmdb/writer.ts'
import { beginsIn, type LoggedGroup, type LogTail } from '../../segment-log/tail.ts'
import type { SharedEnd } from '../log/shared-end.ts'

export class EmbeddedLog extends EmbeddedLogReader implements LogStore {
  readonly appendsMax = 1
  readonly groupsMax = Number.MAX_SAFE_INTEGER
  readonly #segments: SegmentLog
  readonly #writer: JournalWriter
  #isClosed = false

  constructor(source: LogSource, segments: SegmentLog, writer: JournalWriter) {
    super(source)
    this.#segments = segments
    this.#writer = writer
  }

  async append(groups: readonly Group[]): Promise<readonly AppendOutcome[]> {
    assert(!this.#isClosed, 'the journal is open')
    if (groups.length === 0) return []
    if (!this.#writer.hasRoom()) return groups.map((): AppendOutcome => 'full')
    const { groups: parts } = await this.#segments.append(groups)
    const isFull = parts.some(({ outcome }) => outcome === 'full')
    if (isFull || parts.some(({ outcome }) => outcome === 'committed')) {
      this.#writer.tellRoom(!isFull)
    }
    return parts.map(({ outcome }, i) => {
      // An earlier copy of the same group may have won (PROTOCOL 3.2.4).
      return outcome === 'fenced' && this.#isInAlready(groups[i]!) ? 'committed' : outcome
    })
  }

  #isInAlready({ shard, head, count, commitId }: Group): boolean {
    return this.group(shard, head + count)?.commitId === commitId
  }

  async claim(shard: number): Promise<ClaimedShard> {
    const epoch = this.epochNow(shard) + 1
    const { claims } = await this.#segments.append([], [{ shard, epoch }])
    const { outcome } = claims[0]!
    const { env } = this.source
    if (outcome !== 'committed') {
      const why = outcome === 'full' ? 'the disk is full' : 'an earlier commit failed'
      throw new Error(`${env.file}: shard ${shard} can't be claimed: ${why}`)
    }
    const flush = getDerived(env, env.consumers, consumerKey(shard, 'flush'))
    const { head } = this.status(shard)
    return { epoch, head, flush: flush === null ? 0 : derivedOffset(flush) }
  }

  end(): void {
    this.#isClosed = true
  }
}

/** Takes frames of the log into the tail, and has their places written. */
export class FrameIntake {
  readonly #tail: LogTail
  readonly #end: SharedEnd
  readonly #writer: JournalWriter
  readonly #segments: SegmentLog

  constructor(to: {
    readonly tail: LogTail
    readonly end: SharedEnd
    readonly writer: JournalWriter
    readonly segments: SegmentLog
  }) {
    this.#tail = to.tail
    this.#end = to.end
    this.#writer = to.writer
    this.#segments = to.segments
  }

  take({ groups, claims, end }: CommittedFrame): void {
    const logged = groups.map(({ group, place }): LoggedGroup => {
      const { shard, epoch, head, count, commitId, body } = group
      const begins = beginsIn(body, count)
      return { shard, epoch, offset: head + count, count, commitId, place, begins }
    })
    for (const group of logged) this.#tail.add(group)
    const shards = new Set([...logged, ...claims].map(({ shard }) => shard))
    const statuses = [...shards].map((shard) => [shard, this.#segments.status(shard)] as const)
    this.#writer.logged({ groups: logged, statuses, end })
    this.#end.store(end)
  }
}
