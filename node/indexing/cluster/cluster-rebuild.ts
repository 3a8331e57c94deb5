// Has the cluster's index made anew when somebody asks for it, whichever member is asked: a shard
// of its own says that the generation is not to be gone on with, as it does where the log has a
// hole. The owner of `system` sees that and makes a successor (index-keeper.ts). Source: PROTOCOL
// 3.13.5.

import { RequestError } from '../../../protocol/errors.ts'
import type { LogReader } from '../../../storage/journal.ts'
import { type IndexRebuild, NO_REBUILD, type RebuildProgress } from '../rebuild.ts'
import { type IndexRegisters, shardsOf } from './index-registers.ts'

export interface ClusterRebuildOptions {
  readonly registers: Pick<IndexRegisters, 'numbers' | 'offset' | 'gone' | 'setGone'>
  readonly journal: Pick<LogReader, 'status'>
  /** Beside `system`. */
  readonly shards: number
  /** Those of this member. */
  readonly own: () => Iterable<number>
  /** Wall clock, milliseconds since 1970. */
  readonly nowMs: () => number
}

export class ClusterRebuild implements IndexRebuild {
  readonly #options: ClusterRebuildOptions
  /** The successor that was seen last, or was asked for, and since when. */
  #seen: { readonly next: number; readonly atMs: number } | null = null

  constructor(options: ClusterRebuildOptions) {
    this.#options = options
  }

  async rebuild(): Promise<void> {
    const { registers, own } = this.#options
    const { live, next } = await registers.numbers()
    // One is on its way: there is none at all yet, or it is filled beside the live one.
    if (live === 0 || next > live) return
    const [shard] = own()
    if (shard === undefined) {
      throw new RequestError(
        'UNAVAILABLE',
        'this member has no shard yet through which it could ask for that; nothing was done',
      )
    }
    await registers.setGone(live, shard)
    // What is written of a shard that was just lost is nothing.
    if ((await registers.gone(shard)) >= live) {
      this.#seen = { next: live + 1, atMs: this.#options.nowMs() }
      return
    }
    throw new RequestError('UNAVAILABLE', 'a shard has just moved; nothing was done')
  }

  async rebuildProgress(): Promise<RebuildProgress> {
    const { registers, shards, journal, nowMs } = this.#options
    const { live, next } = await registers.numbers()
    if (next === live && !(await this.#isAsked(live))) return NO_REBUILD
    const wanted = Math.max(next, live + 1)
    if (this.#seen === null || wanted > this.#seen.next) {
      this.#seen = { next: wanted, atMs: nowMs() }
    }
    const { atMs: startedAt } = this.#seen
    if (next === live) return { state: 'filling', done: 0, total: 0, startedAt }
    let [done, total] = [0, 0]
    for (const shard of shardsOf(shards)) {
      const offset = (await registers.offset(next, shard)) ?? 0
      const has =
        live === 0
          ? (await journal.status(shard)).head
          : ((await registers.offset(live, shard)) ?? 0)
      total += has
      done += Math.min(offset, has)
    }
    return { state: 'filling', done, total, startedAt }
  }

  /** By whichever member: a shard says so until there is a successor. */
  async #isAsked(live: number): Promise<boolean> {
    if (this.#seen !== null && this.#seen.next > live) return true
    if (live === 0) return false
    for (const shard of shardsOf(this.#options.shards)) {
      if ((await this.#options.registers.gone(shard)) >= live) return true
    }
    return false
  }
}
