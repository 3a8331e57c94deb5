// A log's disk as somebody sees it who reads beside its writer: each read finds it some steps later
// than the one before, and sometimes in the middle of a write. The same seed gives the same.

import type { Disk, DiskFile } from '../../segment-log/disk.ts'
import { Appends, contents, openLog } from '../../segment-log/testing/log-run.ts'
import type { Written } from '../../segment-log/testing/log-run.ts'
import { SimulatedDisk } from '../../segment-log/testing/simulated-disk.ts'

/** The disk before a step of the writer. */
export interface Moment {
  readonly disk: SimulatedDisk
  /** Parts that were acknowledged. */
  readonly acknowledged: number
  /** Index of the run on the disk: each ends by a crash. */
  readonly run: number
}

export interface RecordedRun {
  readonly moments: readonly Moment[]
  /** What was sent, run by run: each begins with what the crash before it has left. */
  readonly sent: readonly (readonly Written[])[]
}

const APPENDS = 24
const RUNS = 3

/** Appends, rolls, closes, starts, and crashes that leave a frame cut off. */
export async function recordRun(draw: () => number): Promise<RecordedRun> {
  const moments: Moment[] = []
  const runs: Written[][] = []
  let disk = new SimulatedDisk()
  const appends = new Appends(draw)
  let sent: Written[] = []
  for (let run = 0; run < RUNS; run++) {
    let acknowledged = sent.length
    const own = disk
    runs.push(sent)
    own.before = () => void moments.push({ disk: own.copy(), acknowledged, run })
    let log = await openLog(own)
    appends.goOnFrom(log)
    for (let i = 0; i < APPENDS; i++) {
      if (i % 8 === 7) {
        if (draw() < 0.5) await log.close()
        log = await openLog(own)
      }
      const { claims, groups } = appends.next()
      sent.push(...claims, ...groups)
      await log.append(groups, claims)
      acknowledged = sent.length
    }
    // The last append of a run is still under way when it ends.
    const { claims, groups } = appends.next()
    sent.push(...claims, ...groups)
    const crashes: { disk: SimulatedDisk; at: number }[] = []
    const { before } = own
    own.before = (operation, name) => {
      before(operation, name)
      crashes.push({ disk: own.crashed(draw), at: moments.length })
    }
    await log.append(groups, claims)
    own.before = () => {}
    const crash = crashes[Math.floor(draw() * crashes.length)]!
    // What was done behind the crash was never there.
    moments.length = crash.at
    disk = crash.disk
    sent = await left(disk)
  }
  return { moments, sent: runs }
}

/** What a start on it finds; it is tried on a copy. */
async function left(disk: SimulatedDisk): Promise<Written[]> {
  const own = disk.copy()
  return contents(own, await openLog(own))
}

export interface RacingOptions {
  readonly recorded: RecordedRun
  readonly draw: () => number
  /** Index of the moment at which it begins. */
  readonly at: number
  /** Steps of the writer between two reads are fewer than this. */
  readonly stepsMax: number
}

export class RacingDisk implements Disk {
  readonly path = 'log'
  at: number
  readonly #options: RacingOptions
  /** So many reads are left until the reader's own process ends. */
  readsLeft = Infinity

  constructor(options: RacingOptions) {
    this.#options = options
    this.at = options.at
  }

  /** So many steps of the writer go by. */
  wait(steps: number): void {
    this.at = Math.min(this.at + steps, this.#options.recorded.moments.length - 1)
  }

  #now(): SimulatedDisk {
    const { draw, stepsMax } = this.#options
    if (this.readsLeft-- <= 0) throw new Error('the reader was ended')
    this.wait(Math.floor(draw() * stepsMax))
    return this.#moment(0).disk
  }

  #moment(ahead: number): Moment {
    const { moments } = this.#options.recorded
    return moments[Math.min(this.at + ahead, moments.length - 1)]!
  }

  list(): readonly string[] {
    return this.#now().list()
  }

  exists(name: string): boolean {
    return this.#now().exists(name)
  }

  open(name: string): DiskFile {
    const first = this.#now()
    if (!first.exists(name)) return first.open(name)
    // What is replaced by a rename stays what it was for who has it open.
    const whole = name.endsWith('.seg') ? null : first.open(name)
    return {
      bytes: () => (whole ?? this.#now().open(name)).bytes(),
      read: (position, length) => {
        return whole ? whole.read(position, length) : this.#read(name, position, length)
      },
      writeSynced: refused,
      truncate: () => this.truncate(),
      close: () => {},
    }
  }

  /** Sometimes the first part of the next write is there and the rest of it isn't. */
  #read(name: string, position: number, length: number): Buffer {
    const now = this.#now().open(name).read(position, length)
    const { draw } = this.#options
    const next = this.#moment(1)
    if (draw() < 0.5 || next.run !== this.#moment(0).run) return now
    const then = next.disk.open(name).read(position, length)
    if (then.length !== now.length || then.equals(now)) return now
    const from = then.findIndex((byte, i) => byte !== now[i])
    const cut = from + Math.floor(draw() * (then.length - from))
    return Buffer.concat([then.subarray(0, cut), now.subarray(cut)])
  }

  create = refused
  link = refused
  replace = refused

  remove(): void {
    throw new Error('it is only read')
  }

  truncate(): void {
    throw new Error('it is only read')
  }
}

async function refused(): Promise<never> {
  throw new Error('it is only read')
}
