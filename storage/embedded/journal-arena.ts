// Memory that groups are encoded into for one transaction, used again for the next. It stands
// between the committer and LMDB's write thread, which reads these bytes until the transaction ends.

import { assert } from '../../protocol/errors.ts'
import type { Group } from '../journal.ts'
import {
  groupBytes,
  HEAD_BYTES,
  LOG_KEY_BYTES,
  putGroup,
  putHead,
  putLogKey,
  putShardKey,
  SHARD_KEY_BYTES,
} from './journal-layout.ts'

/** Kept between transactions; a larger one gets memory of its own. */
const KEPT_BYTES = 4 * 1024 * 1024

export interface EncodedGroup {
  readonly key: Buffer
  readonly value: Buffer
  readonly headKey: Buffer
  readonly headValue: Buffer
}

export class GroupArena {
  readonly #kept = Buffer.allocUnsafeSlow(KEPT_BYTES)
  #bytes = this.#kept
  #at = 0

  /** Makes room for these groups. What was put before must not be in use any more. */
  reset(groups: readonly Group[]): void {
    let size = 0
    for (const { body } of groups) {
      size += LOG_KEY_BYTES + groupBytes(body) + SHARD_KEY_BYTES + HEAD_BYTES
    }
    this.#bytes = size <= KEPT_BYTES ? this.#kept : Buffer.allocUnsafeSlow(size)
    this.#at = 0
  }

  #take(bytes: number): Buffer {
    const from = this.#at
    this.#at += bytes
    return this.#bytes.subarray(from, this.#at)
  }

  put(group: Group): EncodedGroup {
    const { shard, epoch, count, commitId, body } = group
    assert(count > 0, 'a group has entries')
    assert(commitId.length === 36, 'a commit id is a UUID')
    const offset = group.head + count
    const key = this.#take(LOG_KEY_BYTES)
    putLogKey(key, 0, shard, offset)
    const value = this.#take(groupBytes(body))
    const groupCrc = putGroup(value, key, { epoch, offset, count, commitId, body })
    const headKey = this.#take(SHARD_KEY_BYTES)
    putShardKey(headKey, 0, shard)
    const headValue = this.#take(HEAD_BYTES)
    putHead(headValue, headKey, { epoch, head: offset, groupCrc, commitId })
    return { key, value, headKey, headValue }
  }
}
