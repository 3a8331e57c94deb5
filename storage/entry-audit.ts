// What must hold of a shard's entries, one behind the other: the versions of an actor's records
// dense, its entries numbered, no message taken twice within its time, relayed messages in the
// order of their source. Pure. Source: PROTOCOL 3.6, 4.1 (K4).

import { LIMITS } from '../config/limits.ts'
import { isEnd, isErased, LOSS_JUMP, type EntryHead } from '../protocol/entry/entry.ts'

interface ActorPlace {
  n: number
  version: number
  /** Offset of the newest entry. */
  offset: number
  /** The newest entry with records: numbers behind it may be given out again. */
  recordedN: number
  /** Entries without bytes that had been met by then: each may have been its own. */
  erased: number
  readonly relays: Map<number, readonly [number, number, number]>
}

interface Taken {
  readonly offset: number
  /** The shard's clock when it ends. */
  readonly untilMs: number
}

/** Ids that are looked through at once for those whose time is over. */
const SWEEP_FROM = 100_000

export class EntryAudit {
  readonly #report: (what: string) => void
  readonly #actors = new Map<string, ActorPlace>()
  readonly #messages = new Map<string, Taken>()
  #sweepAt = SWEEP_FROM
  #clockMs = 0
  /** What is reported unless the actor's end follows. */
  readonly #doubts = new Map<string, string[]>()
  /** Entries met whose bytes were given back. */
  #erased = 0

  constructor(report: (what: string) => void) {
    this.#report = (what) => report(what)
  }

  /** The next entry of the log. The first that is seen of an actor may be any. */
  next(offset: number, entry: EntryHead): void {
    // What had its time says nothing any more, but may have had a number.
    if (isErased(entry)) return void this.#erased++
    if (entry.c < this.#clockMs) {
      this.#report(`offset ${offset}: the shard's clock falls from ${this.#clockMs} to ${entry.c}`)
    }
    this.#clockMs = Math.max(this.#clockMs, entry.c)
    this.#ofActor(offset, entry)
    // What is told to it from now on may come when all of it has gone.
    if (entry.f !== undefined) this.#actors.delete(entry.p)
  }

  #ofActor(offset: number, entry: EntryHead): void {
    // An entry of a key alone belongs to no actor.
    if (entry.n === 0) return
    this.#message(offset, entry)
    const place = `offset ${offset}: actor ${entry.p}`
    const before = this.#actors.get(entry.p)
    const changes = entry.r.length > 0
    if (before === undefined) {
      const recordedN = changes ? entry.n : 0
      const version = entry.v + entry.r.length
      const erased = this.#erased
      const made = { n: entry.n, version, offset, recordedN, erased, relays: new Map() }
      this.#actors.set(entry.p, made)
      return this.#relay(place, entry, made)
    }
    // Rejections expire: an actor that was put to rest goes on behind what is left of it.
    const most = before.n + 1 + this.#erased - before.erased
    const isNumbered = entry.n <= most && entry.n > before.recordedN
    if (!isNumbered && entry.n !== before.n + 1 + LOSS_JUMP) {
      this.#report(`${place}: entry ${entry.n} behind ${before.n}`)
    }
    const isNext = entry.v === before.version || entry.v === before.version + LOSS_JUMP
    // What a rejection says of the version is believed by nobody.
    if (isEnd(entry)) this.#doubts.delete(entry.p)
    else if (!isNext && changes) {
      const what =
        `${place}: goes on from version ${entry.v}, it was at ${before.version} at offset ` +
        `${before.offset}` +
        (entry.v < before.version ? ': acknowledged changes have been left out' : '')
      if (this.#erased > before.erased) this.#doubt(entry.p, what)
      else this.#report(what)
    }
    before.n = entry.n
    before.erased = this.#erased
    before.offset = offset
    if (changes) before.recordedN = entry.n
    if (changes || isNext) before.version = entry.v + entry.r.length
    this.#relay(place, entry, before)
  }

  /** Reports what only an actor's end would have explained. */
  end(): void {
    for (const whats of this.#doubts.values()) for (const what of whats) this.#report(what)
    this.#doubts.clear()
  }

  /** Of an actor that is forgotten, as shows further on, entries go in any order but the last. */
  #doubt(actorId: string, what: string): void {
    const known = this.#doubts.get(actorId)
    if (known) known.push(what)
    else this.#doubts.set(actorId, [what])
  }

  #message(offset: number, { p, m, l, c }: EntryHead): void {
    const id = `${p}/${m}`
    const there = this.#messages.get(id)
    if (there !== undefined && c < there.untilMs) {
      this.#report(
        `offset ${offset}: actor ${p}: message ${m} was taken at ${there.offset} already`,
      )
    }
    this.#messages.set(id, {
      offset,
      untilMs: c + (l === 1 ? LIMITS.storage.callerMarkMs : LIMITS.storage.edgeMarkMs),
    })
    if (this.#messages.size < this.#sweepAt) return
    for (const [old, { untilMs }] of this.#messages) if (untilMs <= c) this.#messages.delete(old)
    this.#sweepAt = Math.max(SWEEP_FROM, 2 * this.#messages.size)
  }

  #relay(place: string, { s }: EntryHead, { relays }: ActorPlace): void {
    if (s === undefined) return
    const [shard, offset, index, message = 0] = s
    const [lastOffset, lastIndex, lastMessage] = relays.get(shard) ?? [0, -1, 0]
    const isSame = offset === lastOffset && index === lastIndex
    const isOlder = offset < lastOffset || (offset === lastOffset && index < lastIndex)
    if (isOlder || (isSame && message <= lastMessage)) {
      this.#report(`${place}: what shard ${shard} relayed from offset ${offset} came twice`)
    }
    relays.set(shard, [offset, index, message])
  }
}
