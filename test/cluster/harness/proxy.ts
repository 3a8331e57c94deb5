// A TCP proxy between one member and one engine, through which faults of the network are made: cut,
// one-way, half-open, slow, a request that arrives late, an answer that is never heard. The driver
// knows only its address. Source: PROTOCOL 4.2 (F13-F17).
//
// Bytes that a cut holds back are not lost: they arrive when it is healed, as those that TCP sends
// again do. `break` is what loses them.

import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'

/** Requests go from the member to the engine, answers the other way. */
export type Side = 'requests' | 'answers'

export interface Address {
  readonly host: string
  readonly port: number
}

/** Cuts the bytes of one side into units that faults pick from; what is left waits for more. */
export type Splitter = (bytes: Buffer) => { readonly units: Buffer[]; readonly rest: Buffer }

/** Picks the units that a fault is about. `pair` is the same for both sides of a connection. */
export type Pick = (unit: Buffer, side: Side, pair: object) => boolean

/** A side that holds more than this is no longer read, as with a full TCP window. */
const HELD_BYTES_MAX = 16 * 1024 * 1024

const whole: Splitter = (bytes) => ({ units: [bytes], rest: Buffer.alloc(0) })

export class Proxy {
  port = 0
  readonly #to: () => Address
  readonly #split: Splitter
  readonly #server: Server
  readonly #pairs = new Set<Pair>()
  readonly #rules: { readonly [S in Side]: Rule } = { requests: new Rule(), answers: new Rule() }
  #refuses = false

  /** `to` is asked at each connection: an engine may come back on another port. */
  constructor(to: () => Address, split: Splitter = whole) {
    this.#to = to
    this.#split = split
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (member) => {
      if (this.#refuses) {
        member.resetAndDestroy()
        return
      }
      const pair: Pair = new Pair(member, this.#to(), {
        split: this.#split,
        rules: this.#rules,
        onEnd: () => this.#pairs.delete(pair),
      })
      this.#pairs.add(pair)
    })
  }

  get connections(): number {
    return this.#pairs.size
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(0, '127.0.0.1', resolve)
    })
    this.port = (this.#server.address() as AddressInfo).port
    return this
  }

  /** From now on the bytes of that side, or of that side that `pick` picks, are held back. */
  hold(side: Side, pick: Pick = () => true): void {
    this.#rules[side].pick = pick
  }

  /** Bytes of that side arrive so much later. */
  delay(side: Side, ms: number): void {
    this.#rules[side].delayMs = ms
  }

  /** Nothing passes, either way, and nobody is told; also on connections that are made now. */
  cut(): void {
    this.hold('requests')
    this.hold('answers')
  }

  /** Connections are reset, what was held on them is lost, and new ones are refused. */
  refuse(): void {
    this.#refuses = true
    this.break()
  }

  /** Connections are reset, what was held on them is lost; new ones are made. */
  break(): void {
    for (const pair of this.#pairs) pair.reset()
  }

  /** All passes again; what was held back is delivered. */
  heal(): void {
    this.#refuses = false
    for (const rule of Object.values(this.#rules)) rule.clear()
    for (const pair of this.#pairs) pair.release()
  }

  async close(): Promise<void> {
    this.break()
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()))
  }
}

/** What happens to the bytes of one side. */
class Rule {
  pick: Pick | null = null
  delayMs = 0

  clear(): void {
    this.pick = null
    this.delayMs = 0
  }
}

interface PairOptions {
  readonly split: Splitter
  readonly rules: { readonly [S in Side]: Rule }
  readonly onEnd: () => void
}

/** One connection of the member, and the one to the engine that belongs to it. */
class Pair {
  readonly #member: Socket
  readonly #engine: Socket
  readonly #flows: readonly Flow[]
  readonly #onEnd: () => void
  #ended = false

  constructor(member: Socket, to: Address, { split, rules, onEnd }: PairOptions) {
    this.#member = member
    this.#onEnd = onEnd
    this.#engine = connect({ ...to, allowHalfOpen: true, noDelay: true })
    const flow = (side: Side, from: Socket, into: Socket): Flow =>
      new Flow({ side, from, into, split, rule: rules[side], pair: this })
    this.#flows = [flow('requests', member, this.#engine), flow('answers', this.#engine, member)]
    // A member that is gone leaves what it has sent: it still arrives at the engine.
    member.on('error', () => this.#flows[0]!.finish())
    member.on('close', () => this.#flows[0]!.finish())
    this.#engine.on('error', () => this.reset())
    this.#engine.on('close', () => this.#end())
  }

  release(): void {
    for (const flow of this.#flows) flow.release()
  }

  reset(): void {
    breakOff(this.#member)
    breakOff(this.#engine)
    this.#end()
  }

  #end(): void {
    if (this.#ended) return
    this.#ended = true
    for (const flow of this.#flows) flow.stop()
    // What the engine has said before it closed is still on its way, unless it is held.
    if (!this.#member.destroyed) this.#member.end()
    this.#onEnd()
  }
}

/**
 * Resets a connection. Not one that is being shut down: Node waits for the end of that for ever and
 * the process can't exit.
 */
function breakOff(socket: Socket): void {
  if (socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}

interface FlowOptions {
  readonly side: Side
  readonly from: Socket
  readonly into: Socket
  readonly split: Splitter
  readonly rule: Rule
  readonly pair: object
}

/** The bytes of one side of one connection. */
class Flow {
  readonly #o: FlowOptions
  #rest: Buffer = Buffer.alloc(0)
  #held: Buffer[] = []
  #heldBytes = 0
  /** Delayed bytes leave in their order. */
  #line: { readonly bytes: Buffer; readonly dueMs: number }[] = []
  #timer: NodeJS.Timeout | null = null
  #finishing = false

  constructor(options: FlowOptions) {
    this.#o = options
    const { from, into } = options
    from.on('data', (bytes: Buffer) => this.#take(bytes))
    from.on('end', () => this.finish())
    into.on('drain', () => this.#resume())
  }

  #take(bytes: Buffer): void {
    const { split, rule, side, pair, from } = this.#o
    const { units, rest } = split(
      this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]),
    )
    this.#rest = rest
    for (const unit of units) {
      if (rule.pick?.(unit, side, pair)) this.#hold(unit)
      else this.#pass(unit)
    }
    if (this.#heldBytes > HELD_BYTES_MAX) from.pause()
  }

  #hold(unit: Buffer): void {
    this.#held.push(unit)
    this.#heldBytes += unit.length
  }

  #pass(bytes: Buffer): void {
    const { rule } = this.#o
    if (rule.delayMs === 0 && this.#line.length === 0) this.#write(bytes)
    else {
      this.#line.push({ bytes, dueMs: performance.now() + rule.delayMs })
      this.#timer ??= setTimeout(() => this.#due(), rule.delayMs)
    }
  }

  #due(): void {
    this.#timer = null
    const nowMs = performance.now()
    while (this.#line.length > 0 && this.#line[0]!.dueMs <= nowMs + 1) {
      this.#write(this.#line.shift()!.bytes)
    }
    if (this.#line.length > 0) {
      this.#timer = setTimeout(() => this.#due(), this.#line[0]!.dueMs - nowMs)
    } else if (this.#finishing) this.finish()
  }

  #write(bytes: Buffer): void {
    const { from, into } = this.#o
    if (into.destroyed || into.writableEnded) return
    if (!into.write(bytes)) from.pause()
  }

  #resume(): void {
    if (this.#heldBytes <= HELD_BYTES_MAX) this.#o.from.resume()
  }

  /** What was held or delayed goes now. */
  release(): void {
    const late = this.#line.map(({ bytes }) => bytes)
    this.#line = []
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    for (const bytes of [...late, ...this.#held]) this.#write(bytes)
    this.#held = []
    this.#heldBytes = 0
    this.#resume()
    if (this.#finishing) this.finish()
  }

  /** The sender is done: so is the receiver, once it has everything. */
  finish(): void {
    this.#finishing = true
    const { into } = this.#o
    if (this.#held.length > 0 || this.#line.length > 0) return
    if (!into.destroyed && !into.writableEnded) into.end(this.#rest)
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#line = []
    this.#held = []
  }
}
