// Runs plans on a few reader threads, so that nobody's heavy ones keep others waiting, whoever
// sends them. Source: PROTOCOL 3.10.
//
// - Callers take turns (fair-queue.ts).
// - A plan that has worked for LIMITS.graph.quantumMs while others wait is stopped, joins the heavy
//   ones, and starts anew when its turn comes there. Plans that were heavy before join them at
//   once.
// - Heavy ones have all threads but one. So whatever they do, a light plan waits for no more than
//   the quanta of those that were before it in the round.
// - Waking a thread for each plan costs as much as a light plan itself. So a thread is given some
//   ahead, but not from a session that had long ones of late (LIMITS.graph.companyMs); behind a
//   plan that turns out to be long they come back unbegun.

import { LIMITS } from '../../../config/limits.ts'
import type { Clock } from '../../../cluster/clock.ts'
import { FairQueue, type QueueBounds } from '../../queues/fair-queue.ts'
import type { PlanRunner } from '../graph.ts'
import type { ReadyPlan } from './plan-cache.ts'
import { type Caller, GRAPH_QUEUE, neverRun, noRoom } from './plan-queue.ts'
import type { PlanWork } from './reader-messages.ts'
import { indexAway, type PlanOutcome, type PlanThread, type ReaderStats } from './plan-thread.ts'

export interface ReaderPoolOptions {
  readonly clock: Clock
  /** Threads, at least one. All but the first are started with the first plan. */
  readonly threads: number
  readonly startThread: (stats: ReaderStats, onChange: () => void) => PlanThread
  /** Of light plans, and the same again of heavy ones. */
  readonly queue?: QueueBounds
}

interface Job {
  readonly plan: ReadyPlan
  readonly caller: Caller
  readonly endsAtMs: number
  readonly generation: () => number
  readonly resolve: (json: string) => void
  readonly reject: (error: unknown) => void
}

/** A thread and what it was given. */
interface Seat {
  readonly thread: PlanThread
  /** Plans that it has not answered. */
  jobs: number
  /** What of them is allowed beside it. */
  sort: 'light' | 'suspect' | 'heavy'
  /** Since when it works at the one that it runs now. */
  sinceMs: number
  isAsked: boolean
}

export class ReaderPool implements PlanRunner {
  readonly stats: ReaderStats = {
    queries: 0,
    queryUs: 0,
    refused: 0,
    failed: 0,
    gaveWay: 0,
    restarts: 0,
  }
  readonly #options: ReaderPoolOptions
  readonly #seats: Seat[] = []
  readonly #light: FairQueue<Job>
  readonly #heavy: FairQueue<Job>
  /** They were stopped, or took long, when they last ran. */
  readonly #heavyPlans = new WeakSet<ReadyPlan>()
  /** Until when sessions that had long plans are suspected of more; oldest first. */
  readonly #suspects = new Map<string, number>()
  /** The plan that began last was a heavy one. */
  #wasHeavy = false

  constructor(options: ReaderPoolOptions) {
    this.#options = options
    this.#light = new FairQueue(options.queue ?? GRAPH_QUEUE)
    this.#heavy = new FairQueue(options.queue ?? GRAPH_QUEUE)
    this.#addSeat()
  }

  /** Plans on their way, those that wait included. */
  get waiting(): number {
    let running = 0
    for (const { jobs } of this.#seats) running += jobs
    return running + this.#light.size + this.#heavy.size
  }

  run(
    plan: ReadyPlan,
    deadlineMs: number,
    generation: () => number,
    caller: Caller,
  ): Promise<string> {
    while (this.#seats.length < this.#options.threads) this.#addSeat()
    const endsAtMs = this.#options.clock.monotonicMs() + deadlineMs
    return new Promise((resolve, reject) => {
      const job = { plan, caller, endsAtMs, generation, resolve, reject }
      this.#enqueue(job, this.#heavyPlans.has(plan) ? this.#heavy : this.#light)
      this.#dispatch()
    })
  }

  /** What is read may be another index by now: no thread keeps the old one open. */
  follow(): void {
    for (const { thread } of this.#seats) thread.follow()
  }

  /** Ends the threads; what is still waiting is refused. */
  async close(): Promise<void> {
    this.#refuseWaiting()
    await Promise.all(this.#seats.map(({ thread }) => thread.close()))
    this.#refuseWaiting()
  }

  #addSeat(): void {
    const thread = this.#options.startThread(this.stats, () => this.#dispatch())
    this.#seats.push({ thread, jobs: 0, sort: 'light', sinceMs: 0, isAsked: false })
  }

  #enqueue(job: Job, queue: FairQueue<Job>): void {
    const dropped = queue.push(job.caller, job)
    if (dropped === null) return
    this.stats.refused++
    dropped.reject(noRoom(queue.size))
  }

  #dispatch(): void {
    if (this.#seats.every(({ thread }) => thread.state === 'away')) this.#refuseWaiting()
    while (this.#seatHeavy() || this.#seatLight());
    this.#askForRoom()
  }

  /** Heavy plans go first, as they have fewer threads; where there is but one, they take turns. */
  #seatHeavy(): boolean {
    if (this.#heavyRoom === 0 || (this.#wasHeavy && this.#light.size > 0)) return false
    const seat = this.#idleSeat()
    const job = seat === null ? null : this.#next(this.#heavy)
    if (job === null) return false
    this.#wasHeavy = true
    this.#seat(seat!, job, 'heavy')
    return true
  }

  #seatLight(): boolean {
    const idle = this.#idleSeat()
    const shared = this.#sharedSeat(idle !== null)
    const job =
      idle === null
        ? shared === null
          ? null
          : this.#next(this.#light, (caller) => !this.#isSuspect(caller))
        : this.#next(this.#light)
    if (job === null) return false
    this.#wasHeavy = false
    const isSuspect = this.#isSuspect(job.caller)
    if (idle === null || (shared !== null && !isSuspect)) this.#seat(shared!, job, 'light')
    else this.#seat(idle, job, isSuspect ? 'suspect' : 'light')
    return true
  }

  /** Heavy plans that may begin now. */
  get #heavyRoom(): number {
    if (this.#heavy.size === 0) return 0
    const running = this.#seats.filter(({ jobs, sort }) => jobs > 0 && sort === 'heavy').length
    const room = Math.max(1, this.#options.threads - 1) - running
    return Math.max(0, Math.min(room, this.#heavy.size))
  }

  /** One that is starting only while there is no other at all: it takes a moment. */
  #idleSeat(): Seat | null {
    const state = this.#seats.some(({ thread }) => thread.state === 'ready') ? 'ready' : 'starting'
    return this.#seats.find(({ jobs, thread }) => jobs === 0 && thread.state === state) ?? null
  }

  /** One that runs light plans; where there is an idle one, only if it gets on quickly. */
  #sharedSeat(isOneIdle: boolean): Seat | null {
    const sinceMs = isOneIdle ? this.#options.clock.monotonicMs() - QUICK_MS : -Infinity
    const isOpen = (seat: Seat): boolean =>
      seat.sort === 'light' &&
      seat.jobs > 0 &&
      seat.jobs < LIMITS.graph.plansAheadMax &&
      seat.sinceMs > sinceMs &&
      seat.thread.state !== 'away'
    return this.#seats.find(isOpen) ?? null
  }

  #next(queue: FairQueue<Job>, mayGo?: (caller: Caller) => boolean): Job | null {
    const nowMs = this.#options.clock.monotonicMs()
    for (let job = queue.take(mayGo); job !== null; job = queue.take(mayGo)) {
      if (nowMs < job.endsAtMs) return job
      this.stats.failed++
      job.reject(neverRun())
    }
    return null
  }

  #seat(seat: Seat, job: Job, sort: Seat['sort']): void {
    const nowMs = this.#options.clock.monotonicMs()
    if (seat.jobs++ === 0) seat.sinceMs = nowMs
    seat.sort = sort
    this.#start(seat.thread, job, { leftMs: job.endsAtMs - nowMs, mayStop: sort !== 'heavy' })
      .then(({ isHeavy, isLong, answer }) => {
        this.#learn(job, { isHeavy, isLong })
        if (typeof answer === 'string') job.resolve(answer)
        else if (answer === null) this.#enqueue(job, isHeavy ? this.#heavy : this.#light)
        else job.reject(answer)
      })
      .catch(job.reject)
      .finally(() => {
        seat.jobs--
        seat.sinceMs = this.#options.clock.monotonicMs()
        this.#dispatch()
      })
  }

  async #start(
    thread: PlanThread,
    { plan, generation }: Job,
    { leftMs, mayStop }: { readonly leftMs: number; readonly mayStop: boolean },
  ): Promise<PlanOutcome> {
    return thread.run({
      plan,
      leftMs: Math.min(leftMs, LIMITS.graph.workMs),
      generation: generation(),
      mayStop,
    })
  }

  /** What its time says of the plan and its session. */
  #learn({ plan, caller }: Job, { isHeavy, isLong }: PlanWork): void {
    if (isHeavy) this.#heavyPlans.add(plan)
    else this.#heavyPlans.delete(plan)
    if (!isLong) return
    this.#suspects.delete(caller.name)
    if (this.#suspects.size >= LIMITS.graph.suspectsMax) {
      this.#suspects.delete(this.#suspects.keys().next().value!)
    }
    const untilMs = this.#options.clock.monotonicMs() + LIMITS.graph.suspectMs
    this.#suspects.set(caller.name, untilMs)
  }

  #isSuspect({ name }: Caller): boolean {
    const untilMs = this.#suspects.get(name)
    return untilMs !== undefined && this.#options.clock.monotonicMs() < untilMs
  }

  /** For as many as wait and may begin, those that run longest are asked to stop. */
  #askForRoom(): void {
    let wanted = this.#light.size + this.#heavyRoom
    const open = this.#seats.filter(({ jobs, sort }) => jobs > 0 && sort !== 'heavy')
    if (open.length > 1) open.sort((a, b) => a.sinceMs - b.sinceMs)
    for (const seat of open) {
      const isAsked = seat.jobs > 1 || wanted-- > 0
      if (isAsked !== seat.isAsked) seat.thread.giveWay(isAsked)
      seat.isAsked = isAsked
    }
  }

  #refuseWaiting(): void {
    for (const { reject } of [...this.#light.clear(), ...this.#heavy.clear()]) reject(indexAway())
  }
}

/** A thread that answered so lately is soon done with what it has. */
const QUICK_MS = 10
