// Clients that work on orders over all members, so that whatever was lost, doubled, torn or
// reordered shows: each operation leaves marks of its own, which are order lines with a product
// number that nobody else uses. They repeat what they don't know under the same key, over another
// member, and some things that they do know. Source: PROTOCOL 4.1, F30, F31, F34.

import { randomUUID } from 'node:crypto'
import { create } from '../harness/orders.ts'
import type { Command, Message } from '../harness/orders.ts'
import { tick } from '../harness/patience.ts'
import { Caller } from './caller.ts'
import type { Door, Sending } from './caller.ts'
import { Client } from './client.ts'
import type { KnownOrder } from './client.ts'
import { OperationHistory } from './operation-history.ts'
import type { Attempt, Operation } from './operation-history.ts'
import { Random } from './random.ts'

export interface WorkloadOptions {
  /** Doors to members that are worth a try now. */
  readonly doors: () => readonly Door[]
  /** Printed, for the choices of a run to be seen again; what happens beside them is real. */
  readonly seed: number
  readonly clients?: number
  /** Longest pause of a client between two operations. */
  readonly pauseMs?: number
  /** A client gives an attempt up after so long. */
  readonly patienceMs?: number
  /** A key is sent for the last time so long after the first: then it may be forgotten. */
  readonly keysLiveMs?: number
  /** Of the changes with several commands so many are made to be rejected. */
  readonly rejectShare?: number
}

interface Change {
  readonly operation: Operation
  readonly sending: Sending
}

interface Commands {
  readonly marks: readonly string[]
  readonly commands: readonly Command[]
  readonly op?: 'mark' | 'reject' | 'preview'
}

const DEFAULTS = {
  clients: 12,
  pauseMs: 40,
  patienceMs: 12_000,
  keysLiveMs: 24 * 3_600_000,
  rejectShare: 0.3,
}
/** Then a new one takes its place: an order with many lines costs more. */
const MARKS_MAX = 60
const ORDERS_AT_HAND = 24
/** Keyed operations that may be repeated. */
const REMEMBERED_MAX = 2_000
const ATTEMPTS_MAX = 12

/** What a read asks for: the order's total and its lines. */
export const SHOWN_FIELDS = {
  fields: ['orderNumber', 'orderTotal'],
  navigate: [{ edge: 'orderLines', node: { fields: ['productNumber', 'orderLineTotal'] } }],
}

export class Workload {
  readonly history: OperationHistory
  readonly caller: Caller
  /** Milliseconds since the run began, as in the history. */
  readonly now: () => number
  readonly #o: Required<WorkloadOptions>
  readonly #clients: readonly Client[]
  readonly #orders: KnownOrder[] = []
  readonly #remembered: Change[] = []
  #workers: Promise<void>[] = []
  #numbers = 0
  #stopped = false

  constructor(options: WorkloadOptions) {
    this.#o = { ...DEFAULTS, ...options }
    this.#clients = Array.from(
      { length: this.#o.clients },
      (_, i) => new Client(`client-${i}`, new Random(this.#o.seed * 1_000 + i)),
    )
    const began = performance.now()
    this.now = () => Math.round((performance.now() - began) * 1_000) / 1_000
    this.history = new OperationHistory(this.now)
    this.caller = new Caller(this.now, this.#o.patienceMs)
  }

  /** Begins, or goes on after a stop. */
  start(): this {
    this.#stopped = false
    this.#workers = this.#clients.map((client) => this.#work(client))
    return this
  }

  /** No operation is begun any more; resolves when those under way have ended. */
  async stop(): Promise<OperationHistory> {
    this.#stopped = true
    await Promise.all(this.#workers)
    return this.history
  }

  /** Operations that were answered so far, and not rejected. */
  get done(): number {
    return this.history.operations.filter(({ outcome, rejected }) => outcome === 'ok' && !rejected)
      .length
  }

  /** Attempts that were sent and over between two moments. */
  between(fromAt: number, toAt: number): (Attempt & Pick<Operation, 'op'>)[] {
    return this.history.operations.flatMap(({ op, attempts }) =>
      attempts
        .filter(({ sentAt, tookMs }) => sentAt >= fromAt && sentAt + tookMs <= toAt)
        .map((attempt) => ({ ...attempt, op })),
    )
  }

  async #work(client: Client): Promise<void> {
    while (!this.#stopped) {
      await this.#step(client)
      await tick(client.random.below(this.#o.pauseMs))
    }
  }

  #step(client: Client): Promise<unknown> {
    const { random } = client
    const share = random.share()
    const order = this.#orders.length < 4 ? null : random.one(this.#orders)
    if (order === null || share < 0.09) return this.#create(client, this.#newNumber())
    if (share < 0.12) return this.#race(client)
    if (share < 0.46) return this.#mark(client, order, 1)
    if (share < 0.66) {
      return random.share() < this.#o.rejectShare
        ? this.#reject(client, order)
        : this.#mark(client, order, 2 + random.below(3))
    }
    if (share < 0.7) return this.#preview(client, order)
    if (share < 0.84) return this.#read(client, order)
    if (share < 0.9) return this.#graph(client)
    if (share < 0.97) return this.#repeat(client)
    return this.#otherBody(client)
  }

  // --- what clients do ------------------------------------------------------------------------

  async #create(client: Client, number: string): Promise<void> {
    const deliveryId = randomUUID()
    const marks = client.newMarks(1)
    const commands = [{ type: 'createDelivery', deliveryId }, ...linesOf(marks, deliveryId)]
    const change = this.#change(client, {
      op: 'create',
      address: 'new',
      number,
      marks,
      messages: [create({ orderNumber: number, taxIncluded: true }, ...commands)],
    })
    await this.#perform(client, change)
    const { operation } = change
    if (operation.outcome !== 'ok' || operation.rejected) return
    this.#orders.push({ id: operation.pid, number, deliveryId, marks: marks.length })
    if (this.#orders.length > ORDERS_AT_HAND) this.#orders.shift()
  }

  /** Two clients take one number at a time, over different members if there are several. */
  async #race(client: Client): Promise<void> {
    const number = this.#newNumber()
    const rival = client.rival()
    await Promise.all([this.#create(client, number), this.#create(rival, number)])
  }

  /** A message with several marks is a batch. */
  async #mark(client: Client, order: KnownOrder, count: number): Promise<void> {
    const marks = client.newMarks(count)
    const commands = linesOf(marks, order.deliveryId)
    await this.#perform(client, this.#apply(client, order, { marks, commands }))
    this.#leave(order, count)
  }

  /** A batch whose last command can't be done; then it could, and is sent again (F31). */
  async #reject(client: Client, order: KnownOrder): Promise<void> {
    const orderLineId = randomUUID()
    const marks = client.newMarks(1)
    const lines = linesOf(marks, order.deliveryId)
    const early = { type: 'setOrderLineQuantity', orderLineId, quantity: 1 }
    const rejected = this.#apply(client, order, {
      marks,
      commands: [...lines, early],
      op: 'reject',
    })
    await this.#perform(client, rejected)
    const { outcome, key } = rejected.operation
    // Who doesn't know may still be under way: it would find that it can be done.
    if (outcome !== 'ok') return
    const more = client.newMarks(1)
    const [line] = linesOf(more, order.deliveryId)
    const added = this.#apply(client, order, {
      marks: more,
      commands: [{ ...line!, orderLineId }],
    })
    await this.#perform(client, added)
    this.#leave(order, 1)
    if (key !== null && this.#isLive(rejected)) await this.#again(client, rejected)
  }

  async #preview(client: Client, order: KnownOrder): Promise<void> {
    const marks = client.newMarks(1)
    const commands = linesOf(marks, order.deliveryId)
    const change = this.#apply(client, order, { marks, commands, op: 'preview' })
    await this.#once(client, change)
  }

  async #read(client: Client, order: KnownOrder): Promise<void> {
    const address = client.addressOf(order)
    const operation = this.history.begin({
      process: client.name,
      op: 'read',
      pid: order.id,
      orderNumber: order.number,
    })
    const body = [{ type: 'query', body: SHOWN_FIELDS }]
    const path = `/resources/actors/order/${address}`
    await this.#once(client, { operation, sending: { path, body, key: null } })
  }

  /** The order that this client wrote last, as the graph shows it with the token of that write. */
  async #graph(client: Client): Promise<void> {
    const { last } = client
    if (last === null) return
    const operation = this.history.begin({
      process: client.name,
      op: 'graph',
      pid: last.pid,
      orderNumber: last.orderNumber,
      token: last.token,
    })
    const body = [{ edge: 'orders', filter: `orderId == '${last.pid}'`, node: SHOWN_FIELDS }]
    await this.#once(client, { operation, sending: { path: '/resources/graph', body, key: null } })
  }

  /** Something that was answered before: at once, or long ago, or before somebody died. */
  async #repeat(client: Client): Promise<void> {
    const change = this.#recall(client)
    if (change !== null) await this.#again(client, change)
  }

  async #again(client: Client, change: Change): Promise<void> {
    const { pid, orderNumber, key, id } = change.operation
    const operation = this.history.begin({
      process: client.name,
      op: 'repeat',
      pid,
      orderNumber,
      key,
      of: id,
    })
    await this.#once(client, { operation, sending: change.sending })
  }

  async #otherBody(client: Client): Promise<void> {
    const change = this.#recall(client)
    if (change === null) return
    const { pid, orderNumber, key, id } = change.operation
    const marks = client.newMarks(1)
    const process = client.name
    const operation = this.history.begin({
      process,
      op: 'other-body',
      pid,
      orderNumber,
      marks,
      key,
      of: id,
    })
    // The same number, or the key would be another: it belongs to the number of a create.
    const text = JSON.stringify(change.sending.body)
    const body = JSON.parse(text.replaceAll(change.operation.marks[0]!, marks[0]!)) as unknown
    await this.#once(client, { operation, sending: { ...change.sending, body } })
  }

  // --- how ------------------------------------------------------------------------------------

  #apply(client: Client, order: KnownOrder, { marks, commands, op = 'mark' }: Commands): Change {
    const messages = [{ type: 'applyCommands', body: { commands } }]
    const address = client.addressOf(order)
    return this.#change(client, { op, address, number: order.number, marks, messages }, order.id)
  }

  #change(
    client: Client,
    what: {
      readonly op: 'create' | 'mark' | 'reject' | 'preview'
      readonly address: string
      readonly number: string
      readonly marks: readonly string[]
      readonly messages: readonly Message[]
    },
    pid: string = what.number,
  ): Change {
    const { op, address, number, marks, messages } = what
    const isKeyed = op === 'create' || op === 'reject' || client.random.share() < 0.8
    const key = op !== 'preview' && isKeyed ? randomUUID() : null
    const about = { process: client.name, op, pid, orderNumber: number, marks, key }
    const path = `/resources/actors/order/${address}${op === 'preview' ? '?preview' : ''}`
    return { operation: this.history.begin(about), sending: { path, body: messages, key } }
  }

  /** Until it is known, or given up; without a key once. */
  async #perform(client: Client, change: Change): Promise<void> {
    const { operation } = change
    const { random } = client
    // Some are sent twice at a time: over a slow connection, or by a caller that is too eager.
    const twin = operation.key !== null && random.share() < 0.04 ? this.#once(client, change) : null
    await this.#once(client, change)
    for (let i = 1; operation.key !== null && operation.outcome !== 'ok' && i < ATTEMPTS_MAX; i++) {
      // Some never come to know.
      if (random.share() < 0.04) break
      await tick(50 + random.below(900))
      if (!this.#isLive(change)) break
      await this.#once(client, change)
    }
    await twin
    if (operation.outcome !== 'ok') return
    if (operation.key !== null) this.#remember(change)
    if (!operation.rejected && operation.token !== null) client.last = operation
  }

  async #once(client: Client, { operation, sending }: Change): Promise<void> {
    const doors = this.#o.doors()
    if (doors.length === 0) return
    await this.caller.send(client.random.one(doors), operation, sending)
  }

  #remember(change: Change): void {
    this.#remembered.push(change)
    if (this.#remembered.length > REMEMBERED_MAX) this.#remembered.shift()
  }

  /** Whether its key may still be sent. */
  #isLive({ operation }: Change): boolean {
    return this.now() - operation.invokedAt < this.#o.keysLiveMs
  }

  /** One of those that may be repeated. */
  #recall(client: Client): Change | null {
    while (this.#remembered.length > 0) {
      const at = client.random.below(this.#remembered.length)
      const change = this.#remembered[at]!
      if (this.#isLive(change)) return change
      this.#remembered.splice(at, 1)
    }
    return null
  }

  #leave(order: KnownOrder, marks: number): void {
    order.marks += marks
    if (order.marks < MARKS_MAX) return
    const at = this.#orders.indexOf(order)
    if (at >= 0) this.#orders.splice(at, 1)
  }

  #newNumber(): string {
    return `W${this.#o.seed}-${++this.#numbers}`
  }
}

/** An order line for each mark; prices are whole, so that totals are. */
function linesOf(marks: readonly string[], deliveryId: string): Command[] {
  return marks.map((mark, i) => ({
    type: 'createOrderLine',
    deliveryId,
    productNumber: mark,
    quantity: 1,
    unitPrice: 1 + ((mark.length + i) % 7),
  }))
}
