// The wire over Redis Streams: one inbox stream per incarnation, read by it alone; what a member
// has for another in one tick goes as one entry. Redis keeps nothing that may not be lost: the edge
// owns its request and sends it again. What a member has for itself is a call. Source: PROTOCOL 3.6
// "Wire".

import { LIMITS } from '../../config/limits.ts'
import { errorItem } from '../../protocol/errors.ts'
import type { Log } from '../../protocol/log.ts'
import type { WireReply } from '../../protocol/message.ts'
import type { Clock } from '../clock.ts'
import { memoryWire } from '../memory/wire.ts'
import type { Inbox, Notice, Parcel, Wire } from '../wire.ts'
import { Connection, isRefusal, isWrongServer } from './connection.ts'
import type { RedisAddress } from './connection.ts'
import { Copies } from './copies.ts'
import { entryFields, formatOf, isEmptyEntry, packItem, readEntry, WIRE_FORMAT } from './entry.ts'
import type { Item, ReadEntry } from './entry.ts'
import { InboxReader } from './inbox-reader.ts'
import { Seal } from './seal.ts'

export interface RedisWireOptions extends RedisAddress {
  readonly clock: Clock
  /** StoreIdentity.secret: what members send each other is sealed with it. */
  readonly secret: string
  readonly log: Log
  /** Put before the names of all streams. */
  readonly prefix?: string
  /** Redis is back, or has lost a stream: what was on its way may not have arrived. */
  readonly onReconnect?: () => void
}

/** Counts since the start, for /metrics. */
export interface WireFigures {
  /** Entries of streams written. */
  readonly entries: number
  readonly parcels: number
  readonly replies: number
  /** Copies that certainly have not left. */
  readonly unsent: number
  /** Answers and hints that were dropped because Redis was away or behind. */
  readonly dropped: number
  /** Times that a connection or a stream was lost. */
  readonly losses: number
  /** Copies on their way at the moment. */
  readonly unanswered: number
  /** Bytes handed to Redis that it hasn't taken yet. */
  readonly backlogBytes: number
}

export interface RedisWire extends Wire {
  readonly figures: WireFigures
  /** Closes the inboxes served here, and the connections. */
  stop(): Promise<void>
}

export function redisWire(options: RedisWireOptions): RedisWire {
  return new StreamWire(options)
}

type Respond = (reply: WireReply) => void

/** What goes to one member with this tick. */
interface Outgoing {
  readonly from: string
  /** Of all of it: what an older member can't read shall not keep the rest from it. */
  readonly format: number
  readonly items: string[]
  readonly copies: number[]
  bytes: number
}

const TELL_EVERY_MS = 60_000
const STOP_MS = 1_000
const AWAY: WireReply = { outcome: 'unsent', away: true }
const UNSENT: WireReply = { outcome: 'unsent' }

class StreamWire implements RedisWire {
  readonly #options: RedisWireOptions
  readonly #redis: RedisAddress
  readonly #local: Wire
  readonly #readers = new Map<string, InboxReader>()
  readonly #inboxes = new Map<string, Inbox>()
  readonly #writer: Connection
  readonly #copies: Copies
  readonly #seal: Seal
  readonly #counts = { entries: 0, parcels: 0, replies: 0, unsent: 0, dropped: 0, losses: 0 }
  #outgoing = new Map<string, Outgoing>()
  #isFlushDue = false
  /** Bytes given to ioredis and not answered by Redis, and those of this tick. */
  #backlogBytes = 0
  #lost = false
  #toldMs = -Infinity
  readonly #onUp: (() => void)[] = []

  constructor(options: RedisWireOptions) {
    this.#options = options
    const { urls, credentials = null, tls = null, clock, log, secret } = options
    this.#redis = { urls, credentials, tls }
    this.#seal = new Seal({ secret, nowMs: () => clock.nowMs() })
    this.#copies = new Copies(clock)
    this.#local = memoryWire((run) => clock.defer(run))
    this.#writer = new Connection({
      ...this.#redis,
      name: 'kontor',
      clock,
      log,
      onUp: () => this.#checkUp(),
      onDown: () => this.#noteLoss(),
    })
    this.#writer.start()
  }

  get isUp(): boolean {
    return this.#writer.client !== null && [...this.#readers.values()].every(({ isUp }) => isUp)
  }

  get figures(): WireFigures {
    return { ...this.#counts, unanswered: this.#copies.size, backlogBytes: this.#backlogBytes }
  }

  // --- inboxes ----------------------------------------------------------------------------

  /** Resolves once the inbox is there; with Redis away after a second, to go on trying. */
  async serve(incarnation: string, inbox: Inbox): Promise<void> {
    const { clock, log } = this.#options
    await this.#local.serve(incarnation, inbox)
    this.#inboxes.set(incarnation, inbox)
    const reader = new InboxReader({
      key: this.#key(incarnation),
      ...this.#redis,
      clock,
      log,
      take: (fields, ageMs) => this.#open(incarnation, fields, ageMs),
      onUp: () => this.#checkUp(),
      onDown: () => this.#noteLoss(),
    })
    this.#readers.set(incarnation, reader)
    reader.start()
    await this.#upOrLate()
    if (!this.isUp) log.warn({}, 'this member starts without Redis and goes on trying')
  }

  close(incarnation: string): void {
    this.#local.close(incarnation)
    this.#inboxes.delete(incarnation)
    this.#readers.get(incarnation)?.stop()
    this.#readers.delete(incarnation)
    this.#backlogBytes -= this.#outgoing.get(incarnation)?.bytes ?? 0
    this.#outgoing.delete(incarnation)
    this.#copies.forgetAllTo(incarnation)
    this.#writer.client?.unlink(this.#key(incarnation)).catch(() => undefined)
  }

  async stop(): Promise<void> {
    for (const incarnation of [...this.#readers.keys()]) this.close(incarnation)
    const { client } = this.#writer
    const quit = client?.quit().catch(() => undefined)
    await this.#inTime((done) => void Promise.resolve(quit).finally(done))
    this.#writer.stop()
  }

  #upOrLate(): Promise<void> {
    return this.#inTime((done) => {
      if (this.isUp) done()
      else this.#onUp.push(done)
    }, LIMITS.redis.serveMs)
  }

  #inTime(begin: (done: () => void) => void, ms = STOP_MS): Promise<void> {
    return new Promise((resolve) => {
      const callOff = this.#options.clock.after(ms, resolve)
      begin(() => {
        callOff()
        resolve()
      })
    })
  }

  #key(incarnation: string): string {
    return `${this.#options.prefix ?? ''}in:${incarnation}`
  }

  #noteLoss(): void {
    this.#counts.losses++
    this.#lost = true
  }

  #checkUp(): void {
    if (!this.isUp) return
    for (const done of this.#onUp.splice(0)) done()
    if (!this.#lost) return
    this.#lost = false
    this.#options.log.info({}, 'Redis is back')
    this.#options.onReconnect?.()
  }

  // --- sending ----------------------------------------------------------------------------

  send(to: string, parcel: Parcel, respond: Respond): void {
    if (this.#inboxes.has(to)) {
      this.#local.send(to, parcel, respond)
      return
    }
    const { shard, epoch, from, envelope } = parcel
    const copy = this.#copies.next
    const text = packItem({ kind: 'parcel', copy, shard, epoch, envelope })
    const bytes = Buffer.byteLength(text)
    if (!this.#takesMore) {
      this.#unsent(respond, AWAY)
    } else if (!this.#copies.hasRoom(to, bytes)) {
      this.#unsent(respond, UNSENT)
    } else {
      this.#counts.parcels++
      this.#copies.add(to, bytes, envelope.budgetMs, respond)
      const outgoing = this.#push(to, from, text, formatOf(envelope))
      outgoing.copies.push(copy)
    }
  }

  tell(to: readonly string[], notice: Notice, from: string): void {
    let text: string | null = null
    for (const one of to) {
      if (this.#inboxes.has(one)) this.#local.tell([one], notice, from)
      else if (this.#takesMore) {
        text ??= packItem({ kind: 'notice', notice })
        this.#push(one, from, text)
      } else this.#counts.dropped++
    }
  }

  #reply(to: string, from: string, copy: number, reply: WireReply): void {
    if (!this.#takesMore) {
      this.#counts.dropped++
      return
    }
    this.#counts.replies++
    const text = packItem({ kind: 'reply', copy, reply })
    this.#push(to, from, text)
  }

  get #takesMore(): boolean {
    return this.#writer.client !== null && this.#backlogBytes < LIMITS.redis.backlogBytesMax
  }

  #unsent(respond: Respond, reply: WireReply): void {
    this.#counts.unsent++
    // Never inside the call that sends: the edge isn't done with it.
    this.#options.clock.defer(() => respond(reply))
  }

  #push(to: string, from: string, text: string, format = 1): Outgoing {
    const bytes = Buffer.byteLength(text)
    let outgoing = this.#outgoing.get(to)
    if (outgoing && (outgoing.from !== from || outgoing.format !== format)) {
      this.#write(to, outgoing)
      outgoing = undefined
    }
    if (!outgoing) {
      outgoing = { from, format, items: [], copies: [], bytes: 0 }
      this.#outgoing.set(to, outgoing)
    }
    outgoing.items.push(text)
    outgoing.bytes += bytes
    this.#backlogBytes += bytes
    if (!this.#isFlushDue) {
      this.#isFlushDue = true
      this.#options.clock.defer(() => this.#flush())
    }
    return outgoing
  }

  #flush(): void {
    this.#isFlushDue = false
    const all = this.#outgoing
    this.#outgoing = new Map()
    for (const [to, outgoing] of all) this.#write(to, outgoing)
  }

  #write(to: string, { from, format, items, copies, bytes }: Outgoing): void {
    const { client } = this.#writer
    if (client === null) {
      this.#backlogBytes -= bytes
      this.#answerAll(copies, AWAY)
      return
    }
    this.#counts.entries++
    const key = this.#key(to)
    const fields = this.#seal.close(key, entryFields(from, copies, items, format))
    client.xadd(key, 'NOMKSTREAM', '*', ...fields).then(
      (id) => {
        this.#backlogBytes -= bytes
        if (id === null) this.#answerAll(copies, UNSENT)
      },
      (error: Error) => {
        this.#backlogBytes -= bytes
        // Without an answer it counts as sent: the copies stay open.
        if (!isRefusal(error)) return
        this.#answerAll(copies, AWAY)
        this.#refused(error)
      },
    )
  }

  #answerAll(copies: readonly number[], reply: WireReply): void {
    this.#counts.unsent += copies.length
    for (const copy of copies) this.#copies.answer(copy, reply)
  }

  #refused(error: Error): void {
    if (isWrongServer(error)) this.#writer.drop()
    this.#tellOnce({ err: error }, 'Redis refuses messages')
  }

  /** What many entries would say is said once a minute. */
  #tellOnce(fields: object, text: string): void {
    const nowMs = this.#options.clock.monotonicMs()
    if (nowMs - this.#toldMs < TELL_EVERY_MS) return
    this.#toldMs = nowMs
    this.#options.log.error(fields, text)
  }

  // --- taking -----------------------------------------------------------------------------

  /** What no member of this store has written is not looked into. */
  #open(mine: string, fields: readonly string[], ageMs: number): void {
    if (isEmptyEntry(fields)) return
    const why = this.#seal.fault(this.#key(mine), fields)
    if (why === null) this.#take(mine, readEntry(fields), ageMs)
    else this.#tellOnce({ why }, 'an entry of an inbox is not taken')
  }

  #take(mine: string, entry: ReadEntry, ageMs: number): void {
    switch (entry.state) {
      case 'empty':
        return
      case 'broken':
        this.#tellOnce({ why: entry.why }, 'an entry of an inbox can not be read')
        return
      case 'newer':
        this.#refuseNewer(mine, entry)
        return
      case 'read':
        for (const item of entry.items) {
          try {
            this.#takeItem(mine, entry.from, item, ageMs)
          } catch (error) {
            this.#options.log.error(
              { err: error, from: entry.from },
              'a message of another member could not be taken',
            )
          }
        }
    }
  }

  #takeItem(mine: string, from: string, item: Item, ageMs: number): void {
    switch (item.kind) {
      case 'reply':
        this.#copies.answer(item.copy, item.reply)
        return
      case 'notice':
        this.#inboxes.get(mine)?.hear(item.notice, from)
        return
      case 'parcel': {
        const { copy, shard, epoch } = item
        const budgetMs = Math.max(0, item.envelope.budgetMs - ageMs)
        const parcel = { shard, epoch, from, envelope: { ...item.envelope, budgetMs } }
        const respond = (reply: WireReply): void => this.#reply(from, mine, copy, reply)
        this.#inboxes.get(mine)?.receive(parcel, respond)
      }
    }
  }

  /** The program is being upgraded member by member: its newest words aren't known here yet. */
  #refuseNewer(mine: string, entry: ReadEntry & { state: 'newer' }): void {
    const text =
      `this member reads messages of format ${WIRE_FORMAT}, and got one of format ` +
      `${entry.format}: it needs the newer version of Kontor; nothing was done`
    this.#tellOnce({ from: entry.from }, text)
    const reply: WireReply = { outcome: 'refused', error: errorItem('UNAVAILABLE', text) }
    for (const copy of entry.copies) this.#reply(entry.from, mine, copy, reply)
  }
}
