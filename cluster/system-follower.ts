// Following the `system` shard: the newest image, then the log, then what its owner pushes and what
// a look into the store twice a second brings. Every member does so before it joins, so that
// configuration is at hand everywhere. It stands between the log of shard -1 and the maps
// (system-view.ts). Source: PROTOCOL 3.0 "The system shard".

import { LIMITS } from '../config/limits.ts'
import type { Entry } from '../protocol/entry.ts'
import { SYSTEM_SHARD } from '../protocol/ids.ts'
import type { Log } from '../protocol/log.ts'
import type { Journal } from '../storage/journal.ts'
import type { Clock } from './clock.ts'
import { entriesOfRow } from './sharding/recovery.ts'
import type { SystemMaps } from './system-view.ts'

export interface SystemFollowerOptions {
  readonly journal: Journal
  readonly maps: SystemMaps
  readonly clock: Clock
  readonly log: Log
}

const READ_BYTES = 1024 * 1024
const NEVER = -Infinity

export class SystemFollower {
  /** Offset of the newest image that was read or written. */
  imageAt = 0
  readonly #options: SystemFollowerOptions
  #readAtMs = NEVER
  #reading: Promise<void> | null = null
  #imaging = false
  /** Who waits to hear whether the maps stand. */
  #asking = 0
  #waiting: { readonly offset: number; readonly resolve: () => void }[] = []

  constructor(options: SystemFollowerOptions) {
    this.#options = options
  }

  /** The log's tail was read with success not long ago: what the maps say may be gone by. */
  get isFresh(): boolean {
    return this.#options.clock.monotonicMs() - this.#readAtMs <= LIMITS.systemStaleMs
  }

  /**
   * Whether what was decided by the maps just now stands: where their log was read too long ago, as
   * after this process has had no CPU for a while, it is read again and must say nothing new. False
   * when that takes too long, or too many wait for it.
   */
  stands(): Promise<boolean> {
    const { maps, clock } = this.#options
    const { offset } = maps
    if (this.#asking >= LIMITS.systemAskingMax) return Promise.resolve(false)
    this.#asking++
    return new Promise((resolve) => {
      let isOver = false
      const end = (stands: boolean): void => {
        if (isOver) return
        isOver = true
        cancel()
        this.#asking--
        resolve(stands)
      }
      const cancel = clock.after(LIMITS.systemFollowMs, () => end(false))
      const look = (): void => {
        if (this.isFresh) end(maps.offset === offset)
        else if (!isOver) this.read().then(look, () => end(false))
      }
      look()
    })
  }

  /** Reads what the maps lack. One read at a time; who asks meanwhile shares it. */
  read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => (this.#reading = null))
    return this.#reading
  }

  async #read(): Promise<void> {
    const { journal, maps, clock } = this.#options
    const { log } = journal
    let beganMs = clock.monotonicMs()
    if (maps.offset === 0) await this.#loadImage()
    for (;;) {
      const rows = await log.read(SYSTEM_SHARD, maps.offset, READ_BYTES)
      const [first] = rows
      if (first === undefined) break
      // Trimmed below what the maps have: an image has it.
      if (first.offset - first.count > maps.offset && !(await this.#loadImage())) break
      for (const row of rows) {
        for (const { entry, offset } of entriesOfRow(row, maps.offset)) maps.follow(entry, offset)
      }
      beganMs = clock.monotonicMs()
    }
    this.#readAtMs = Math.max(this.#readAtMs, beganMs)
    this.#wake()
  }

  /** True when the maps are further than before. */
  async #loadImage(): Promise<boolean> {
    const { journal, maps } = this.#options
    const image = await journal.derived.image()
    if (!image || image.offset <= maps.offset) return false
    maps.load(image.offset, image.parts)
    this.imageAt = image.offset
    return true
  }

  /** Takes committed entries: this member's own, or those that the owner has pushed. */
  take(entries: readonly Entry[], first: number): void {
    const { maps, log } = this.#options
    if (first > maps.offset + 1) {
      this.read().catch((error: unknown) => log.warn({ err: error }, 'the system log is away'))
      return
    }
    for (let i = 0; i < entries.length; i++) maps.follow(entries[i]!, first + i)
    this.#wake()
  }

  /** Resolves once the maps have come to an offset, or after LIMITS.systemFollowMs. */
  reached(offset: number): Promise<void> | null {
    if (this.#options.maps.offset >= offset) return null
    return new Promise((resolve) => {
      const waiter = { offset, resolve }
      this.#waiting.push(waiter)
      this.#options.clock.after(LIMITS.systemFollowMs, () => {
        this.#waiting = this.#waiting.filter((other) => other !== waiter)
        resolve()
      })
    })
  }

  #wake(): void {
    if (this.#waiting.length === 0) return
    const { offset } = this.#options.maps
    const reached = this.#waiting.filter((waiter) => waiter.offset <= offset)
    this.#waiting = this.#waiting.filter((waiter) => waiter.offset > offset)
    for (const { resolve } of reached) resolve()
  }

  /** The owner writes an image now and then, so that the log can be trimmed. */
  async writeImage(epoch: number): Promise<void> {
    const { journal, maps, log } = this.#options
    if (this.#imaging || maps.offset - this.imageAt < LIMITS.systemImageEntries) return
    this.#imaging = true
    const { offset } = maps
    const parts = maps.image()
    try {
      const rows = parts.map((body, part) => ({ kind: 'image' as const, offset, part, body }))
      const written = await journal.derived.write(SYSTEM_SHARD, epoch, [
        ...rows,
        { kind: 'consumer', consumer: 'image', offset },
      ])
      if (written !== 'committed') return
      this.imageAt = offset
      await journal.derived.trimImages()
    } catch (error) {
      log.error({ err: error }, 'an image of the system maps was not written')
    } finally {
      this.#imaging = false
    }
  }
}
