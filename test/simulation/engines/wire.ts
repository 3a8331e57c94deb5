// The simulated Redis: a stream of entries for each incarnation, written by many, read by one. It
// loses entries, brings old ones back, forgets whole streams, is full or away; its reader skips
// what it has already taken, as every driver does. Source: PROTOCOL 3.6 "Wire", F8-F12.

import { LIMITS } from '../../../config/limits.ts'
import type { WireReply } from '../../../protocol/message.ts'
import type { Inbox, Notice, Parcel, Wire } from '../../../cluster/wire.ts'
import type { Cut } from './engine.ts'
import type { Nastiness } from '../nastiness.ts'
import type { Process, Scheduler } from '../scheduler/scheduler.ts'

type Respond = (reply: WireReply) => void

interface StreamEntry {
  readonly id: number
  readonly atMs: number
  readonly text: string
  readonly take: (by: Stream, ageMs: number) => void
}

interface Stream {
  readonly reader: Process
  readonly inbox: Inbox
  /** In Redis and not taken over by the reader. */
  waiting: StreamEntry[]
  /** Taken over lately: what a replica that has become the master may still hold. */
  taken: StreamEntry[]
  readonly takenIds: Set<number>
}

const HOP_MS = { from: 0.2, to: 2 }

export class Redis {
  readonly scheduler: Scheduler
  nastiness: Nastiness
  away = false
  readonly #streams = new Map<string, Stream>()
  /** Streams that were forgotten and not yet made again by their readers. */
  readonly #lost = new Map<string, Stream>()
  readonly #cuts = new Map<Process, Cut & { readonly sinceMs: number }>()
  readonly #copies = new Map<string, number>()
  #entries = 0

  constructor(scheduler: Scheduler, nastiness: Nastiness) {
    this.scheduler = scheduler
    this.nastiness = nastiness
  }

  cut(process: Process, cut: Cut): void {
    this.#cuts.set(process, { ...cut, sinceMs: this.scheduler.nowMs })
  }

  heal(process: Process): void {
    this.#cuts.delete(process)
  }

  /** FLUSHALL: every stream is gone; each reader notices within a second and makes it again. */
  flush(): void {
    for (const [incarnation, stream] of this.#streams) this.#lose(incarnation, stream)
  }

  /** Nobody has prolonged a stream for longer than its time: it is gone with what is in it. */
  expire(passedMs: number): void {
    if (passedMs > LIMITS.redis.streamMs) this.flush()
  }

  /** The last entries are lost, and some that were read long ago are there again. */
  failOver(): void {
    for (const stream of this.#streams.values()) {
      stream.waiting = []
      const back = stream.taken.filter(() => this.scheduler.chance() < 0.3)
      for (const entry of back) this.#deliver(stream, entry)
    }
  }

  /** Copies of a request that were sent, by its trace. */
  copiesOf(trace: string): number {
    return this.#copies.get(trace) ?? 0
  }

  sends({ envelope }: Parcel): void {
    this.#copies.set(envelope.trace, this.copiesOf(envelope.trace) + 1)
  }

  /** Streams that a process reads, or would if they were there. */
  inboxesOf(process: Process): number {
    const all = [...this.#streams.values(), ...this.#lost.values()]
    return all.filter(({ reader }) => reader === process).length
  }

  /** Every reader has its stream. */
  get isWhole(): boolean {
    return this.#lost.size === 0
  }

  /** Entries that nobody has taken over, in the streams of processes that run. */
  get unread(): number {
    let count = 0
    for (const { reader, waiting } of this.#streams.values()) {
      if (reader.state !== 'dead') count += waiting.length
    }
    return count
  }

  #lose(incarnation: string, stream: Stream): void {
    this.#streams.delete(incarnation)
    this.#lost.set(incarnation, stream)
    stream.waiting = []
    this.#makeAgain(incarnation, stream)
  }

  #makeAgain(incarnation: string, stream: Stream): void {
    this.scheduler.at(
      this.scheduler.between(1, 1_000),
      'makes its stream again',
      () => {
        if (this.#lost.get(incarnation) !== stream) return
        if (!this.reaches(stream.reader)) return this.#makeAgain(incarnation, stream)
        this.#lost.delete(incarnation)
        this.#streams.set(incarnation, stream)
      },
      stream.reader,
    )
  }

  reaches(process: Process): boolean {
    return !this.away && this.#cuts.get(process)?.out !== true
  }

  has(incarnation: string): boolean {
    return this.#streams.has(incarnation)
  }

  hears(process: Process): boolean {
    return !this.away && this.#cuts.get(process)?.back !== true
  }

  serve(incarnation: string, reader: Process, inbox: Inbox): void {
    const stream = { reader, inbox, waiting: [], taken: [], takenIds: new Set<number>() }
    this.#streams.set(incarnation, stream)
  }

  /** Unlinked: what lies in it unread is gone with it. */
  close(incarnation: string): void {
    const stream = this.#streams.get(incarnation)
    if (stream) stream.waiting = []
    this.#streams.delete(incarnation)
    this.#lost.delete(incarnation)
  }

  /** XADD NOMKSTREAM. `nil` when there is no stream; neither is called when nobody says. */
  add(
    from: Process,
    to: string,
    what: Pick<StreamEntry, 'text' | 'take'> & { readonly nil: (isAway: boolean) => void },
  ): void {
    const { scheduler, nastiness } = this
    if (!this.reaches(from)) {
      // A connection that is known to be down, or one of which nobody knows yet.
      const { sinceMs = Infinity } = this.#cuts.get(from) ?? {}
      const isKnown = scheduler.nowMs - sinceMs >= LIMITS.redis.silentMs
      if (isKnown || scheduler.chance() < 0.7)
        scheduler.at(0.1, 'wire is down', () => what.nil(true), from)
      return
    }
    if (scheduler.chance() < nastiness.dropped) return
    scheduler.at(this.#hopMs(), `xadd ${to.slice(-6)} ${what.text}`, () => {
      const stream = this.#streams.get(to)
      if (this.away) return
      if (!stream) {
        if (this.hears(from)) scheduler.at(this.#hopMs(), 'nil', () => what.nil(false), from)
        return
      }
      const { text, take } = what
      this.#deliver(stream, { id: ++this.#entries, atMs: scheduler.nowMs, text, take })
    })
  }

  #hopMs(): number {
    const { scheduler, nastiness } = this
    const isDelayed = scheduler.chance() < nastiness.delayed
    return isDelayed ? scheduler.between(1, 1_500) : scheduler.between(HOP_MS.from, HOP_MS.to)
  }

  #deliver(stream: Stream, entry: StreamEntry): void {
    stream.waiting.push(entry)
    const { reader } = stream
    this.scheduler.at(
      this.#hopMs(),
      `takes ${entry.text}`,
      () => {
        if (!stream.waiting.includes(entry)) return
        if (!this.hears(reader)) {
          this.#deliverLater(stream, entry)
          return
        }
        stream.waiting = stream.waiting.filter((one) => one !== entry)
        if (stream.takenIds.has(entry.id)) return
        stream.takenIds.add(entry.id)
        stream.taken.push(entry)
        if (stream.taken.length > 200) stream.taken.shift()
        const ageMs = this.scheduler.nowMs - entry.atMs
        if (ageMs <= LIMITS.redis.entryAgeMs) entry.take(stream, ageMs)
      },
      reader,
    )
  }

  #deliverLater(stream: Stream, entry: StreamEntry): void {
    stream.waiting = stream.waiting.filter((one) => one !== entry)
    this.scheduler.at(
      this.scheduler.between(50, 300),
      'reads again',
      () => this.#deliver(stream, entry),
      stream.reader,
    )
  }
}

/** Copies that wait for their answer, by number. */
function openCopies() {
  const waiting = new Map<number, Respond>()
  let copies = 0
  return {
    add(respond: Respond): number {
      waiting.set(++copies, respond)
      return copies
    },
    answer(copy: number, reply: WireReply): void {
      const respond = waiting.get(copy)
      waiting.delete(copy)
      respond?.(reply)
    },
  }
}

/** The wire of one process. */
export function redisTwin(redis: Redis, process: Process): Wire {
  const { scheduler } = redis
  const mine = new Map<string, Inbox>()
  const { add, answer } = openCopies()
  return {
    get isUp() {
      const served = [...mine.keys()].every((incarnation) => redis.has(incarnation))
      return redis.reaches(process) && redis.hears(process) && served
    },
    async serve(incarnation, inbox) {
      mine.set(incarnation, inbox)
      await new Promise<void>((resolve) => {
        scheduler.at(scheduler.between(0.5, 5), 'serves', resolve, process)
      })
      redis.serve(incarnation, process, inbox)
    },
    send(to, parcel, respond) {
      redis.sends(parcel)
      const own = mine.get(to)
      if (own) {
        let once: Respond | null = respond
        process.clock.defer(() =>
          own.receive(parcel, (reply) => {
            const tell = once
            once = null
            tell?.(reply)
          }),
        )
        return
      }
      const copy = add(respond)
      const text = `parcel ${parcel.envelope.trace} copy ${parcel.envelope.copy}`
      const bytes = JSON.stringify(parcel)
      redis.add(process, to, {
        text,
        nil: (isAway) =>
          answer(copy, isAway ? { outcome: 'unsent', away: true } : { outcome: 'unsent' }),
        take: ({ inbox, reader }, ageMs) => {
          inbox.receive(aged(JSON.parse(bytes) as Parcel, ageMs), (reply) => {
            const answered = JSON.stringify(reply)
            redis.add(reader, parcel.from, {
              text: `answer ${parcel.envelope.trace}`,
              nil: () => undefined,
              take: () => answer(copy, JSON.parse(answered) as WireReply),
            })
          })
        },
      })
    },
    tell(to, notice, from) {
      for (const one of to) {
        const times = scheduler.chance() < redis.nastiness.doubled ? 2 : 1
        for (let i = 0; i < times; i++) {
          const take = (by: Pick<Stream, 'inbox'>): void =>
            by.inbox.hear(JSON.parse(JSON.stringify(notice)) as Notice, from)
          const own = mine.get(one)
          if (own) process.clock.defer(() => take({ inbox: own }))
          else redis.add(process, one, { text: `notice ${notice.kind}`, nil: nothing, take })
        }
      }
    },
    close(incarnation) {
      mine.delete(incarnation)
      redis.close(incarnation)
    },
  }
}

function nothing(): void {}

/** Budgets are remaining time: what an entry has waited is taken off. */
function aged(parcel: Parcel, ageMs: number): Parcel {
  const budgetMs = Math.max(0, parcel.envelope.budgetMs - ageMs)
  return { ...parcel, envelope: { ...parcel.envelope, budgetMs } }
}
