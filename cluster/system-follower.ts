// Following the `system` shard: the newest image, then the log, then what its owner pushes and what
// a look into the store twice a second brings. Every member does so before it joins, so that
// configuration is at hand everywhere. Source: PROTOCOL 3.0 "The system shard".

import { LIMITS } from '../config/limits.ts'
import type { Entry } from '../protocol/entry/entry.ts'
import { RequestError } from '../protocol/errors.ts'
import { SYSTEM_SHARD } from '../protocol/ids.ts'
import type { Log } from '../protocol/log.ts'
import { Outage } from '../protocol/outage.ts'
import type { DerivedRow, Journal, LogRow, Maybe, ShardStatus } from '../storage/journal.ts'
import { NEVER, isWithin, momentOf } from './clock.ts'
import type { Clock } from './clock.ts'
import { entriesOfRow, resumedBehind } from './sharding/recovery/log-tail.ts'
import type { SystemMaps } from './system-view.ts'

export interface SystemFollowerOptions {
  readonly journal: Journal
  readonly maps: SystemMaps
  readonly clock: Clock
  readonly log: Log
  /** What the store said when its log had nothing behind the maps. */
  readonly onTail?: (status: ShardStatus) => void
}

const READ_BYTES = 1024 * 1024

export class SystemFollower {
  /** Below it the log may be trimmed: the last image but one that was read or written. */
  trimmable = 0
  #imageAt = 0
  /** Where the last one was begun that this member has written, or tried to. */
  #imageTriedAt = 0
  readonly #options: SystemFollowerOptions
  /** Nothing that was committed before is missing in the maps. */
  #readAt = NEVER
  #reading: Promise<void> | null = null
  #imaging = false
  /** Who waits to hear whether the maps stand. */
  #asking = 0
  #waiting: { readonly offset: number; readonly resolve: () => void }[] = []

  readonly #outage: Outage

  constructor(options: SystemFollowerOptions) {
    this.#options = options
    const { clock, log } = options
    this.#outage = new Outage({
      log,
      now: () => clock.monotonicMs(),
      failing: 'the system log could not be read; it is read again',
      back: 'the system log is read again',
    })
  }

  /** The log's tail was read with success not long ago: what the maps say may be gone by. */
  get isFresh(): boolean {
    return isWithin(this.#options.clock, LIMITS.cluster.systemStaleMs, this.#readAt)
  }

  /**
   * Whether what was decided by the maps just now stands: where their log was read too long ago, as
   * after this process has had no CPU for a while, it is read again and must say nothing new. False
   * when that takes too long, or too many wait for it.
   */
  async stands(): Promise<boolean> {
    const { maps } = this.#options
    const { offset } = maps
    return (await this.freshens()) && maps.offset === offset
  }

  /**
   * Reads the log until its tail was read not long ago: true; false when that takes too long, or
   * too many wait for it.
   */
  freshens(): Promise<boolean> {
    const { clock } = this.#options
    if (this.#asking >= LIMITS.cluster.systemAskingMax) return Promise.resolve(false)
    this.#asking++
    return new Promise((resolve) => {
      let isOver = false
      const end = (isFresh: boolean): void => {
        if (isOver) return
        isOver = true
        cancel()
        this.#asking--
        resolve(isFresh)
      }
      const cancel = clock.after(LIMITS.cluster.systemFollowMs, () => end(false))
      const look = (): void => {
        if (this.isFresh) end(true)
        else if (!isOver) this.read().then(look, () => end(false))
      }
      look()
    })
  }

  /**
   * Reads what the maps lack. Engines and members are started together, and an engine may be
   * restarted meanwhile: a journal that is away is asked again. Throws the RequestError of a read
   * when it is away for longer than LIMITS.cluster.engineWaitMs.
   */
  async start(): Promise<void> {
    const { clock } = this.#options
    const untilMs = clock.monotonicMs() + LIMITS.cluster.engineWaitMs
    for (;;) {
      try {
        return await this.read()
      } catch (error) {
        const isAway = error instanceof RequestError && error.errors[0]!.code === 'UNAVAILABLE'
        if (!isAway || clock.monotonicMs() >= untilMs) throw error
        await new Promise<void>(
          (resolve) => void clock.after(LIMITS.cluster.engineRetryMs, resolve),
        )
      }
    }
  }

  /**
   * Reads what the maps lack. One read at a time; who asks meanwhile shares it. One that fails is
   * told here, not by those who asked for it.
   */
  read(): Promise<void> {
    this.#reading ??= this.#read()
      .then(
        () => this.#outage.answered(),
        (error: unknown) => {
          this.#outage.failed({ err: error })
          throw error
        },
      )
      .finally(() => (this.#reading = null))
    return this.#reading
  }

  async #read(): Promise<void> {
    const { maps, clock } = this.#options
    let began = momentOf(clock)
    if (maps.offset === 0) await this.#loadImage()
    for (;;) {
      const rows = await this.#rowsBehind()
      if (rows.length === 0) break
      for (const row of rows) {
        for (const { entry, offset } of entriesOfRow(row, maps.offset)) maps.follow(entry, offset)
      }
      began = momentOf(clock)
    }
    this.#readAt = began
    this.#wake()
  }

  /**
   * Rows that go on from the maps, after an image where older ones were trimmed; none: the maps
   * have all that was committed when this was called.
   */
  async #rowsBehind(): Promise<readonly LogRow[]> {
    const { journal, maps, onTail } = this.#options
    const { log, identity } = journal
    for (;;) {
      const after = resumedBehind({ number: SYSTEM_SHARD, identity }, maps.offset)
      let rows = await log.read(SYSTEM_SHARD, after, READ_BYTES)
      if (rows.length === 0) {
        // No row says only that none is left: a log may be trimmed up to its head.
        const status = await log.status(SYSTEM_SHARD)
        if (status.head <= Math.max(after, maps.offset)) {
          onTail?.(status)
          return rows
        }
        // What came meanwhile is there now.
        rows = await log.read(SYSTEM_SHARD, after, READ_BYTES)
      }
      const [first] = rows
      if (first !== undefined && first.offset - first.count <= Math.max(after, maps.offset)) {
        return rows
      }
      if (!(await this.#loadImage())) {
        throw new Error(`no image leads over the trimmed log of \`system\` at ${maps.offset}`)
      }
    }
  }

  /** True when the maps are further than before: an older image is never gone back to. */
  async #loadImage(): Promise<boolean> {
    const { journal, maps } = this.#options
    const image = await journal.derived.image()
    if (!image || image.offset <= maps.offset) return false
    maps.load(image.offset, image.parts)
    this.#imaged(image.offset)
    return true
  }

  #imaged(offset: number): void {
    this.trimmable = this.#imageAt
    this.#imageAt = offset
  }

  /** Takes committed entries: this member's own, or those that the owner has pushed. */
  take(entries: readonly Entry[], first: number): void {
    const { maps } = this.#options
    if (first > maps.offset + 1) {
      this.read().catch(() => undefined)
      return
    }
    for (let i = 0; i < entries.length; i++) maps.follow(entries[i]!, first + i)
    this.#wake()
  }

  /** Resolves once the maps have come to an offset, or after LIMITS.cluster.systemFollowMs. */
  reached(offset: number): Promise<void> | null {
    if (this.#options.maps.offset >= offset) return null
    return new Promise((resolve) => {
      const waiter = { offset, resolve }
      this.#waiting.push(waiter)
      this.#options.clock.after(LIMITS.cluster.systemFollowMs, () => {
        this.#waiting = this.#waiting.filter((other) => other !== waiter)
        resolve()
      })
    })
  }

  /**
   * The maps with all up to an offset; a promise while they are read. Rejects when that takes too
   * long.
   */
  upTo(offset: number): Maybe<SystemMaps> {
    const { maps } = this.#options
    const reached = this.reached(offset)
    if (reached === null) return maps
    this.read().catch(() => undefined)
    return reached.then(() => {
      if (maps.offset >= offset) return maps
      const text = 'the configuration could not be read in time; nothing was done, try again'
      throw new RequestError('UNAVAILABLE', text)
    })
  }

  #wake(): void {
    if (this.#waiting.length === 0) return
    const { offset } = this.#options.maps
    const reached = this.#waiting.filter((waiter) => waiter.offset <= offset)
    this.#waiting = this.#waiting.filter((waiter) => waiter.offset > offset)
    for (const { resolve } of reached) resolve()
  }

  /**
   * The owner writes an image now and then, so that the log can be trimmed: a part after the other,
   * so that no more than one is in memory and under way. One that fails is told; the next begins
   * after as many entries again. Never rejects.
   */
  async writeImage(epoch: number): Promise<void> {
    const { maps, log } = this.#options
    const { offset } = maps
    const before = Math.max(this.#imageAt, this.#imageTriedAt)
    if (this.#imaging || offset - before < LIMITS.cluster.systemImageEntries) return
    this.#imaging = true
    this.#imageTriedAt = offset
    try {
      if (await this.#writeImage(epoch, offset)) await this.#options.journal.derived.trimImages()
      else log.warn({ offset }, 'an image of the system maps was given up: a part was not written')
    } catch (error) {
      log.error({ err: error }, 'an image of the system maps could not be written')
    } finally {
      this.#imaging = false
    }
  }

  /** False: a part of it is not durable, or is another owner's to write. */
  async #writeImage(epoch: number, offset: number): Promise<boolean> {
    const { derived } = this.#options.journal
    const write = async (row: DerivedRow): Promise<boolean> =>
      (await derived.write(SYSTEM_SHARD, epoch, [row])) === 'committed'
    let part = 0
    for (const body of this.#options.maps.image()) {
      if (!(await write({ kind: 'image', offset, part: part++, body }))) return false
    }
    // Only now is it the newest one.
    if (!(await write({ kind: 'consumer', consumer: 'image', offset }))) return false
    this.#imaged(offset)
    return true
  }
}
