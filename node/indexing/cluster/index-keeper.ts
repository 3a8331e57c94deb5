// Which generation of the graph index is read, and whether it is the right one. Every member looks;
// the owner of `system` also sees to it: an index that is not there, has a hole, belongs to another
// store or is made for other node types gets a successor, which is filled beside it and takes its
// place when it has all that the other had. The registers in the journal decide; the indexes in the
// search engine may be lost. Source: PROTOCOL 3.13.5.

import type { Log } from '../../../protocol/log.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { Clock } from '../../../cluster/clock.ts'
import type { SearchEngine } from '../../../storage/elastic/engine.ts'
import type { Generation, Generations } from '../../../storage/elastic/generations.ts'
import type { Layout } from '../../../storage/elastic/layout.ts'
import { purgeRemoved } from '../../../storage/elastic/purge.ts'
import type { LogReader } from '../../../storage/journal.ts'
import { type GenerationNumbers, type IndexRegisters, shardsOf } from './index-registers.ts'

/** What a generation is made by. */
export interface LaidOut {
  /** The layout of this version's node types. */
  readonly layout: Layout
  readonly generations: Generations
}

export interface IndexKeeperOptions extends LaidOut {
  readonly registers: IndexRegisters
  readonly engine: SearchEngine
  readonly journal: Pick<LogReader, 'status'>
  /** Generation of the store. */
  readonly store: string
  readonly shards: number
  /** True: this member owns `system`. */
  readonly isInCharge: () => boolean
  readonly clock: Clock
  readonly log: Log
  /** Generations that are to be filled, and the one that is read; null: none yet. */
  readonly onView: (view: IndexView) => void
}

/** What a member knows of the index. */
export interface IndexView {
  readonly live: number | null
  /** Generations to fill: the live one, and its successor. */
  readonly filled: readonly Generation[]
}

export class IndexKeeper {
  readonly #options: IndexKeeperOptions
  #laid: LaidOut
  #known: ReadonlyMap<number, Generation> = new Map()
  #seen: GenerationNumbers = { live: -1, next: -1 }
  /** Heads that a successor must have reached at least, by its number. */
  #targets: { readonly next: number; readonly heads: ReadonlyMap<number, number> } | null = null
  /** Offsets of the live generation at the last look. */
  #liveOffsets = new Map<number, number>()
  readonly #obsoleteSinceMs = new Map<number, number>()
  #purgedMs = Number.NEGATIVE_INFINITY
  #madeAtMs = Number.NEGATIVE_INFINITY
  #stopped = false
  #looking: Promise<void> = Promise.resolve()
  #cancel: () => void = () => undefined
  #failures = 0

  constructor(options: IndexKeeperOptions) {
    this.#options = options
    this.#laid = options
    this.#look()
  }

  /** The last look has failed: what the index holds is not known. */
  get isAway(): boolean {
    return this.#failures > 0
  }

  /** The node types have changed: the index gets a successor that is laid out by them. */
  follow(laid: LaidOut): void {
    this.#laid = laid
    this.lookNow()
  }

  /** Looks at once, beside the usual times. */
  lookNow(): void {
    this.#cancel()
    this.#look()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancel()
    await this.#looking
  }

  #look(): void {
    const { clock, log } = this.#options
    this.#looking = this.#looking
      .then(() => (this.#stopped ? undefined : this.#round()))
      .then(
        () => void (this.#failures = 0),
        (error: unknown) => {
          // Once in a while is enough: an engine that is away stays away for long.
          if (this.#failures++ % 30 === 0) {
            log.warn({ err: error }, 'the graph index could not be looked after; it goes on')
          }
        },
      )
      .then(() => {
        this.#cancel()
        if (!this.#stopped) this.#cancel = clock.after(LIMITS.indexing.lookMs, () => this.#look())
      })
  }

  async #round(): Promise<void> {
    const { registers, isInCharge } = this.#options
    let numbers = await registers.numbers()
    const isNew = numbers.live !== this.#seen.live || numbers.next !== this.#seen.next
    if (isNew || isInCharge() || !this.#isKnown(numbers))
      this.#known = await this.#laid.generations.find()
    this.#show(numbers)
    if (!isInCharge()) return
    try {
      numbers = await this.#attend(numbers)
      this.#show(numbers)
    } finally {
      // An engine that has no room for a successor gets some.
      await this.#tidy(numbers)
    }
  }

  #isKnown({ live, next }: GenerationNumbers): boolean {
    return [live, next].every((number) => number === 0 || this.#known.get(number)?.isWhole)
  }

  /** Tells the member what to fill and to read. */
  #show(numbers: GenerationNumbers): void {
    this.#seen = numbers
    const { live, next } = numbers
    const { store, onView } = this.#options
    const filled: Generation[] = []
    for (const number of new Set([live, next])) {
      const generation = this.#known.get(number)
      if (generation?.isWhole !== true || generation.store !== store) continue
      // A successor of another version is for the members of that version to fill.
      if (number === live || this.#isOurs(generation)) filled.push(generation)
    }
    onView({ live: filled.some(({ number }) => number === live) ? live : null, filled })
  }

  #isOurs(generation: Generation): boolean {
    return generation.fingerprint === this.#laid.layout.fingerprint
  }

  /** Makes a successor where one is needed, and lets it take over when it is filled. */
  async #attend(numbers: GenerationNumbers): Promise<GenerationNumbers> {
    const { live, next } = numbers
    const isRight = await this.#isRight(next)
    // While the live one is right, a successor that another version has made is left to it.
    const isTheirs = this.#isSound(next) && !this.#isOurs(this.#known.get(next)!)
    const isWaited = isTheirs && next > live && (await this.#isRight(live))
    if (!isRight && !isWaited) return this.#mayMake() ? this.#succeed(numbers) : numbers
    if (next === live || !isRight || !(await this.#isFilled(numbers))) return numbers
    const { registers, engine, log } = this.#options
    const { generations, layout } = this.#laid
    const names = Array.from(layout.nodes.values(), ({ name }) => generations.indexOf(next, name))
    await engine.refresh(names, { timeoutMs: LIMITS.elastic.adminMs })
    await generations.activate(next)
    await registers.setLive(next)
    log.info({ generation: next }, 'the graph index is read from a new generation')
    return registers.numbers()
  }

  /** There, of this store and whole. */
  #isSound(number: number): boolean {
    const generation = this.#known.get(number)
    return generation?.isWhole === true && generation.store === this.#options.store
  }

  async #isRight(number: number): Promise<boolean> {
    const generation = this.#known.get(number)
    if (generation === undefined || !this.#isSound(number) || !this.#isOurs(generation))
      return false
    const { registers, shards } = this.#options
    const gone = await Promise.all(shardsOf(shards).map((shard) => registers.gone(shard)))
    return gone.every((gonesNumber) => gonesNumber < number)
  }

  /** Definitions may come one after the other, faster than what is over goes. */
  #mayMake(): boolean {
    const nowMs = this.#options.clock.monotonicMs()
    if (nowMs < this.#madeAtMs + LIMITS.indexing.successorEveryMs) return false
    this.#madeAtMs = nowMs
    return true
  }

  async #succeed({ live, next }: GenerationNumbers): Promise<GenerationNumbers> {
    const { registers, log } = this.#options
    const { generations } = this.#laid
    // Numbers of another store's indexes under the same prefix are passed over, too.
    const number = Math.max(live, next, ...this.#known.keys()) + 1
    log.info({ generation: number }, 'a new generation of the graph index is made and filled')
    await generations.make(number)
    await registers.setNext(number)
    this.#known = await generations.find()
    return registers.numbers()
  }

  /**
   * True when the successor has all that was committed when it was first looked at, and is not
   * behind what the live one had at the last look: nobody who reads goes back in time.
   */
  async #isFilled({ live, next }: GenerationNumbers): Promise<boolean> {
    const { registers, shards } = this.#options
    if (this.#targets?.next !== next) this.#targets = { next, heads: await this.#heads() }
    const { heads } = this.#targets
    const before = this.#liveOffsets
    this.#liveOffsets = new Map()
    let isFilled = true
    for (const shard of shardsOf(shards)) {
      const offset = (await registers.offset(next, shard)) ?? 0
      const liveOffset = live === 0 ? 0 : ((await registers.offset(live, shard)) ?? 0)
      this.#liveOffsets.set(shard, liveOffset)
      const least = Math.max(heads.get(shard)!, before.get(shard) ?? liveOffset)
      if (offset < least) isFilled = false
    }
    return isFilled
  }

  async #heads(): Promise<ReadonlyMap<number, number>> {
    const { journal, shards } = this.#options
    const heads = new Map<number, number>()
    for (const shard of shardsOf(shards)) {
      heads.set(shard, (await journal.status(shard)).head)
    }
    return heads
  }

  /** Drops what nobody reads any more, and what was removed a day ago. */
  async #tidy({ live, next }: GenerationNumbers): Promise<void> {
    const { clock, store } = this.#options
    const { generations } = this.#laid
    const nowMs = clock.monotonicMs()
    for (const { number, store: of } of this.#known.values()) {
      if ([live, next].includes(number) || number > next || of !== store) continue
      const sinceMs = this.#obsoleteSinceMs.get(number) ?? nowMs
      this.#obsoleteSinceMs.set(number, sinceMs)
      // Between the one that is read and its successor none was ever read.
      const { graceMs, unreadGraceMs } = LIMITS.indexing
      if (nowMs - sinceMs < (number > live ? unreadGraceMs : graceMs)) continue
      await generations.drop(number)
      this.#obsoleteSinceMs.delete(number)
    }
    if (nowMs < this.#purgedMs + LIMITS.indexing.purgeEveryMs) return
    // What is left goes on with the next look: other things are looked after in between.
    if (await this.#purge(new Set([live, next]))) this.#purgedMs = nowMs
  }

  /** True: everything that is old enough is gone. */
  async #purge(numbers: Iterable<number>): Promise<boolean> {
    const { engine, clock } = this.#options
    const { generations } = this.#laid
    const untilMs = clock.monotonicMs() + LIMITS.indexing.purgeMs
    for (const number of numbers) {
      for (const name of this.#known.get(number)?.properties.keys() ?? []) {
        const isDone = await purgeRemoved({
          engine,
          index: generations.indexOf(number, name),
          writeAlias: generations.writeAliasOf(number, name),
          nowMs: clock.nowMs(),
          mayGoOn: () => clock.monotonicMs() < untilMs && !this.#stopped,
        })
        if (!isDone) return false
      }
    }
    return true
  }
}
