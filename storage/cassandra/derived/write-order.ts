// The order of one shard's derived rows on a server that keeps none: a write counts as done when
// those before it are, and what must not overtake them (snapshots, consumers) waits. Rows that
// failed are carried along by the next write, so that none is jumped over; a snapshot, which
// nothing needs, is its own writer's affair, for one that is too large fails for ever. Callers
// write groups one behind the other, and many single registers. Source: PROTOCOL 3.12 "Order",
// "flush".

import type { DerivedRow } from '../../journal.ts'

/** Each answers whether all of it is durable. */
export interface StagedWrite {
  readonly first: () => Promise<boolean>
  readonly second: () => Promise<boolean>
  /** Snapshots: with the second ones, but nothing waits for them, and nobody owes them. */
  readonly aside: () => Promise<boolean>
}

export interface WriteOrderOptions {
  readonly begin: (shard: number, rows: readonly DerivedRow[]) => StagedWrite
  /** Monotonic milliseconds. */
  readonly now: () => number
}

type Rows = readonly DerivedRow[]

/** Failed rows that nobody writes again for so long are of an owner that is gone. */
const FORGET_MS = 60_000

export class WriteOrder {
  readonly #options: WriteOrderOptions
  readonly #lines = new Map<number, Line>()

  constructor(options: WriteOrderOptions) {
    this.#options = options
  }

  /** True: these rows and all before them in this epoch are durable. False: perhaps not. */
  write(shard: number, epoch: number, rows: Rows): Promise<boolean> {
    const nowMs = this.#options.now()
    this.#forget(nowMs)
    const line = this.#lineOf(shard, epoch)
    line.usedAtMs = nowMs
    return line.write(rows)
  }

  #lineOf(shard: number, epoch: number): Line {
    const there = this.#lines.get(shard)
    if (there !== undefined && there.epoch === epoch) return there
    const line = new Line(epoch, (rows) => this.#options.begin(shard, rows))
    // A new tenure reads the log from the flush offset on: what an older one owes is in there. What
    // an older one still writes goes its own way.
    if (there === undefined || there.epoch < epoch) this.#lines.set(shard, line)
    return line
  }

  #forget(nowMs: number): void {
    for (const [shard, line] of this.#lines) {
      if (nowMs - line.usedAtMs > FORGET_MS && line.idle) this.#lines.delete(shard)
    }
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    while (true) {
      const pending = [...this.#lines.values()].flatMap((line) => line.pending())
      if (pending.length === 0) return
      await Promise.allSettled(pending)
    }
  }
}

/** The writes of one shard in one epoch. */
class Line {
  readonly epoch: number
  usedAtMs = 0
  readonly #begin: (rows: Rows) => StagedWrite
  /** Not settled yet, in the order in which they came; who writes these rows again waits, too. */
  readonly #pending = new Map<Rows, Pending>()
  /** The same with their snapshots. */
  readonly #asides = new Set<Promise<boolean>>()
  /** Failed, and not carried by a write under way. */
  #owed = new Set<Rows>()

  constructor(epoch: number, begin: (rows: Rows) => StagedWrite) {
    this.epoch = epoch
    this.#begin = begin
  }

  get idle(): boolean {
    return this.#asides.size === 0
  }

  pending(): Promise<boolean>[] {
    return [...this.#asides]
  }

  write(rows: Rows): Promise<boolean> {
    // Carried by another write already, or by one of its own.
    const { ordered, whole } = this.#pending.get(rows) ?? this.#begun(rows)
    return rows.some(({ kind }) => kind === 'snapshot') ? whole : ordered
  }

  #begun(rows: Rows): Pending {
    const before = Array.from(this.#pending.values(), ({ ordered }) => ordered)
    this.#owed.delete(rows)
    const carried = [...this.#owed, rows]
    this.#owed = new Set()
    const pending = this.#staged(carried, before)
    for (const one of carried) this.#pending.set(one, pending)
    return pending
  }

  #staged(carried: readonly Rows[], before: readonly Promise<boolean>[]): Pending {
    const { first, second, aside } = this.#begin(
      carried.length === 1 ? carried[0]! : carried.flat(),
    )
    const ready = Promise.all([first(), ...before]).then((all) => all.every(Boolean))
    const ordered = ready
      .then((is) => is && second())
      .catch((error: unknown) => {
        this.#ended(carried, false)
        throw error
      })
      .then((isDurable) => {
        this.#ended(carried, isDurable)
        return isDurable
      })
    const snapshots = ready.then((is) => is && aside())
    const whole = Promise.all([ordered, snapshots])
      .then((all) => all.every(Boolean))
      .finally(() => void this.#asides.delete(whole))
    this.#asides.add(whole)
    // Who has written no snapshots doesn't ask for this.
    whole.catch(() => undefined)
    return { ordered, whole }
  }

  #ended(carried: readonly Rows[], isDurable: boolean): void {
    for (const rows of carried) {
      this.#pending.delete(rows)
      if (!isDurable) this.#owed.add(rows)
    }
  }
}

interface Pending {
  /** All but its snapshots is durable, and so is what was written before it. */
  readonly ordered: Promise<boolean>
  readonly whole: Promise<boolean>
}
