// The death watch: reads all shard rows and then all member rows, four times a second, and declares
// those dead whose beat stands still. Source: PROTOCOL 3.3.3, 3.5 (reading order).

import { LIMITS } from '../../config/limits.ts'
import type { Log } from '../../protocol/log.ts'
import { Outage } from '../../protocol/outage.ts'
import type { ControlStore, MemberRow } from '../../storage/control.ts'
import type { Clock } from '../clock.ts'
import { hedged } from './hedge.ts'
import { FailureDetector } from './failure-detector.ts'
import { isAlive, makeView } from './view.ts'
import type { ClusterView, ViewRows } from './view.ts'
import { CutOff } from './wire-states.ts'

export interface DeathWatchOptions {
  readonly control: ControlStore
  readonly clock: Clock
  readonly log: Log
  /** Name of the member that watches: it doesn't judge itself. */
  readonly member: string
  /** Whether the watcher's own lease stands: without it, it judges nobody. */
  readonly mayJudge: () => boolean
  readonly onView: (view: ClusterView) => void
  /** This watcher's statement has declared the row's incarnation dead. */
  readonly onDeclared: (row: MemberRow) => void
}

export class DeathWatch {
  readonly #options: DeathWatchOptions
  readonly #detector = new FailureDetector()
  readonly #cutOff = new CutOff()
  readonly #declaring = new Set<string>()
  #reading: Promise<ClusterView> | null = null
  /** The read behind the one under way; those who ask meanwhile share it. */
  #next: Promise<ClusterView> | null = null
  #running = false
  readonly #outage: Outage

  constructor(options: DeathWatchOptions) {
    this.#options = options
    const { clock, log } = options
    this.#outage = new Outage({
      log,
      now: () => clock.monotonicMs(),
      failing: 'the control rows can not be read',
      back: 'the control rows are read again',
    })
  }

  start(): void {
    if (this.#running) return
    this.#running = true
    this.#look()
  }

  stop(): void {
    this.#running = false
  }

  /** Reads all rows; the read begins after the call. Rejects when the engine can't answer. */
  refresh(): Promise<ClusterView> {
    if (this.#reading === null) return this.#begin()
    this.#next ??= this.#reading.then(
      () => this.#begin(),
      () => this.#begin(),
    )
    return this.#next
  }

  /**
   * Whether that incarnation's beat was seen to move since these reads began, or began afresh: its
   * row may say `up` for as long as nobody was there to declare it dead.
   */
  isBeating(incarnation: string): boolean {
    return this.#detector.hasMoved(incarnation)
  }

  /** The watcher's own beat has failed: what stood still meanwhile proves nothing. */
  restart(): void {
    this.#detector.restart()
  }

  #look(): void {
    this.refresh()
      .then(
        () => this.#outage.answered(),
        (error: unknown) => this.#outage.failed({ err: error }),
      )
      .finally(() => {
        this.#options.clock.after(LIMITS.membership.membersReadEveryMs, () => {
          if (this.#running) this.#look()
        })
      })
  }

  #begin(): Promise<ClusterView> {
    this.#next = null
    const reading = this.#read().finally(() => {
      if (this.#reading === reading) this.#reading = null
    })
    this.#reading = reading
    return reading
  }

  async #read(): Promise<ClusterView> {
    const { control, clock } = this.#options
    const read = async (): Promise<ViewRows> => {
      const readAtMs = clock.monotonicMs()
      // The shard rows first: an incarnation newer than the member rows would look dead.
      const shards = await control.shards()
      return { readAtMs, shards, members: await control.members() }
    }
    const hedge = {
      clock,
      everyMs: LIMITS.membership.beatAnswerMs,
      times: LIMITS.membership.beatCopiesMax,
    }
    const rows = await hedged(hedge, read)
    const cutOff = this.#cutOff.saw(rows.members, clock.monotonicMs())
    const view = makeView({ ...rows, cutOff })
    this.#judge(rows.members)
    this.#options.onView(view)
    return view
  }

  #judge(members: readonly MemberRow[]): void {
    const { clock, mayJudge, member } = this.#options
    // Nobody's beats may have got through while mine did not.
    if (!mayJudge()) this.#detector.restart()
    this.#detector.saw(members, clock.monotonicMs())
    if (!this.#running) return
    for (const row of members) {
      if (row.member !== member && isAlive(row) && this.#detector.isTimedOut(row.incarnation))
        this.#declare(row)
    }
  }

  #declare(row: MemberRow): void {
    const { control, log, onDeclared } = this.#options
    const { member, incarnation, beat, state } = row
    if (this.#declaring.has(incarnation)) return
    this.#declaring.add(incarnation)
    control
      .updateMember(member, { state: 'dead' }, { incarnation, beat, state })
      .then((outcome) => {
        // Refused or unknown: the next read says what it has come to.
        if (outcome !== 'applied') return
        log.warn({ member, incarnation }, 'declared a member dead')
        onDeclared(row)
        return this.refresh()
      })
      .catch((error: unknown) =>
        log.warn({ err: error, member }, 'could not check whether a member is dead'),
      )
      .finally(() => this.#declaring.delete(incarnation))
  }
}
