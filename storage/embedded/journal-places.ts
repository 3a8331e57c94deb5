// Where every shard stands, as this process knows it, and the token that says whether it still
// does: a row that every claim changes. It stands between the committer, which then writes the
// groups of all shards under one condition instead of two for each, and the data file, where
// another process may have claimed. Source: PROTOCOL 3.16.

import type { FillRandom } from '../../protocol/ids.ts'
import type { Group } from '../journal.ts'
import type { JournalEnvironment } from './journal-environment.ts'
import { derivedOffset, isWhole, readHead, shardOfKey } from './journal-layout.ts'

/** Key of the row among the epochs: behind every shard's. Its version is the token. */
export const CLAIMS_KEY = Buffer.from([0xff, 0xff])
/** Six bytes that were drawn: two processes never give the same token to two claims. */
const TOKEN_BYTES = 6

/** A token that was never given out. */
export function newToken(random: FillRandom): number {
  const bytes = Buffer.allocUnsafe(TOKEN_BYTES)
  random(bytes)
  return bytes.readUIntBE(0, TOKEN_BYTES)
}

interface Place {
  readonly epoch: number
  /** Committed. */
  head: number
  /** With the groups that are being looked at. */
  next: number
}

export class Places {
  readonly #env: JournalEnvironment
  readonly #places = new Map<number, Place>()
  #token: number | null = null

  constructor(env: JournalEnvironment) {
    this.#env = env
  }

  /**
   * The token under which all of this may be written; null: something of it doesn't fit, or nobody
   * has claimed yet, and each shard must be looked at by itself.
   */
  tokenFor(
    groups: readonly Group[],
    rows: readonly { readonly shard: number; readonly epoch: number }[],
  ): number | null {
    if (this.#token === null) this.#learn()
    for (const { shard, epoch } of rows) {
      if (this.#places.get(shard)?.epoch !== epoch) return null
    }
    for (const [i, { shard, epoch, head, count }] of groups.entries()) {
      const place = this.#places.get(shard)
      if (place === undefined || place.epoch !== epoch || place.next !== head) {
        for (const { shard: earlier } of groups.slice(0, i)) this.#goBack(earlier)
        return null
      }
      place.next = head + count
    }
    return this.#token
  }

  #goBack(shard: number): void {
    const place = this.#places.get(shard)!
    place.next = place.head
  }

  /** What `tokenFor` has let through is in. */
  committed(groups: readonly Group[]): void {
    for (const { shard } of groups) {
      const place = this.#places.get(shard)!
      place.head = place.next
    }
  }

  /** Somebody has claimed, or the heads were moved in another way: the next look learns anew. */
  forget(): void {
    this.#token = null
    this.#places.clear()
  }

  /** All in one read transaction: as long as the token stays, so do the epochs, and our heads. */
  #learn(): void {
    const { root, epochs, heads } = this.#env
    root.resetReadTxn()
    const token = epochs.getEntry(CLAIMS_KEY)?.version
    if (token === undefined) return
    this.#token = token
    const found = new Map<number, number>()
    for (const { key, value } of epochs.getRange({})) {
      if (isWhole(key, value)) found.set(shardOfKey(key), derivedOffset(value))
    }
    for (const { key, value } of heads.getRange({})) {
      const epoch = found.get(shardOfKey(key))
      if (epoch === undefined || !isWhole(key, value)) continue
      const { head } = readHead(value)
      this.#places.set(shardOfKey(key), { epoch, head, next: head })
    }
  }
}
