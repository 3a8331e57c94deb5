// The graph index of an embedded node: the file that is read and, while it is made anew, one that
// is filled beside it by a thread of its own and then takes its place. Tells heads, lets requests
// wait, brakes acknowledgements. Source: ARCHITECTURE 8, PROTOCOL 3.13.5, 3.13.8.
//
//   one file --(another layout, or rebuild)--> filling --(nearly all is in)--> taking over --> one
//                                                 ^------(it could not catch up in time)----'
// Taking over: the old file's worker ends, so what it has stands still; the new one gets all that
// it has; then the new file is marked as the one that is read; then readers turn to it. So nobody
// who reads goes back in time, and a crash before the mark leaves the old one, behind it the new.

import { LIMITS } from '../../../config/limits.ts'
import { ackDelayMs, type Lag, LagMeter } from '../../../cluster/feed/lag.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { Maybe } from '../../../storage/journal.ts'
import type { LiveSchema, SchemaVersion } from '../../graph/live-schema.ts'
import type { ReadIndex } from '../../graph/plans/reader-thread.ts'
import { type IndexRebuild, NO_REBUILD, type RebuildProgress } from '../rebuild.ts'
import { ServedSchema } from '../served-schema.ts'
import { chooseFiles, fingerprintOf, type IndexFile, parkedConsumerOf } from './index-files.ts'
import { IndexThread, type IndexThreadOptions } from './index-thread.ts'
import { ProgressWatch } from './index-watch.ts'
import type { ProgressCounter, SharedProgress } from './shared-progress.ts'

export interface EmbeddedIndexOptions extends IndexThreadOptions {
  /** A change of it that lays the index out anew has another one filled beside it. */
  readonly schema: LiveSchema
  /**
   * Newest committed offsets, at the start, of the shards that are to be followed: one whose actors
   * have no graph nodes can be left out.
   */
  readonly heads: Iterable<{ readonly shard: number; readonly offset: number }>
  /** Offset up to which the shard's derived rows are written. */
  readonly flushed: (shard: number) => Maybe<number>
}

/** The lag is looked at again after this long; in between the last look holds. */
const LAG_HOLDS_MS = 5

interface Filling {
  readonly thread: IndexThread
  readonly startedAt: number
  state: 'filling' | 'taking-over'
  /** Its file is on disk: whatever happens, the next start goes on with it. */
  isOpen: boolean
  readonly onOpen: Set<() => void>
}

export class EmbeddedIndex implements IndexRebuild {
  readonly watch: ProgressWatch
  readonly #options: EmbeddedIndexOptions
  readonly #meter: LagMeter
  readonly #served: ServedSchema
  readonly #unfollow: () => void
  readonly #opened = new Set<() => void>()
  readonly #movers = new Set<() => void>()
  /** Of files that are no longer there. */
  readonly #past = new Map<ProgressCounter, number>()
  #pastRestarts = 0
  #live: IndexThread
  #next: Filling | null = null
  /** The live file was there before, or has taken over: what it has is not thrown away. */
  #isKept: boolean
  #isOpen = false
  #isClosed = false
  #newest: number
  #cancelLook: () => void = () => undefined
  #moving: Promise<void> | null = null
  readonly #ending = new Set<Promise<void>>()
  /** End waits early, at the close. */
  readonly #waits = new Set<() => void>()
  #lag: Lag = { entries: 0, ageMs: 0 }
  #lagAtMs = Number.NEGATIVE_INFINITY

  constructor(options: EmbeddedIndexOptions) {
    this.#options = options
    const { clock, flushed, schema, journal } = options
    const progress = {
      applied: (shard: number) => this.progress.applied(shard),
      appliedTimeMs: (shard: number) => this.progress.appliedTimeMs(shard),
    }
    this.#meter = new LagMeter(progress, () => clock.nowMs())
    const follows = (shard: number): boolean => this.heads.has(shard)
    this.watch = new ProgressWatch({ progress: () => this.progress, clock, flushed, follows })
    const { live, next, isKept } = chooseFiles(journal.dir, schema.current)
    this.#isKept = isKept
    this.#newest = Math.max(live.number, next?.number ?? 0)
    this.#served = new ServedSchema(live.version, fingerprintOf(live.version))
    this.#served.keep(schema.current, fingerprintOf(schema.current))
    const heads = Array.from(options.heads, ({ shard, offset }) => [shard, offset] as const)
    this.#live = this.#startThread(live, new Map(heads))
    for (const [shard, offset] of heads) this.#meter.committed(shard, offset)
    if (next !== null) this.#fill(next)
    else if (live.version !== schema.current) this.#fillBeside(schema.current)
    this.#unfollow = schema.follow((version) => this.#follow(version))
  }

  /** Of the file that is read. */
  get progress(): SharedProgress {
    return this.#live.progress
  }

  /** What is to be read from now on. */
  get read(): ReadIndex {
    return { version: this.#served.version, number: this.#live.number }
  }

  /** Consumer under which the actors are kept that it could not take. */
  get parkedBy(): string {
    return parkedConsumerOf(this.#live.number)
  }

  /** Called when `read` has changed; it must not throw. */
  onMoved(tell: () => void): void {
    this.#movers.add(tell)
  }

  /** The shard's log is committed up to here. Called once per group, in any order of shards. */
  committed(shard: number, head: number): void {
    this.#meter.committed(shard, head)
    this.#live.committed(shard, head)
    this.#next?.thread.committed(shard, head)
  }

  /** Newest committed offsets of the shards that are followed. */
  get heads(): ReadonlyMap<number, number> {
    return this.#meter.heads
  }

  /** The shard's log may go up to here for all that the index, and its successor, need of it. */
  doneWith(shard: number): number {
    const next = this.#next?.thread.progress.applied(shard) ?? Number.POSITIVE_INFINITY
    return Math.min(this.progress.applied(shard), next)
  }

  /** How far the index is behind the journal. */
  lag(): Lag {
    const nowMs = this.#options.clock.monotonicMs()
    if (nowMs - this.#lagAtMs >= LAG_HOLDS_MS) {
      this.#lag = this.#meter.lag()
      this.#lagAtMs = nowMs
    }
    return this.#lag
  }

  /**
   * How long acknowledgements should be held back now, milliseconds (ARCHITECTURE 8). While the
   * index is filled anew nobody is slowed down for it: what it has to reach does not move.
   */
  throttleMs(): number {
    return this.progress.ready ? ackDelayMs(this.lag()) : 0
  }

  /** Resolves once the worker has opened the index: from then on it can be read. */
  opened(): Promise<void> {
    if (this.#isOpen) return Promise.resolve()
    return new Promise((resolve) => this.#opened.add(resolve))
  }

  /** Times that a worker had to be started again. */
  get restarts(): number {
    return this.#pastRestarts + this.#live.restarts + (this.#next?.thread.restarts ?? 0)
  }

  /** Totals of all files; `parked`: of the one that is read. */
  counter(name: ProgressCounter): number {
    const own = this.progress.counter(name)
    if (name === 'parked') return own
    return (this.#past.get(name) ?? 0) + own + (this.#next?.thread.progress.counter(name) ?? 0)
  }

  /** Lets parked actors be projected again: all, or one (PROTOCOL 3.11). */
  retryParked(actorId: string | null = null): void {
    this.#live.retryParked(actorId)
    this.#next?.thread.retryParked(actorId)
  }

  async rebuild(): Promise<void> {
    const isNew = !this.#isKept && !this.progress.ready
    if (isNew || this.#isClosed) return
    if (this.#next === null) this.#fillBeside(this.#options.schema.current)
    await this.#hasFile(this.#next!)
  }

  rebuildProgress(): RebuildProgress {
    if (this.#next === null) return NO_REBUILD
    const { thread, startedAt, state } = this.#next
    let [done, total] = [0, 0]
    for (const shard of this.heads.keys()) {
      const own = this.progress.applied(shard)
      total += own
      done += Math.min(own, thread.progress.applied(shard))
    }
    return { state, done, total, startedAt }
  }

  /** Ends the workers after the batches they are at; what is left is for the next start. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#unfollow()
    this.#cancelLook()
    await this.#moving
    for (const end of this.#waits) end()
    await Promise.all([this.#live.stop(), this.#next?.thread.stop(), ...this.#ending])
  }

  /** Who has no other layout has no other index. */
  #follow(version: SchemaVersion): void {
    const fingerprint = fingerprintOf(version)
    this.#served.keep(version, fingerprint)
    if (this.#next !== null) {
      if (fingerprintOf(this.#next.thread.version) === fingerprint) {
        return this.#next.thread.lay(version)
      }
      this.#giveUp(this.#next)
    }
    if (fingerprintOf(this.#live.version) === fingerprint) {
      this.#live.lay(version)
      return this.#serve(fingerprint)
    }
    if (this.#isKept || this.progress.ready) return this.#fillBeside(version)
    // Nothing is in it yet that could be read.
    this.#live.lay(version)
    return this.#serve(fingerprint)
  }

  #serve(fingerprint: string): void {
    if (this.#served.serve(fingerprint)) this.#tellMoved()
  }

  #tellMoved(): void {
    for (const tell of this.#movers) tell()
  }

  #startThread(file: IndexFile, heads: ReadonlyMap<number, number>): IndexThread {
    const thread: IndexThread = new IndexThread(file, heads, {
      ...this.#options,
      // Many definitions made one after the other are no crowd of threads, each for a moment.
      after: this.#ending,
      hearer: {
        applied: () => {
          if (thread === this.#live) this.watch.applied()
        },
        opened: () => {
          if (thread === this.#live) this.#hearOpened()
          else if (thread === this.#next?.thread) open(this.#next)
        },
      },
    })
    return thread
  }

  #hearOpened(): void {
    this.watch.generation++
    this.#isOpen = true
    for (const resolve of this.#opened) resolve()
    this.#opened.clear()
  }

  #fillBeside(version: SchemaVersion): void {
    this.#fill({ number: ++this.#newest, version, isFilling: true })
  }

  #fill(file: IndexFile): void {
    const { log, clock } = this.#options
    log.info({ file: file.number }, 'the graph index is made anew beside the one that is read')
    this.#next = {
      thread: this.#startThread(file, this.heads),
      startedAt: clock.nowMs(),
      state: 'filling',
      isOpen: false,
      onOpen: new Set(),
    }
    this.#lookLater()
  }

  #hasFile(next: Filling): Promise<void> {
    if (next.isOpen) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const late = new RequestError(
        'UNAVAILABLE',
        'the new file of the graph index is not there yet',
      )
      const cancel = this.#options.clock.after(LIMITS.indexing.takeOverMs, () => reject(late))
      next.onOpen.add(() => {
        cancel()
        resolve()
      })
    })
  }

  /** Another layout is wanted by now. */
  #giveUp({ thread }: Filling): void {
    this.#next = null
    this.#cancelLook()
    this.#end(thread)
  }

  /** Ends a worker and deletes its file. What fails of it is done by the next start. */
  #end(thread: IndexThread): void {
    for (const name of ['entries', 'writes', 'batches', 'batchUs', 'failures', 'resets'] as const) {
      this.#past.set(name, (this.#past.get(name) ?? 0) + thread.progress.counter(name))
    }
    this.#pastRestarts += thread.restarts
    const ended = thread
      .stop()
      .then(() => thread.remove())
      .catch((err: unknown) => {
        this.#options.log.warn({ err }, 'a graph index that is over could not be deleted')
      })
      .finally(() => this.#ending.delete(ended))
    this.#ending.add(ended)
  }

  #lookLater(): void {
    this.#cancelLook()
    this.#cancelLook = this.#options.clock.after(LIMITS.indexing.besideLookMs, () => {
      const next = this.#next
      if (next === null || this.#isClosed) return
      if (this.#moving !== null || !this.#isNear(next)) return this.#lookLater()
      this.#moving = this.#takeOver(next).finally(() => (this.#moving = null))
    })
  }

  #isNear({ thread: { progress } }: Filling): boolean {
    if (!progress.ready) return false
    let lacks = 0
    for (const shard of this.heads.keys()) {
      lacks += Math.max(0, this.progress.applied(shard) - progress.applied(shard))
    }
    return lacks <= LIMITS.indexing.besideNearEntries
  }

  /** As long as the successor is the one that is wanted. Never rejects. */
  async #takeOver(next: Filling): Promise<void> {
    const isWanted = (): boolean => this.#next === next && !this.#isClosed
    next.state = 'taking-over'
    const live = this.#live
    await live.stop()
    next.thread.hurry()
    const isThere = isWanted() && (await this.#hasCaughtUp(next.thread, isWanted))
    const isServed = isThere && (await next.thread.serve(LIMITS.indexing.takeOverMs))
    if (isServed && isWanted()) return this.#moveTo(next.thread)
    if (this.#isClosed) return undefined
    live.goOn()
    next.state = 'filling'
    if (isWanted()) this.#lookLater()
    return undefined
  }

  async #hasCaughtUp(thread: IndexThread, isWanted: () => boolean): Promise<boolean> {
    const { clock } = this.#options
    const untilMs = clock.monotonicMs() + LIMITS.indexing.takeOverMs
    const has = (): boolean => {
      if (!thread.progress.ready) return false
      for (const shard of this.heads.keys()) {
        if (thread.progress.applied(shard) < this.progress.applied(shard)) return false
      }
      return true
    }
    while (!has()) {
      if (clock.monotonicMs() >= untilMs || !isWanted()) return false
      await new Promise<void>((resolve) => {
        clock.after(LIMITS.indexing.takeOverLookMs, resolve)
      })
    }
    return isWanted()
  }

  #moveTo(thread: IndexThread): void {
    const { log, clock } = this.#options
    const old = this.#live
    this.#live = thread
    this.#next = null
    this.#isKept = true
    this.#served.serve(fingerprintOf(thread.version))
    this.#tellMoved()
    this.#hearOpened()
    thread.progress.awaited = this.watch.waiting > 0
    this.watch.applied()
    log.info({ file: thread.number }, 'the graph index is read from the one that was made anew')
    // Plans that were given to readers before may still be at it.
    const end = (): void => {
      cancel()
      this.#waits.delete(end)
      this.#end(old)
    }
    const cancel = clock.after(LIMITS.graph.deadlineMs, end)
    this.#waits.add(end)
  }
}

function open(next: Filling): void {
  next.isOpen = true
  for (const resolve of next.onOpen) resolve()
  next.onOpen.clear()
}
