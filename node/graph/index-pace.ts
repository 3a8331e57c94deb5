// The pace of the embedded index: when it stands back for acknowledgements, for how long, and how
// what was put off is made good. Two cores can't write an order's journal and its graph at the rate
// at which a burst comes in; nobody is served by sharing them evenly while nobody reads the graph.
// It stands between the commits, those who read the graph, and the index's thread. Source:
// ARCHITECTURE 8 "a burst may leave the index behind".

import { type Lag, ackDelayMs } from '../../cluster/feed/lag.ts'
import { LIMITS } from '../../config/limits.ts'

/** What a look at the node shows. */
export interface PaceLook {
  /** Appends to the journal, and entries in them, since the start. */
  readonly commits: number
  readonly entries: number
  readonly lag: Lag
  /** What the index takes for an entry, microseconds. */
  readonly usPerEntry: number
  /** False while the index is filled anew: then nothing is put off. */
  readonly ready: boolean
  /** Somebody waits for the index. */
  readonly awaited: boolean
}

/**
 * - `follow`: the index takes what comes;
 * - `held`: a burst comes in, and it waits;
 * - `repay`: it works off what waited, and acknowledgements leave it the time.
 */
export type Pace = 'follow' | 'held' | 'repay'

/** Of the newest look in the mean of entries a commit. */
const NEWEST = 0.25

export class IndexPace {
  readonly #nowMs: () => number
  #pace: Pace = 'follow'
  #commits = 0
  #entries = 0
  /** Entries a commit, of late: how many wait for each flush. */
  #fill = 0
  #readAtMs = Number.NEGATIVE_INFINITY
  /** No burst, and nothing put off, since then; null: there is. The start counts as a rest. */
  #calmSinceMs: number | null = Number.NEGATIVE_INFINITY
  #rested = true
  /** Entries that were put off, and since when they are worked off, or waited for. */
  #debt = 0
  #repaySinceMs = 0
  #awaitedSinceMs: number | null = null

  /** `nowMs`: monotonic milliseconds. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  get pace(): Pace {
    return this.#pace
  }

  /** Somebody reads the graph: from now on the index goes on. */
  read(lag: Lag): void {
    this.#readAtMs = this.#nowMs()
    if (this.#pace === 'held') this.#repay(lag)
  }

  /** To be called every LIMITS.indexPaceLookMs while entries are committed, or are to be repaid. */
  look(now: PaceLook): void {
    this.#fill += (this.#filled(now) - this.#fill) * NEWEST
    if (!now.awaited) this.#awaitedSinceMs = null
    else this.#awaitedSinceMs ??= this.#nowMs()
    if (this.#pace === 'held') {
      if (!this.#mayWait(now)) this.#repay(now.lag)
      return
    }
    if (this.#pace === 'repay' && this.#isRepaid(now.lag)) this.#pace = 'follow'
    this.#rest(now)
    if (this.#pace === 'follow' && this.#rested && this.#mayBegin(now)) this.#pace = 'held'
  }

  /** Entries a commit since the last look. */
  #filled({ commits, entries }: PaceLook): number {
    const [more, filled] = [commits - this.#commits, entries - this.#entries]
    this.#commits = commits
    this.#entries = entries
    return more === 0 ? 0 : filled / more
  }

  /** How long the next append should wait because the index is behind, milliseconds. */
  throttleMs(lag: Lag): number {
    if (this.#pace === 'held') return 0
    if (this.#pace === 'follow') return ackDelayMs(lag)
    const over = (lag.entries - this.#allowed()) / this.#debt
    return Math.min(Math.max(over, 0), 1) * LIMITS.ackDelayMsMax
  }

  /** Entries that the index may still lack: less with every moment, faster if it is waited for. */
  #allowed(): number {
    const nowMs = this.#nowMs()
    const left = (sinceMs: number, ms: number): number =>
      this.#debt * Math.max(0, 1 - (nowMs - sinceMs) / ms)
    const slow = left(this.#repaySinceMs, LIMITS.indexRepayMs) + LIMITS.indexRepaidEntries
    if (this.#awaitedSinceMs === null) return slow
    const sinceMs = Math.max(this.#awaitedSinceMs, this.#repaySinceMs)
    const fast = left(sinceMs, LIMITS.indexRepayAwaitedMs) + LIMITS.indexRestEntries
    return Math.min(slow, fast)
  }

  /**
   * Nearly all of it; or the time for it is over, and the index is behind by no more than in any
   * load. What is left must not be old, or the brake of all loads would be pulled for it.
   */
  #isRepaid({ entries, ageMs }: Lag): boolean {
    if (ageMs > LIMITS.indexLagMs) return false
    if (entries <= LIMITS.indexRestEntries) return true
    const isOver = this.#nowMs() - this.#repaySinceMs >= LIMITS.indexRepayMs
    return isOver && entries <= LIMITS.indexRepaidEntries
  }

  #repay({ entries }: Lag): void {
    this.#pace = 'repay'
    this.#debt = Math.max(entries, LIMITS.indexRestEntries)
    this.#repaySinceMs = this.#nowMs()
    this.#calmSinceMs = null
    this.#rested = false
  }

  /** One burst has one wait: the next is for who comes after a rest. */
  #rest({ lag }: PaceLook): void {
    // Nobody looks while nothing is committed: such a time is over with the first look after it.
    const calmMs = this.#nowMs() - (this.#calmSinceMs ?? Number.POSITIVE_INFINITY)
    if (calmMs >= LIMITS.indexRestMs) this.#rested = true
    const isCalm = this.#fill < LIMITS.indexBurstFill && lag.entries <= LIMITS.indexRestEntries
    if (!isCalm) this.#calmSinceMs = null
    else this.#calmSinceMs ??= this.#nowMs()
  }

  #mayBegin(now: PaceLook): boolean {
    if (this.#nowMs() - this.#readAtMs < LIMITS.indexReadersMs) return false
    return this.#fill >= LIMITS.indexBurstFill && this.#mayWait(now)
  }

  #mayWait({ lag, usPerEntry, ready, awaited }: PaceLook): boolean {
    if (!ready || awaited || this.#fill < LIMITS.indexBurstFill / 2) return false
    if (lag.entries >= LIMITS.indexHeldEntriesMax || lag.ageMs >= LIMITS.indexHeldMs) return false
    return (lag.entries * usPerEntry) / 1_000 < LIMITS.indexHeldCatchUpMs
  }
}
