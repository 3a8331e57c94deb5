// Whether this machine gives the processes of a test their time: what its CPUs have left, and how
// late a timer of the test's own fires that has nothing else to do. Where CPUs are short a figure
// in milliseconds says little of a cluster whose members have a machine each. A test's bounds go by
// it.

import { cpus } from 'node:os'
import { quantile } from './probes.ts'

const EVERY_MS = 20
/** A timer that is later than this, one time of ten, is on a machine that is short of CPU. */
const LATE_MS = 30
const LATE_SHARE = 0.9
/** Bounds on such a machine are so many times as wide: what stands still is found all the same. */
const LATE_SLACK = 6
/** A machine that has less left than this share gives each of many processes its time late. */
const IDLE_SHARE = 0.4
/** With less left than this bounds are BUSY_SLACK times as wide, between the two in proportion. */
const BUSY_SHARE = 0.2
const BUSY_SLACK = 3

interface CpuTimes {
  readonly idle: number
  readonly all: number
}

function cpuTimes(): CpuTimes {
  let idle = 0
  let all = 0
  for (const { times } of cpus()) {
    idle += times.idle
    for (const ms of Object.values(times)) all += ms
  }
  return { idle, all }
}

export class MachineSlack {
  readonly #lateMs: number[] = []
  readonly #timer: NodeJS.Timeout
  #dueAt = performance.now() + EVERY_MS
  #since = cpuTimes()

  constructor() {
    this.#timer = setInterval(() => {
      const nowMs = performance.now()
      this.#lateMs.push(Math.max(0, nowMs - this.#dueAt))
      this.#dueAt = nowMs + EVERY_MS
    }, EVERY_MS)
    this.#timer.unref()
  }

  /** How late timers are, milliseconds: of ten, nine are earlier. */
  get lateMs(): number {
    return quantile(this.#lateMs, LATE_SHARE)
  }

  /** What counts is the machine from now on. */
  begin(): void {
    this.#since = cpuTimes()
    this.#lateMs.length = 0
  }

  /** The share of its CPUs that the machine has had left. */
  get idle(): number {
    const { idle, all } = cpuTimes()
    const passed = all - this.#since.all
    return passed === 0 ? 1 : (idle - this.#since.idle) / passed
  }

  /** The bound that holds on this machine. */
  bound(ms: number): number {
    if (this.lateMs > LATE_MS) return ms * LATE_SLACK
    const short = (IDLE_SHARE - this.idle) / (IDLE_SHARE - BUSY_SHARE)
    return Math.round(ms * (1 + (BUSY_SLACK - 1) * Math.min(1, Math.max(0, short))))
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
