// The clients of a run: each makes one request after the other, over any member, and writes down
// what it comes to know. They repeat what they don't know, at once or later, over another member,
// under the same key; also what was rejected. Source: PROTOCOL 4.1, F30, F31, F34.

import { errorItem } from '../../../protocol/errors.ts'
import { uuidMaker } from '../../../protocol/ids.ts'
import type { MessageResult, Refusals, Reply } from '../../../protocol/message.ts'
import { FORBIDDEN } from '../checkers/sequential.ts'
import { Draws } from './draws.ts'
import { OperationHistory } from './operation-history.ts'
import type { Attempt, Operation } from './operation-history.ts'
import type { SimulatedMember, World } from '../world.ts'

export interface ClientsOptions {
  readonly clients: number
  readonly ledgers: number
  /** Mean of the pause between two requests of one client, milliseconds. */
  readonly pauseMs: number
  /** Natural keys that they choose from. */
  readonly numbers: number
  /** No more operations are begun than so many. */
  readonly operationsMax: number
}

/** A client gives its connection up after so long. */
const PATIENCE_MS = 20_000
const ATTEMPTS_MAX = 8
/** A key lives for a day of its shard's clock, which may be a quarter faster than the truth. */
const REPEATED_WITHIN_MS = 18 * 3_600_000

export class Clients {
  readonly history = new OperationHistory()
  readonly #world: World
  readonly #options: ClientsOptions
  /** UUIDs of ledgers that were opened, or that somebody tries to open. */
  readonly ledgers: string[] = []
  readonly #draws: Draws
  #stopped = false
  #isResting = false
  #sleeping: (() => void)[] = []
  #busy = 0

  constructor(world: World, options: ClientsOptions) {
    this.#world = world
    this.#options = options
    const makeUuid = uuidMaker((bytes) => {
      for (let i = 0; i < bytes.length; i++) bytes[i] = world.scheduler.pick(256)
    })
    for (let i = 0; i < options.ledgers; i++) {
      this.ledgers.push(makeUuid(Date.UTC(2026, 0, 1) + i, world.scheduler.pick(65_536)))
    }
    this.#draws = new Draws(world.scheduler, options, this)
  }

  start(): void {
    for (let i = 0; i < this.#options.clients; i++) void this.#live(`client-${i}`)
  }

  /** No request is begun until `goOn`; those under way are still repeated. */
  rest(): void {
    this.#isResting = true
  }

  goOn(): void {
    this.#isResting = false
    const sleeping = this.#sleeping
    this.#sleeping = []
    for (const wake of sleeping) this.#world.scheduler.at(0, 'client wakes', wake)
  }

  /** No request is begun any more; those under way are still repeated until they are known. */
  stop(): void {
    this.#stopped = true
  }

  get isStopped(): boolean {
    return this.#stopped
  }

  get idle(): boolean {
    return this.#busy === 0
  }

  async #live(client: string): Promise<void> {
    const { scheduler } = this.#world
    for (;;) {
      await this.wait(scheduler.between(1, this.#options.pauseMs * 3))
      if (this.#isResting) await new Promise<void>((wake) => this.#sleeping.push(wake))
      if (this.#stopped || this.history.operations.length >= this.#options.operationsMax) return
      this.#busy++
      const repeated = scheduler.chance() < 0.06 ? this.#anOldOne() : null
      if (repeated) await this.#send(repeated)
      else await this.#perform(this.#begin(client))
      this.#busy--
    }
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#world.scheduler.at(ms, 'client', resolve))
  }

  #begin(client: string): Operation {
    const { what, more } = this.#draws.next(client)
    return this.begin({ client, ...what }, more)
  }

  /** Something that was done under a key long ago: its answer must be the same again. */
  #anOldOne(): Operation | null {
    const { nowMs } = this.#world.scheduler
    const keyed = this.history.operations.filter(
      ({ key, outcome, invokedMs, results }) =>
        key !== null &&
        outcome === 'ok' &&
        nowMs - invokedMs < REPEATED_WITHIN_MS &&
        !results.some(isMismatch),
    )
    return keyed.length === 0 ? null : this.#world.scheduler.one(keyed)
  }

  async #perform(operation: Operation): Promise<void> {
    const { scheduler } = this.#world
    const { key } = operation
    const twin = key !== null && scheduler.chance() < 0.15 ? this.#send(operation) : null
    await this.#send(operation)
    const attempts = key === null ? 1 : ATTEMPTS_MAX
    for (let i = 1; i < attempts && operation.outcome !== 'ok'; i++) {
      // What is too large, or throws, is so each time.
      if (isHopeless(operation) && scheduler.chance() < 0.7) break
      // Some give up for good what they don't know, and whose key may be forgotten.
      if (scheduler.chance() < 0.1) break
      if (scheduler.nowMs - operation.invokedMs > REPEATED_WITHIN_MS) break
      await this.wait(scheduler.between(20, 1_500))
      await this.#send(operation)
    }
    await twin
    const to = this.#world.search !== null && scheduler.chance() < 0.3 ? this.#member() : null
    if (to !== null) await this.look(to, operation)
  }

  /** A look at what an operation has done, over any member. */
  async look(
    to: SimulatedMember,
    { client, actorId, position, outcome, type, preview }: Operation,
  ): Promise<void> {
    const isWrite = outcome === 'ok' && type === 'ledger' && !preview
    if (!isWrite || position === null || actorId === null || !to.isReady) return
    const { looks } = this.history
    const shown = await this.#world.look(to, actorId, position)
    // Who is told that the index is behind knows nothing.
    if (shown === undefined) return
    const look = { id: looks.length, client, ledgerId: actorId, position, shown }
    looks.push(look)
    this.#world.say(`${client} looks at ${actorId}: ${shown?.size} with ${shown?.tokens.join()}`)
  }

  /** One attempt over one member. */
  async #send(operation: Operation): Promise<void> {
    const to = this.#member()
    if (to === null) return
    const attempt: Attempt = { member: to.name, sentMs: this.#world.scheduler.nowMs, reply: null }
    operation.attempts.push(attempt)
    const reply = await this.#ask(to, operation, `${operation.id}.${operation.attempts.length}`)
    this.history.answered(operation, attempt, reply, this.#world.scheduler.nowMs)
    this.#sayOf(operation)
    if (operation.type === 'ledger' && operation.actorId !== null) this.#meet(operation.actorId)
  }

  #ask(
    to: SimulatedMember,
    operation: Operation,
    trace: string,
    budgetMs = 1_000 + this.#world.scheduler.pick(7_000),
  ): Promise<Reply | null> {
    const { type, address, messages, key, preview, client } = operation
    const { scheduler } = this.#world
    const request = this.#world.request(to, {
      type,
      id: address,
      messages,
      ...(key === null ? null : refusedOf(operation)),
      idempotencyKey: key,
      bodyHash: key === null ? '' : JSON.stringify(messages),
      by: client,
      preview,
      budgetMs,
      trace,
    })
    const patience = new Promise<null>((resolve) => {
      scheduler.at(Math.max(PATIENCE_MS, 2 * budgetMs), 'gives up', () => resolve(null))
    })
    return Promise.race([request, patience])
  }

  #sayOf({ client, id, outcome, why, results }: Operation): void {
    const answer = outcome === 'ok' ? JSON.stringify(results) : why
    this.#world.say(`${client} ${id} ${outcome} ${answer}`)
  }

  #member(): SimulatedMember | null {
    const all = [...this.#world.members.values()]
    const { scheduler } = this.#world
    const ready = all.filter(({ isReady }) => isReady)
    if (ready.length > 0 && scheduler.chance() < 0.95) return scheduler.one(ready)
    return all.length === 0 ? null : scheduler.one(all)
  }

  #meet(actorId: string): void {
    if (!this.ledgers.includes(actorId) && this.ledgers.length < this.#options.ledgers * 2) {
      this.ledgers.push(actorId)
    }
  }

  // --- what they ask for --------------------------------------------------------------------

  /** An operation of a client that is not one of the loop's: for the end of a run. */
  begin(
    what: Pick<Operation, 'type' | 'address' | 'messages'> & { readonly client: string },
    more: { readonly key?: string; readonly preview?: boolean } = {},
  ): Operation {
    const { key = null, preview = false } = more
    const invokedMs = this.#world.scheduler.nowMs
    const operation = this.history.begin({ ...what, key, preview, invokedMs })
    const text = what.messages.map(({ type, body }) => `${type} ${JSON.stringify(body)}`)
    const head = `${what.client} ${operation.id} asks ${what.type} ${what.address}`
    this.#world.say(`${head}: ${text.join('; ')}${key === null ? '' : ' keyed'}`)
    return operation
  }

  /** Sends an operation over one member, once. */
  async over(to: SimulatedMember, operation: Operation, budgetMs?: number): Promise<void> {
    const attempt: Attempt = { member: to.name, sentMs: this.#world.scheduler.nowMs, reply: null }
    operation.attempts.push(attempt)
    const trace = `${operation.id}.${operation.attempts.length}`
    const reply = await this.#ask(to, operation, trace, budgetMs)
    this.history.answered(operation, attempt, reply, this.#world.scheduler.nowMs)
    this.#sayOf(operation)
  }
}

/** That a key was used for another body is not recorded: it ends with that one's incarnation. */
function isMismatch(result: MessageResult | null): boolean {
  return result?.success === false && result.errors[0]!.code === 'IDEMPOTENCY_MISMATCH'
}

/** What the edge refuses this time. */
function refusedOf({ messages, attempts }: Operation): { readonly refused: Refusals } | null {
  const isRefused = attempts.length % 2 === 1 && messages.some(({ body }) => body.refused)
  if (!isRefused) return null
  const errors = [errorItem(FORBIDDEN, 'refused by its edge')]
  const refused = messages.map(({ type, body }) => {
    return body.refused ? { type, success: false as const, errors } : null
  })
  return { refused }
}

function isHopeless({ attempts }: Operation): boolean {
  const reply = attempts.at(-1)?.reply
  if (reply?.outcome !== 'answered') return false
  return reply.results.every((result) => !result.success && HOPELESS.has(result.errors[0]!.code))
}

const HOPELESS = new Set(['TOO_LARGE', 'INTERNAL_ERROR'])
