// The simulated Cassandra: what the engine keeps (the twins' state) and the way of a statement to
// it and back. The effect of a statement and its answer are two events: either may be late, lost or
// doubled, and neither waits for a process that is paused or dead. Source: PROTOCOL 3.2, 4.1,
// F13-F16.

import {
  MemoryControl,
  MemorySegments,
  newStatementState,
} from '../../../storage/memory/statements.ts'
import type { StatementState } from '../../../storage/memory/statements.ts'
import { MUTATION_BYTES_MAX } from '../bounds.ts'
import type { Nastiness } from '../nastiness.ts'
import type { Process, Scheduler } from '../scheduler/scheduler.ts'
import { DerivedTables } from './tables.ts'
import { Witness } from '../witness.ts'

/** The client of a driver gives a statement up after so long. */
export const CLIENT_TIMEOUT_MS = 700
/** When what is late lands. */
export const LATE_MS = { from: 700, to: 9_000 }

/** How far the engine's own wall clock may be from the truth. */
export const CLOCK_OFF_MS = 6 * 3_600_000

/** A statement or read on its way. A directed schedule may take its course into its own hands. */
export interface Pending {
  readonly process: Process
  /** What it does, for rules and for the trace: `append 2/1 epoch 3 head 7`. */
  readonly text: string
  /** A read has no effect: it fails instead of being unknown. */
  readonly isRead: boolean
  /** Evaluates it now, once more each time. */
  land(): Promise<void>
  /** Lets the sender hear what the last landing gave, or, before one, that it is not known. */
  answer(): void
  /** The engine says at once that it can't; a statement's outcome is unknown then. */
  fail(): void
}

/** Takes a statement's course over by returning true. */
export type Rule = (pending: Pending) => boolean

/** Cut: what a process sends doesn't arrive, or what it should hear. */
export interface Cut {
  readonly out: boolean
  readonly back: boolean
}

export interface Call<T> {
  readonly process: Process
  readonly text: string
  /** The twins evaluate when they are called; only their answer is a promise. */
  readonly evaluate: () => Promise<T>
  /** What the sender is told when it hears nothing; a read has none and fails. */
  readonly unheard?: T
}

export class Engine {
  readonly state: StatementState
  readonly control: MemoryControl
  readonly segments: MemorySegments
  readonly tables: DerivedTables
  readonly shards: number
  readonly witness: Witness
  readonly scheduler: Scheduler
  /** May change during a run. */
  nastiness: Nastiness
  readonly rules: Rule[] = []
  readonly #cuts = new Map<Process, Cut>()
  /** A mutation above it is refused, for good. */
  readonly mutationBytesMax = MUTATION_BYTES_MAX
  /** How far its wall clock, by which rows expire, is from the truth, milliseconds. */
  wallJumpMs = 0
  #isAway = false

  constructor(scheduler: Scheduler, shards: number, nastiness: Nastiness) {
    this.scheduler = scheduler
    this.shards = shards
    this.nastiness = nastiness
    this.state = newStatementState(shards)
    this.control = new MemoryControl(this.state)
    this.segments = new MemorySegments(this.state)
    this.tables = new DerivedTables(() => scheduler.nowMs + this.wallJumpMs)
    this.witness = new Witness()
  }

  cut(process: Process, cut: Cut): void {
    this.#cuts.set(process, cut)
  }

  heal(process: Process): void {
    this.#cuts.delete(process)
  }

  /** Down, or without a quorum. */
  set away(isAway: boolean) {
    this.#isAway = isAway
  }

  get away(): boolean {
    return this.#isAway
  }

  /** Sends a statement or a read, and settles when its sender hears of it. */
  call<T>(call: Call<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const { process, text, evaluate } = call
      const isRead = call.unheard === undefined
      let landed: { readonly value: T } | null = null
      let isHeard = false
      const hear = (): void => {
        if (isHeard) return
        isHeard = true
        giveUp()
        if (landed !== null) resolve(landed.value)
        else if (call.unheard !== undefined) resolve(call.unheard)
        else reject(new Error(`the engine does not answer: ${text}`))
      }
      const answered = (): void => {
        const heard = landed
        this.scheduler.at(
          this.#hopMs(),
          `answer ${text}`,
          () => {
            landed = heard
            hear()
          },
          process,
        )
      }
      const giveUp = process.clock.after(CLIENT_TIMEOUT_MS, () => {
        landed = null
        hear()
      })
      const pending: Pending = {
        process,
        text,
        isRead,
        land: async () => {
          landed = { value: await evaluate() }
          this.scheduler.trace.add(`  ${text} -> ${shown(landed.value)}`)
        },
        answer: answered,
        fail: () => {
          landed = null
          answered()
        },
      }
      if (!this.rules.some((rule) => rule(pending))) this.#course(pending)
    })
  }

  #hopMs(): number {
    return this.scheduler.between(0.3, 3)
  }

  /** What becomes of a statement, as the seed has it. */
  #course(pending: Pending): void {
    const { scheduler, nastiness } = this
    const { process, isRead } = pending
    const cut = this.#cuts.get(process)
    const is = (chance: number): boolean => scheduler.chance() < chance
    if (this.#isAway || cut?.out) {
      // Half of the time the driver knows at once; now and then an older try was still under way.
      if (this.#isAway && is(0.5)) pending.fail()
      if (!isRead && is(0.05)) this.#land(pending, scheduler.between(LATE_MS.from, LATE_MS.to))
      return
    }
    const slowMs = is(nastiness.slow) ? scheduler.between(50, CLIENT_TIMEOUT_MS) : 0
    const landsMs = this.#hopMs() + slowMs
    const hears = !cut?.back
    if (isRead) {
      if (is(nastiness.unread)) this.scheduler.at(landsMs, 'unread', () => pending.fail())
      else this.#land(pending, landsMs, hears)
    } else if (is(nastiness.lost)) return
    else if (is(nastiness.late)) this.#land(pending, scheduler.between(LATE_MS.from, LATE_MS.to))
    else if (is(nastiness.unheard)) this.#land(pending, landsMs)
    else if (is(nastiness.twice)) {
      const hearsFirst = is(0.5)
      const again = landsMs + scheduler.between(1, is(0.3) ? 4_000 : 400)
      this.#land(pending, landsMs, hears && hearsFirst)
      this.#land(pending, again, hears && !hearsFirst)
    } else this.#land(pending, landsMs, hears)
  }

  #land(pending: Pending, afterMs: number, hears = false): void {
    this.scheduler.at(afterMs, `lands ${pending.process.name} ${pending.text}`, () => {
      // What reaches an engine that has gone away meanwhile waits, or is lost with it.
      if (this.#isAway) {
        const isLost = pending.isRead || this.scheduler.chance() < 0.7
        if (!isLost) this.#land(pending, this.scheduler.between(500, 3_000))
        return
      }
      void pending.land().then(() => hears && pending.answer())
    })
  }
}

function shown(value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number' || value === null) return String(value)
  if (Array.isArray(value)) return `${value.length} rows`
  return JSON.stringify(value, (_key, v: unknown) => (v instanceof Uint8Array ? v.length : v))
}
