// The log of a cluster: the LogStore over segments in an engine whose statements may be late, lost
// or unheard. It keeps the protocol's order of steps and decides by what the statics say at the
// serial level; what it keeps itself are only its own tenures and what can't change any more.
// Source: PROTOCOL 3.1, 3.2, 3.5, 3.7.

import { LIMITS } from '../../config/limits.ts'
import { AssertionError, assert } from '../../protocol/errors.ts'
import type { Log } from '../../protocol/log.ts'
import { Outage } from '../../protocol/outage.ts'
import type { ControlStore } from '../../storage/control.ts'
import { LostTenure } from '../../storage/journal.ts'
import type {
  AppendOutcome,
  ClaimedShard,
  Group,
  LogEnd,
  LogRow,
  LogStore,
  ShardStatus,
  Tenure,
} from '../../storage/journal.ts'
import type { SegmentId, SegmentStatics, SegmentStore } from '../../storage/segments.ts'
import type { Clock } from '../clock.ts'
import { SegmentChain } from './chain.ts'
import { fenceLog, patiently } from './claim.ts'
import type { Fenced, Patience } from './claim.ts'
import { MissingRow, readRows } from './reading.ts'
import { roll } from './roll.ts'
import { Tail } from './tail.ts'
import type { SegmentLimits, TailOptions } from './tail.ts'

export interface SegmentedLogOptions {
  readonly segments: SegmentStore
  readonly control: Pick<ControlStore, 'shard' | 'hintSegment'>
  /** The shard's flush offset in the derived rows; 0 when there is none. */
  readonly flushOf: (shard: number) => Promise<number>
  readonly clock: Clock
  readonly log: Log
  /** What can't be by the protocol: the alarm of PROTOCOL 3.2.4. The shard is stopped as fenced. */
  readonly onBug: (shard: number, text: string) => void
  /** When a segment is full; the product's limits when left out. */
  readonly limits?: SegmentLimits
}

export class SegmentedLog implements LogStore {
  readonly groupsMax = 1
  readonly appendsMax: number
  readonly #options: SegmentedLogOptions
  readonly #chain: SegmentChain
  readonly #claims: Outage
  readonly #appends: Outage
  /** Open segments of the shards that this process has claimed, by shard. */
  readonly #tails = new Map<number, Tail>()
  /** By shard: segments up to this one hold no rows any more. */
  readonly #trimmed = new Map<number, number>()

  constructor(options: SegmentedLogOptions) {
    this.#options = options
    const { log, clock } = options
    const now = (): number => clock.monotonicMs()
    this.#claims = new Outage({
      log,
      now,
      failing: 'claims wait for the store',
      back: 'claims have their answers again',
    })
    this.#appends = new Outage({
      log,
      now,
      failing: 'the log does not say what became of appends',
      back: 'appends have their answers again',
    })
    this.appendsMax = options.segments.appendsMax
    this.#chain = new SegmentChain(options)
  }

  // --- claim ------------------------------------------------------------------------------

  /**
   * Fences the log for this tenure. Rejects with LostTenure when somebody newer is met, and when
   * the store has not answered within LIMITS.log.claimMs; then the tenure may be claimed again.
   */
  async claim(shard: number, tenure?: Tenure): Promise<ClaimedShard> {
    assert(tenure !== undefined, 'in a cluster the control rows issue the epochs')
    const { control, clock } = this.#options
    const outage = this.#claims
    if (tenure.end) return this.#goOn(shard, tenure.epoch, tenure.end)
    const { epoch } = tenure
    const patience = { clock, outage, untilMs: clock.monotonicMs() + LIMITS.log.claimMs }
    // At once with the fence: an older owner may move it on meanwhile, never above the final head.
    const reading = patiently(patience, () => this.#options.flushOf(shard))
    reading.catch(() => undefined)
    const { segment, statics } = await this.#fence(shard, tenure, patience)
    const flush = await reading
    this.#begin(shard, segment, statics)
    // A roll was cut short, or its hint is late. Nothing waits for this: claims follow the chain.
    if (segment > tenure.segment) {
      control.hintSegment(shard, segment, { epoch }).catch(() => undefined)
    }
    return { epoch, head: statics.head, flush }
  }

  /** Goes on where the owner before has closed the log for this epoch. */
  #goOn(shard: number, epoch: number, { segment, base, head, flush }: LogEnd): ClaimedShard {
    this.#chain.note({ shard, segment }, { base, head, sealed: false })
    this.#begin(shard, segment, { epoch, base, head })
    return { epoch, head, flush }
  }

  #begin(shard: number, segment: number, statics: TailOptions['statics']): void {
    const { limits } = this.#options
    const newer = this.#tails.get(shard)
    if (newer !== undefined && newer.epoch > statics.epoch) {
      throw new LostTenure(shard, statics.epoch)
    }
    this.#tails.set(shard, new Tail({ shard, segment, statics, ...(limits && { limits }) }))
  }

  /** What was applied needs no look: nobody but this owner could have moved head or segment. */
  async close(
    shard: number,
    { epoch, head }: { readonly epoch: number; readonly head: number },
  ): Promise<Omit<LogEnd, 'flush'> | null> {
    const tail = this.#tails.get(shard)
    if (tail?.epoch !== epoch) return null
    const { segment, base } = tail
    const end = { segment, base, head }
    const outcome = await this.#options.segments.fence({ shard, segment }, epoch + 1)
    if (outcome === 'applied') return end
    const statics = await this.#options.segments.statics({ shard, segment })
    const isClosed = statics?.epoch === epoch + 1 && statics.head === head && !statics.sealed
    return isClosed ? end : null
  }

  async #fence(shard: number, tenure: Tenure, patience: Patience): Promise<Fenced> {
    const { segments, onBug } = this.#options
    const onStatics = (of: SegmentId, found: SegmentStatics): void => this.#chain.note(of, found)
    const hinted = { shard, segment: tenure.segment }
    try {
      return await fenceLog({ ...patience, segments, onStatics }, hinted, tenure.epoch)
    } catch (error) {
      if (error instanceof AssertionError) onBug(shard, error.message)
      throw error
    }
  }

  // --- append -----------------------------------------------------------------------------

  append(groups: readonly Group[]): Promise<readonly AppendOutcome[]> {
    return Promise.all(groups.map((group) => this.#append(group)))
  }

  async #append(group: Group): Promise<AppendOutcome> {
    const { onBug } = this.#options
    try {
      const tail = this.#tails.get(group.shard)
      if (!tail?.takes(group)) return await this.#decide(group)
      assert(!tail.isBusy, `one append of shard ${group.shard} at a time`)
      tail.isBusy = true
      const outcome = await this.#appendTo(tail, group).finally(() => (tail.isBusy = false))
      if (outcome === 'committed') this.#appends.answered()
      return outcome
    } catch (error) {
      if (error instanceof AssertionError) {
        onBug(group.shard, error.message)
        return 'fenced'
      }
      this.#appends.failed({ err: error, shard: group.shard })
      return 'unknown'
    }
  }

  async #appendTo(tail: Tail, group: Group): Promise<AppendOutcome> {
    // Never between two copies of the same bytes: the tail is as the first has found it.
    if (tail.isFull) {
      const rolled = await this.#roll(tail)
      if (rolled !== 'rolled') return rolled
    }
    tail.sent(group)
    const outcome = await this.#options.segments.append(tail.segment, group)
    if (outcome === 'refused') return this.#decide(group)
    if (outcome === 'unknown') return 'unknown'
    tail.committed()
    this.#chain.reached(tail, tail.head)
    return 'committed'
  }

  async #roll(tail: Tail): Promise<'rolled' | 'fenced' | 'unknown'> {
    const { segments, control, onBug } = this.#options
    const { shard, segment, epoch, head } = tail
    const rolled = await roll(
      { segments, control, onBug, onStatics: (of, statics) => this.#chain.note(of, statics) },
      { shard, segment },
      { epoch, head },
    )
    if (rolled === 'rolled') {
      this.#chain.note({ shard, segment }, { base: tail.base, head, sealed: true })
      this.#chain.note({ shard, segment: segment + 1 }, { base: head, head, sealed: false })
      tail.rolled()
    }
    return rolled
  }

  /** What became of a group that the store refuses, or that isn't one of a tenure of ours. */
  async #decide(group: Group): Promise<AppendOutcome> {
    const { shard, epoch, head, count, commitId } = group
    const { statics } = await this.#chain.last(shard)
    if (statics.lastCommit === commitId || (await this.#hasRow(group))) return 'committed'
    if (statics.epoch <= epoch) {
      const said = JSON.stringify(statics)
      const place = `epoch ${epoch}, offsets ${head + 1} to ${head + count}`
      this.#options.onBug(shard, `an append is refused (${place}) where the log says ${said}`)
    }
    return 'fenced'
  }

  async #hasRow({ shard, head, count, commitId }: Group): Promise<boolean> {
    const rows = await this.read(shard, head + count - 1, 1)
    return rows[0]?.offset === head + count && rows[0].commitId === commitId
  }

  // --- read -------------------------------------------------------------------------------

  /** At the serial level, of the last segment: what undecided appends have come to is seen. */
  async status(shard: number): Promise<ShardStatus> {
    const { epoch, head, lastCommit } = (await this.#chain.last(shard)).statics
    return { epoch, head, lastCommit }
  }

  async epochNow(shard: number): Promise<number> {
    return (await this.#chain.last(shard)).statics.epoch
  }

  /**
   * As LogReader says. The first row begins higher than behind `after` when rows were trimmed; any
   * other hole rejects, after a second look at the serial level, and raises the alarm.
   */
  async read(shard: number, after: number, bytesMax: number): Promise<readonly LogRow[]> {
    const { segments, onBug } = this.#options
    try {
      return await readRows({ segments, chain: this.#chain }, shard, { after, bytesMax })
    } catch (error) {
      if (error instanceof MissingRow) onBug(shard, error.message)
      throw error
    }
  }

  // --- trim -------------------------------------------------------------------------------

  /** Rows of sealed segments only: what the open one holds goes after it was sealed. */
  async trim(shard: number, epoch: number, upTo: number): Promise<void> {
    const tail = this.#tails.get(shard)
    if (tail === undefined || tail.epoch > epoch || upTo <= 0) return
    let highest = await this.#chain.locate(shard, upTo - 1)
    if (highest >= tail.segment) highest = tail.segment - 1
    const done = this.#trimmed.get(shard) ?? 0
    // Down to where nothing is left; then upwards: a trim that is cut short leaves no island.
    let lowest = highest + 1
    while (lowest - 1 > done && (await this.#hasRows(shard, lowest - 1))) lowest--
    for (let segment = lowest; segment <= highest; segment++) {
      await this.#options.segments.dropRows({ shard, segment }, upTo)
      const { head } = await this.#chain.sealed({ shard, segment })
      if (head <= upTo) this.#trimmed.set(shard, segment)
    }
  }

  async #hasRows(shard: number, segment: number): Promise<boolean> {
    const { base } = await this.#chain.sealed({ shard, segment })
    const range = { after: base, bytesMax: 1 }
    return (await this.#options.segments.rows({ shard, segment }, range)).length > 0
  }
}
