// The scheduler of a simulation: virtual time and all that happens in it. Timers, deliveries and
// answers of every simulated process are events of one queue; which of those that are due comes
// first is drawn from the seed. Between two events everything that promises have made ready runs to
// its end. The code of cluster/ sees it as the clock and the chance of its process. Source:
// PROTOCOL 4.1.

import type { Clock } from '../../../cluster/clock.ts'
import { seeded } from './random.ts'
import type { FillRandom } from '../../../protocol/ids.ts'
import { assert } from '../../../protocol/errors.ts'
import { EventQueue } from './event-queue.ts'
import type { Owner, ProcessState, SimulatedEvent } from './event-queue.ts'
import type { Trace } from './trace.ts'

/** Virtual time begins here, milliseconds since 1970. */
const BEGAN_AT_MS = Date.UTC(2026, 0, 1)

export class Scheduler {
  /** Virtual milliseconds since the beginning; what nobody inside the simulation can read. */
  nowMs = 0
  readonly chance: () => number
  readonly trace: Trace
  readonly #queue = new EventQueue()
  /** Told what an event throws, or a promise that nobody looks after; else the run ends. */
  onThrow: ((owner: Owner | null, error: unknown) => void) | null = null
  #sequence = 0
  #current: Owner | null = null
  events = 0

  constructor(seed: number, trace: Trace) {
    this.chance = seeded(seed)
    this.trace = trace
  }

  /** A whole number in [0, below). */
  pick(below: number): number {
    return Math.floor(this.chance() * below)
  }

  one<T>(among: readonly T[]): T {
    assert(among.length > 0, 'there is something to choose from')
    return among[this.pick(among.length)]!
  }

  /** Milliseconds between two bounds; the shorter ones are likelier. */
  between(lowMs: number, highMs: number): number {
    const share = this.chance()
    return lowMs + (highMs - lowMs) * share * share
  }

  /** Runs later; with an owner, only while that process runs. */
  at(delayMs: number, label: string, run: () => void, owner?: Process): SimulatedEvent {
    return this.#add(delayMs, this.chance(), { label, run, owner: owner ?? null })
  }

  /** Behind what else is due at this moment, in the order of the calls. */
  deferred(run: () => void, owner: Process): SimulatedEvent {
    return this.#add(0, 2, { label: 'deferred', run, owner })
  }

  #add(
    delayMs: number,
    rank: number,
    what: Pick<SimulatedEvent, 'label' | 'run' | 'owner'>,
  ): SimulatedEvent {
    const atMs = this.nowMs + Math.max(0, delayMs)
    const event = { ...what, atMs, rank, sequence: this.#sequence++, cancelled: false }
    this.#queue.push(event)
    return event
  }

  /** Runs events until this time has come, or until `done`; time stands at the end. */
  run(untilMs: number, done: () => boolean = () => false): Promise<void> {
    const unhandled = (error: unknown): void => this.#threw(error)
    process.on('unhandledRejection', unhandled)
    return new Promise<void>((resolve, reject) => {
      const step = (): void => {
        try {
          if (done()) return resolve()
          const next = this.#next(untilMs)
          if (next === null) {
            this.nowMs = Math.max(this.nowMs, untilMs)
            return resolve()
          }
          this.#execute(next)
        } catch (error) {
          return reject(error)
        }
        // A macrotask begins when every promise that this event has settled was followed up.
        return void setImmediate(step)
      }
      setImmediate(step)
    }).finally(() => process.off('unhandledRejection', unhandled))
  }

  #threw(error: unknown): void {
    if (this.onThrow === null) throw error
    this.onThrow(this.#current, error)
  }

  #next(untilMs: number): SimulatedEvent | null {
    for (;;) {
      const event = this.#queue.peek()
      if (event === null || event.atMs > untilMs) return null
      this.#queue.pop()
      if (event.cancelled || event.owner?.state === 'dead') continue
      if (event.owner !== null && event.owner.state !== 'running') {
        event.owner.keep(event)
        continue
      }
      return event
    }
  }

  #execute(event: SimulatedEvent): void {
    this.nowMs = event.atMs
    this.events++
    this.trace.add(`${event.atMs.toFixed(3)} ${event.owner?.name ?? '-'} ${event.label}`)
    this.#current = event.owner
    try {
      event.run()
    } catch (error) {
      this.#threw(error)
    }
  }
}

interface Timer {
  readonly run: () => void
  event: SimulatedEvent | null
}

/**
 * One simulated process (one incarnation: a process that is started again is another object). It
 * sees time through a clock of its own, whose rate differs a little, whose wall part jumps, and
 * which stands still while its machine is suspended.
 */
export class Process implements Owner {
  readonly name: string
  readonly scheduler: Scheduler
  readonly random: FillRandom
  readonly clock: Clock
  state: ProcessState = 'running'
  readonly #rate: number
  readonly #bornMs: number
  #wallJumpMs: number
  #lostMs = 0
  #stoppedAtMs = 0
  readonly #timers = new Map<SimulatedEvent, Timer>()
  #kept: SimulatedEvent[] = []
  #onDeath: (() => void)[] = []

  /** `wallJumpMs`: how far its machine's wall clock is from the truth. */
  constructor(name: string, scheduler: Scheduler, wallJumpMs = 0) {
    this.name = name
    this.scheduler = scheduler
    this.#bornMs = scheduler.nowMs
    this.#wallJumpMs = wallJumpMs
    // I5 holds for rates that differ by less than a quarter (PROTOCOL 3.7).
    this.#rate = 0.895 + scheduler.chance() * 0.222
    const own = seeded(scheduler.pick(2 ** 32))
    this.random = (bytes) => {
      for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(own() * 256)
    }
    this.clock = {
      nowMs: () => Math.floor(BEGAN_AT_MS + scheduler.nowMs + this.#wallJumpMs),
      monotonicMs: () => (scheduler.nowMs - this.#bornMs - this.#lostMs) * this.#rate,
      after: (ms, run) => this.#after(ms, run),
      defer: (run) => void scheduler.deferred(run, this),
    }
  }

  #after(ms: number, run: () => void): () => void {
    const timer: Timer = { run, event: null }
    // As setTimeout does: never at once.
    this.#arm(timer, Math.max(1, ms) / this.#rate)
    return () => this.#disarm(timer)
  }

  #arm(timer: Timer, delayMs: number): void {
    const fire = (): void => {
      this.#disarm(timer)
      timer.run()
    }
    timer.event = this.scheduler.at(delayMs, 'timer', fire, this)
    this.#timers.set(timer.event, timer)
  }

  #disarm(timer: Timer): void {
    if (timer.event === null) return
    timer.event.cancelled = true
    this.#timers.delete(timer.event)
    timer.event = null
  }

  /** SIGSTOP: time goes on, nothing here does. */
  pause(): void {
    assert(this.state === 'running', 'only what runs is stopped')
    this.state = 'paused'
  }

  /** The machine sleeps: its monotonic clock stands still too. */
  suspend(): void {
    assert(this.state === 'running', 'only what runs is stopped')
    this.state = 'suspended'
    this.#stoppedAtMs = this.scheduler.nowMs
  }

  resume(): void {
    if (this.state === 'running' || this.state === 'dead') return
    const { scheduler } = this
    if (this.state === 'suspended') {
      const sleptMs = scheduler.nowMs - this.#stoppedAtMs
      this.#lostMs += sleptMs
      // A timer of a machine that slept still has the rest of its time before it.
      for (const timer of [...this.#timers.values()]) {
        const leftMs = timer.event!.atMs + sleptMs - scheduler.nowMs
        this.#disarm(timer)
        this.#arm(timer, leftMs)
      }
    }
    this.state = 'running'
    const kept = this.#kept
    this.#kept = []
    for (const event of kept) {
      if (event.cancelled) continue
      const timer = this.#timers.get(event)
      const soonMs = scheduler.between(0, 3)
      // What was deferred keeps its order; the rest comes in any.
      if (event.rank === 2) scheduler.deferred(event.run, this)
      else if (timer === undefined) scheduler.at(soonMs, event.label, event.run, this)
      else {
        this.#disarm(timer)
        this.#arm(timer, soonMs)
      }
    }
  }

  /** kill -9. What it has sent goes on without it. */
  kill(): void {
    if (this.state === 'dead') return
    this.state = 'dead'
    this.#kept = []
    this.#timers.clear()
    const ends = this.#onDeath
    this.#onDeath = []
    for (const end of ends) end()
  }

  onDeath(run: () => void): void {
    if (this.state === 'dead') run()
    else this.#onDeath.push(run)
  }

  jumpWall(ms: number): void {
    this.#wallJumpMs += ms
  }

  get wallJumpMs(): number {
    return this.#wallJumpMs
  }

  keep(event: SimulatedEvent): void {
    this.#kept.push(event)
  }
}
