// What a log may give back of actors that are forgotten: all of it at once, or what was before the
// end first. Source: PROTOCOL 3.12 "Forgotten actors", 3.16.

import { LIMITS } from '../../config/limits.ts'
import { isEnd, type EntryHead } from '../../protocol/entry/entry.ts'
import { damagedRow } from '../damage.ts'
import { entryRows, getEnded, type Ended } from './ended.ts'
import type { JournalEnvironment } from './environment.ts'
import { isOver } from './expiry.ts'
import { contentOf, derivedBody, derivedOffset, isWhole, shardKey, uuidKey } from './layout.ts'

/** Whether entries of a log are of actors that are forgotten. */
export class ForgottenEntries {
  readonly #env: JournalEnvironment
  readonly #files: ReadonlySet<number>
  readonly #relayed = new Map<number, number>()
  readonly #areAny: boolean

  /** `files`: those that are written anew together. */
  constructor(env: JournalEnvironment, files: ReadonlySet<number>) {
    this.#env = env
    this.#files = files
    env.root.resetReadTxn()
    this.#areAny = env.ended!.getKeysCount({ limit: 1 }) > 0
  }

  /** False: nothing of the log is, so that nobody needs to look. */
  get areAny(): boolean {
    return this.#areAny
  }

  /**
   * Whether the entry may leave the log. `clock`: the same for all that are written anew together,
   * or an actor's end could go with what before it was a moment too young.
   */
  isDead(entry: EntryHead, at: Omit<Ended, 'from'>, clock: number): boolean {
    if (entry.n === 0) return false
    const ended = getEnded(this.#env, uuidKey(entry.p))
    if (ended === null || ended.shard !== at.shard || at.offset > ended.offset) return false
    if (!isOver(ended.from, clock)) return false
    // Who makes the rows anew sends the actor's effects again, unless they have been taken.
    if (ended.offset > this.#relayedOf(at.shard)) return false
    // The records that end it stand for all before them, also where it was told something later.
    const mayGoFirst = at.offset < ended.offset && !isEnd(entry)
    return mayGoFirst || this.#isLast(entry.p, at.offset)
  }

  /** Whether all that is left of the actor beside it goes with it. */
  #isLast(actorId: string, offset: number): boolean {
    let rows = 0
    for (const { key, value } of entryRows(this.#env, actorId)) {
      if (++rows === LIMITS.lmdb.endedRowsMax || !isWhole(key, value)) return false
      if (derivedOffset(value) >= offset) continue
      const content = contentOf(value)
      if (!('file' in content) || !this.#files.has(content.file)) return false
    }
    return true
  }

  /** Up to where the shard's effects have been taken, as is stored. */
  #relayedOf(shard: number): number {
    let relayed = this.#relayed.get(shard)
    if (relayed === undefined) {
      const [env, key] = [this.#env, shardKey(shard)]
      const value = env.shards.get(key)
      if (value !== undefined && !isWhole(key, value)) throw damagedRow(env.file, 'shards', key)
      const memory =
        value === undefined ? {} : (JSON.parse(derivedBody(value).toString()) as object)
      relayed = (memory as { readonly relayed?: number }).relayed ?? 0
      this.#relayed.set(shard, relayed)
    }
    return relayed
  }
}
