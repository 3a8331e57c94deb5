// The beat of one incarnation: a conditional statement every half second that says "still here" and
// that fails for ever once somebody has declared this incarnation dead. The lease (membership.ts)
// follows from it. A node runs it in a thread of its own. Source: PROTOCOL 3.3.2.

import { LIMITS } from '../../config/limits.ts'
import type { Log } from '../../protocol/log.ts'
import { Outage } from '../../protocol/outage.ts'
import type { ControlStore, MemberState, Outcome } from '../../storage/control.ts'
import { momentOf } from '../clock.ts'
import type { Clock, Moment } from '../clock.ts'
import { LateAnswer, hedged } from './hedge.ts'
import type { Hedge } from './hedge.ts'
import { isAlive } from './view.ts'

/** An incarnation that has just begun: its row says `up` and beat 0. */
export interface MemberIncarnation {
  readonly member: string
  readonly incarnation: string
}

/** When a statement was sent. */
export type Sent = Moment

/** What a beat sender tells. Nothing is told any more after `lost`, or after a stop. */
export interface BeatReport {
  /** A beat was applied; `sent`: when the first statement that could do it was sent. */
  applied(sent: Sent): void
  /** A beat's outcome is unknown, or the row could not be read: the engine may be away. */
  failed(): void
  /** This incarnation is over: it was declared dead, has left, or its name has a newer one. */
  lost(why: string): void
}

/** Sends the beats of one incarnation at a time. Times are those of the member's own clock. */
export interface BeatSender {
  /** Begins at once, with beat 1. An incarnation that was beaten for before is stopped. */
  start(own: MemberIncarnation, report: BeatReport): void
  stop(): void
  /** Stops, and ends what it has open. */
  close(): void
}

export interface BeatLoopOptions {
  readonly control: Pick<ControlStore, 'member' | 'updateMember'>
  readonly clock: Clock
  readonly log: Log
  /** Asked before each beat: false when what the beat vouches for doesn't move. */
  readonly mayBeat?: () => boolean
}

/** Sends beats from the thread that it is called in. */
export class BeatLoop implements BeatSender {
  readonly #options: BeatLoopOptions
  readonly #hedge: Hedge
  readonly #outage: Outage
  /** Counts starts and stops: a loop of an earlier one ends. */
  #round = 0

  constructor(options: BeatLoopOptions) {
    this.#options = options
    const { beatAnswerMs: everyMs, beatCopiesMax: times } = LIMITS.membership
    this.#hedge = { clock: options.clock, everyMs, times }
    this.#outage = new Outage({
      log: options.log,
      now: () => options.clock.monotonicMs(),
      failing: "the member's own row could not be read",
      back: "the member's own row can be read again",
    })
  }

  start(own: MemberIncarnation, report: BeatReport): void {
    const round = ++this.#round
    const isOver = (): boolean => round !== this.#round
    this.#run(own, report, isOver).catch((error: unknown) => {
      if (isOver()) return
      this.#options.log.error({ err: error }, 'the beat has failed')
      report.lost('the beat has failed')
    })
  }

  stop(): void {
    this.#round++
  }

  close(): void {
    this.stop()
  }

  async #run(own: MemberIncarnation, report: BeatReport, isOver: () => boolean): Promise<void> {
    const { clock } = this.#options
    // As the join has left the row.
    let beat = 0
    let state: MemberState = 'up'
    for (;;) {
      while (this.#options.mayBeat?.() === false && !isOver()) await this.#pause()
      if (isOver()) return
      const sent = momentOf(clock)
      // Until beat + 1 is there for certain: later copies count from when the first was sent.
      for (let isThere = false; !isThere;) {
        const outcome = await this.#send(own, beat, state)
        if (isOver()) return
        if (outcome === 'applied') break
        if (outcome === 'unknown') report.failed()
        const row = await this.#row(own, report, isOver)
        if (row === null) return
        if (row.beat > beat + 1) throw new Error('somebody else beats in its name')
        isThere = row.beat === beat + 1
        if (!isThere && row.state === state) await this.#pause()
        state = row.state
        if (isOver()) return
      }
      beat++
      this.#outage.answered()
      report.applied(sent)
      const wait = sent.monotonicMs + LIMITS.membership.beatEveryMs - clock.monotonicMs()
      if (wait > 0) await new Promise<void>((resolve) => void clock.after(wait, resolve))
      if (isOver()) return
    }
  }

  /** Copies of one statement, while no answer comes: any of them may be the one that is applied. */
  #send(
    { member, incarnation }: MemberIncarnation,
    beat: number,
    state: MemberState,
  ): Promise<Outcome> {
    const { control } = this.#options
    const to = { beat: beat + 1 }
    const send = (): Promise<Outcome> =>
      control.updateMember(member, to, { incarnation, beat, state })
    return hedged(this.#hedge, send).catch((error: unknown) => {
      if (error instanceof LateAnswer) return 'unknown'
      throw error
    })
  }

  /** My row while this incarnation lives; null when it is over. Tries until the store answers. */
  async #row(own: MemberIncarnation, report: BeatReport, isOver: () => boolean) {
    for (;;) {
      const { control } = this.#options
      const read = hedged(this.#hedge, () => control.member(own.member))
      const row = await read.catch((error: unknown) => {
        this.#outage.failed({ err: error })
        return undefined
      })
      if (isOver()) return null
      if (row === undefined) {
        report.failed()
        await this.#pause()
        if (isOver()) return null
        continue
      }
      if (row !== null && row.incarnation === own.incarnation && isAlive(row)) return row
      this.stop()
      report.lost(
        row?.incarnation === own.incarnation
          ? `its row says ${row.state}`
          : 'its row carries another incarnation',
      )
      return null
    }
  }

  #pause(): Promise<void> {
    return new Promise(
      (resolve) => void this.#options.clock.after(LIMITS.membership.beatRetryMs, resolve),
    )
  }
}
