// Bulk: many lines of messages to many actors in one request. Lines to one actor take effect in
// line order, others run side by side, answers leave in line order. Everything in between is
// bounded, so a client that reads slowly slows its own lines down. Source: CONTRACT 0 "Bulk".
//
// A line that finds its shard too busy (429) is sent again until its time is up, and fewer lines
// are kept under way for a while: bulk adapts instead of failing.
//
// The headers leave before the first line is done, so X-Consistency has no place there. Instead a
// line behind which none is under way carries the member `consistency`: a token that covers it and
// all lines before it. The last line always does, when anything was committed.

import type { ActorRequest, ActorSystem } from '../../cluster/actor-system.ts'
import type { World } from '../../cluster/clock.ts'
import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { Position } from '../../protocol/ids.ts'
import type { MessageResult, Reply } from '../../protocol/message.ts'
import type { Identity } from '../access/identity.ts'
import type { LineStream, OperationRequest } from '../http/operation.ts'
import {
  NEW,
  checkMessages,
  forbiddenOf,
  graphAcesFor,
  mergeResults,
  needsUuid,
  refusedResults,
  showsActor,
} from './actor-request.ts'
import type { ActorType } from './actor-type.ts'
import { answerParts } from './answer.ts'
import type { ActorAnswer } from './answer.ts'
import { failedLine, readLine } from './bulk-line.ts'
import type { BulkLine } from './bulk-line.ts'
import type { ForbiddenKeys } from './forbidden-keys.ts'
import { keepRefusal } from './refused-body.ts'

export interface BulkOptions {
  readonly actorSystem: ActorSystem
  readonly consistency: { encode(positions: readonly Position[]): string }
  readonly world: World
  readonly type: ActorType
  readonly request: OperationRequest
  readonly lines: LineStream
  /** Whether messages are only tried out. */
  readonly preview: boolean
  /** UUID of an actor by its number, for ACEs that name single actors. */
  readonly uuidOf: (
    type: ActorType,
    id: string,
    request: OperationRequest,
  ) => Promise<string | null>
  readonly forbidden: ForbiddenKeys
}

/** A line under way, in its place among the answers. */
interface Slot {
  readonly number: number
  /** Of the line, then of its answer. */
  bytes: number
  /** null while it is under way. */
  answer: string | null
  position: Position | null
}

/** How lines name their actor; a name of one way may mean the actor of a name of the other. */
type Naming = 'uuid' | 'number'

export class BulkRun {
  readonly #options: BulkOptions
  readonly #slots: Slot[] = []
  /** First slot whose answer has not been written. */
  #head = 0
  #bytes = 0
  /** Lines that may be under way now. */
  #window: number = LIMITS.actors.bulkLinesInFlightMax
  #shrunkAtMs = -Infinity
  /** Newest committed offset by shard. */
  readonly #positions = new Map<number, number>()
  /** The last line of each name, while it is under way. */
  readonly #lastOf = new Map<string, Promise<void>>()
  readonly #underWay: Record<Naming, number> = { uuid: 0, number: 0 }
  #writing = false
  #wake: (() => void) | null = null
  /** A mistake of ours: ends the run. */
  #fault: Error | null = null

  constructor(options: BulkOptions) {
    this.#options = options
  }

  /** Resolves when every line has been answered, or the caller has gone. */
  async run(): Promise<void> {
    for await (const { number, bytes } of this.#options.lines.lines) {
      while (!this.#hasRoom(bytes.length)) await this.#progress()
      const started = this.#start(number, bytes)
      if (started) await started
      if (this.#fault !== null) throw this.#fault
    }
    while (this.#head < this.#slots.length) {
      await this.#progress()
      if (this.#fault !== null) throw this.#fault
    }
  }

  #hasRoom(bytes: number): boolean {
    const lines = this.#slots.length - this.#head
    if (lines === 0 || this.#fault !== null) return true
    return lines < this.#window && this.#bytes + bytes <= LIMITS.actors.bulkBytesInFlightMax
  }

  #progress(): Promise<void> {
    return new Promise((wake) => {
      this.#wake = wake
    })
  }

  #woken(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }

  /** Begins a line; the promise is there when the next line has to wait for others first. */
  #start(number: number, bytes: Buffer | 'too-large'): Promise<void> | null {
    const slot: Slot = { number, bytes: bytes.length, answer: null, position: null }
    this.#slots.push(slot)
    this.#bytes += slot.bytes
    const read = readLine(this.#options.type, bytes)
    if (!read.ok) {
      this.#finish(slot, failedLine(number, read.id, read.error))
      return null
    }
    const { target } = read.line
    const naming = target.id === NEW ? null : target.uuid === null ? 'number' : 'uuid'
    const other = naming === 'uuid' ? 'number' : 'uuid'
    if (naming === null || this.#underWay[other] === 0) {
      this.#queue(slot, read.line, naming)
      return null
    }
    return this.#afterAll(other).then(() => this.#queue(slot, read.line, naming))
  }

  async #afterAll(naming: Naming): Promise<void> {
    while (this.#underWay[naming] > 0) await this.#progress()
  }

  /** Sends a line once the last ones of its names are done. */
  #queue(slot: Slot, line: BulkLine, naming: Naming | null): void {
    const { names } = line
    const before: Promise<void>[] = []
    for (const name of names) {
      const last = this.#lastOf.get(name)
      if (last) before.push(last)
    }
    if (naming !== null) this.#underWay[naming]++
    const sent =
      before.length === 0
        ? this.#send(slot, line)
        : Promise.all(before).then(() => this.#send(slot, line))
    const done = sent.then(() => {
      if (naming !== null) this.#underWay[naming]--
      for (const name of names) {
        if (this.#lastOf.get(name) === done) this.#lastOf.delete(name)
      }
      this.#woken()
    })
    for (const name of names) this.#lastOf.set(name, done)
  }

  async #send(slot: Slot, line: BulkLine): Promise<void> {
    try {
      this.#finish(slot, await this.#answerOf(slot, line))
    } catch (error) {
      if (error instanceof RequestError) {
        this.#finish(slot, failedLine(slot.number, line.id, error))
        return
      }
      this.#fault ??= asError(error)
      this.#woken()
    }
  }

  async #answerOf(slot: Slot, line: BulkLine): Promise<string> {
    const { type, request, lines, preview } = this.#options
    const { target, messages, idempotencyKey, bodyHash } = line
    // A stream may outlive its token.
    const known = lines.identityNow()
    const who = known instanceof Promise ? await known : known
    if (who instanceof RequestError) throw who
    const { acl, id: by } = who
    const isKeyed = idempotencyKey !== null && !preview
    if (line.fault !== null) throw isKeyed ? await this.#refusedBody(line, who) : line.fault
    const virtual = target.id === NEW
    let { uuid } = target
    if (uuid === null && !virtual && needsUuid(type, messages, acl)) {
      uuid = await this.#options.uuidOf(type, target.id, request)
    }
    const checked = checkMessages(type, messages, { acl, uuid, virtual, isKeyed })
    if (checked.send.length === 0) return this.#text(line, mergeResults(checked, []), null)
    const to = { type: type.behaviour.type, id: target.id }
    if (idempotencyKey !== null) {
      const keyed = { ...to, identity: by, idempotencyKey, bodyHash }
      this.#options.forbidden.take(keyed, forbiddenOf(type, checked))
    }
    const reply = await this.#ask({
      ...to,
      // Whom the number names may be another by now, to whom this caller may send nothing.
      id: uuid ?? target.id,
      messages: checked.send,
      ...(checked.refused ? { refused: checked.refused } : null),
      idempotencyKey,
      bodyHash,
      by,
      ...graphAcesFor(checked.send, acl),
      preview,
      budgetMs: LIMITS.sharding.requestBudgetMs,
      trace: request.requestId,
    })
    if (reply.outcome !== 'answered') {
      return this.#text(line, mergeResults(checked, refusedResults(reply, checked)), null)
    }
    slot.position = reply.position
    const results = mergeResults(checked, reply.results)
    return this.#text(line, results, showsActor(checked, results) ? reply : null)
  }

  #refusedBody(line: BulkLine, identity: Identity): Promise<RequestError> {
    const { target, idempotencyKey, bodyHash } = line
    const { type, request, forbidden } = this.#options
    return keepRefusal(
      {
        ...{ fault: line.fault!, type, target, identity, bodyHash },
        idempotencyKey: idempotencyKey!,
        budgetMs: LIMITS.sharding.requestBudgetMs,
        trace: request.requestId,
      },
      {
        ask: (asked) => this.#ask(asked),
        forbidden,
        uuidOf: () => this.#options.uuidOf(type, target.id, request),
      },
    )
  }

  #text(
    line: BulkLine,
    results: readonly MessageResult[],
    actor: Pick<ActorAnswer, 'actorId' | 'keys'> | null,
  ): string {
    const actorId = actor?.actorId ?? null
    const { type } = this.#options
    const answer = { actorId, keys: actor?.keys ?? [], results }
    const { members, errors } = answerParts(type, answer, '')
    const id = actorId !== null && results.some((result) => result.success) ? actorId : line.id
    return `{"id":${JSON.stringify(id)},${members}${errors === null ? '' : `,"errors":${errors}`}}`
  }

  /** Asks until the shard isn't too busy, or the line's time is up. */
  async #ask(request: ActorRequest): Promise<Reply> {
    const { actorSystem, world } = this.#options
    const deadline = world.clock.monotonicMs() + request.budgetMs
    let pauseMs: number = LIMITS.actors.bulkRetryMs
    let asked = request
    for (;;) {
      const reply = await actorSystem.ask(asked)
      if (reply.outcome !== 'refused' || reply.error.code !== 'TOO_BUSY') {
        if (this.#window < LIMITS.actors.bulkLinesInFlightMax) this.#window++
        return reply
      }
      this.#shrink()
      // Spread over half to the whole pause, so that the refused don't come back together.
      const byte = new Uint8Array(1)
      world.random(byte)
      const wait = pauseMs * (0.5 + byte[0]! / 512)
      const left = deadline - world.clock.monotonicMs() - wait
      if (left <= 0) return reply
      await new Promise<void>((resume) => void world.clock.after(wait, resume))
      pauseMs = Math.min(pauseMs * 2, LIMITS.actors.bulkRetryMsMax)
      asked = { ...request, budgetMs: left }
    }
  }

  /** Halves the window, once for all lines that were refused together. */
  #shrink(): void {
    const now = this.#options.world.clock.monotonicMs()
    if (now - this.#shrunkAtMs < LIMITS.actors.bulkRetryMs) return
    this.#shrunkAtMs = now
    this.#window = Math.max(LIMITS.actors.bulkLinesInFlightMin, this.#window >> 1)
  }

  #finish(slot: Slot, answer: string): void {
    this.#bytes += answer.length - slot.bytes
    slot.bytes = answer.length
    slot.answer = answer
    this.#flush()
  }

  /** Writes the answers that are next in order, as long as the client reads. */
  #flush(): void {
    const slots = this.#slots
    while (!this.#writing && this.#head < slots.length) {
      const slot = slots[this.#head]!
      if (slot.answer === null) break
      this.#head++
      this.#bytes -= slot.bytes
      const room = this.#options.lines.write(this.#withConsistency(slot, slot.answer))
      if (room) {
        this.#writing = true
        room.then(
          () => this.#written(),
          (error: unknown) => {
            this.#fault ??= asError(error)
            this.#written()
          },
        )
      }
    }
    if (this.#head === slots.length || this.#head >= LIMITS.actors.bulkLinesInFlightMax) {
      slots.splice(0, this.#head)
      this.#head = 0
    }
    this.#woken()
  }

  #written(): void {
    this.#writing = false
    this.#flush()
  }

  #withConsistency(slot: Slot, answer: string): string {
    const { position } = slot
    if (position !== null) {
      const known = this.#positions.get(position.shard) ?? 0
      this.#positions.set(position.shard, Math.max(known, position.offset))
    }
    if (this.#head < this.#slots.length || this.#positions.size === 0) return answer
    const positions = Array.from(this.#positions, ([shard, offset]) => ({ shard, offset }))
    const token = this.#options.consistency.encode(positions)
    return `${answer.slice(0, -1)},"consistency":"${token}"}`
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
