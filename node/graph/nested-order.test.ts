// Nested lists without `orderBy` are in the order's own order, whatever its life was: lines that
// were removed and came again, moves, splits, rewinds, batches that failed, a new projector, an
// index made anew. Through the projector into the embedded index and the memory twin; the search
// engine's is in orders-elastic.test.ts.

import { deepStrictEqual } from 'node:assert'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import fc from 'fast-check'
import { Projector } from '../../cluster/feed/projector.ts'
import { FeedStore, actorIdOf, decodeTestSnapshot } from '../../cluster/feed/testing/feed-store.ts'
import { orderBehaviour } from '../../commerce/order/order.ts'
import { id, OrderDriver } from '../../commerce/order/testing/order-driver.ts'
import { restlessArbitrary } from '../../commerce/order/testing/random-commands.ts'
import { LIMITS } from '../../config/limits.ts'
import type { Behaviour } from '../../protocol/behaviour.ts'
import { Budget, type GraphRow } from '../../protocol/graph/execute.ts'
import { queryNode } from '../../protocol/graph/find-in-memory.ts'
import { NO_HISTORY } from '../../protocol/graph/history.ts'
import { FULL_ACCESS } from '../../protocol/graph/planning.ts'
import { planNavigations, planNode } from '../../protocol/graph/navigation.ts'
import { graphSchema } from '../../protocol/graph/schema.ts'
import { SqliteGraphReader } from '../../storage/sqlite/reader.ts'
import { SqliteGraphWriter } from '../../storage/sqlite/writer.ts'
import { MemoryGraphIndex } from '../../storage/memory/search.ts'
import { type GraphReader, type GraphWriter, IndexAway } from '../../storage/search.ts'

const behaviour = orderBehaviour() as Behaviour
const schema = graphSchema(behaviour.nodeTypes)

type Command = Readonly<Record<string, unknown>>

interface Lists {
  readonly fields: readonly string[]
  readonly navigate: readonly unknown[]
}
const lists = (field: string, ...navigate: unknown[]): Lists => ({ fields: [field], navigate })
const edge = (name: string, node: Lists, more = {}): unknown => ({ edge: name, node, ...more })
const LINES = lists(
  'orderLineId',
  edge('returns', lists('returnId')),
  edge('staticDiscounts', lists('discountId')),
  edge('calculatedDiscounts', lists('referenceId')),
  edge('invoiceLines', lists('invoiceLineId')),
)
const INVOICE_LINES = lists(
  'invoiceLineId',
  edge('discounts', lists('invoiceLineDiscountId')),
  edge('relatedInvoiceLines', lists('invoiceLineId')),
  edge('relatedInvoiceLineDiscounts', lists('invoiceLineDiscountId')),
)
const ORDER = lists(
  'orderId',
  edge('orderLines', LINES),
  edge('orderLines', lists('orderLineId'), { alias: 'cut', limit: 2 }),
  edge('deliveries', lists('deliveryId', edge('orderLines', lists('orderLineId')))),
  edge('staticDiscounts', lists('discountId')),
  edge('calculatedDiscounts', lists('calculatedDiscountId')),
  edge('returns', lists('returnId')),
  edge('invoices', lists('invoiceId', edge('invoiceLines', INVOICE_LINES))),
)

const newBudget = (): Budget => new Budget(() => 0, 1_000, LIMITS.graph.resultNodesMax)

/** The order as it shows itself. */
function shownByItself({ state, orderId }: OrderDriver): unknown {
  const options = { access: FULL_ACCESS, nowMs: 0, limits: LIMITS.graph }
  const rows = (node: string): GraphRow[] =>
    behaviour
      .nodes(state)
      .filter((ref) => ref.node === node)
      .map((ref) => ({
        actorId: orderId,
        id: ref.id,
        doc: behaviour.project(state, ref)!.doc,
      }))
  const plan = planNode(ORDER, 'order', schema, options)
  const [root] = rows('order')
  return queryNode(
    plan,
    root!,
    { rows, count: () => 0 },
    { history: NO_HISTORY, budget: newBudget() },
  )
}

async function shownByIndex(reader: GraphReader): Promise<unknown> {
  const body = [{ edge: 'orders', node: ORDER }]
  const plan = planNavigations(body, schema, FULL_ACCESS, { nowMs: 0, limits: LIMITS.graph })
  return (await reader.query(plan, 60_000))['orders']
}

interface UnderTest {
  readonly writer: GraphWriter
  readonly reader: GraphReader
}

/** Fails when it is told to; what it was given is in, or is not. */
function faulty(writer: GraphWriter, fault: (when: 'before' | 'after') => boolean): GraphWriter {
  const apply: GraphWriter['apply'] = async (...given) => {
    if (fault('before')) throw new IndexAway('no answer')
    await writer.apply(...given)
    if (fault('after')) throw new IndexAway('no answer')
  }
  return new Proxy(writer, {
    get: (of, name) => {
      if (name === 'apply') return apply
      const value: unknown = Reflect.get(of, name, of)
      return typeof value === 'function' ? (value.bind(of) as unknown) : value
    },
  })
}

/** Orders, what they have committed, and an index that follows. */
class Followed {
  readonly store = new FeedStore(behaviour, { shards: 2, generation: 'g' })
  readonly #orders: readonly OrderDriver[]
  readonly #index: UnderTest
  readonly #committed = new Map<OrderDriver, number>()
  #fault: 'before' | 'after' | null = null
  #projector: Projector | null = null
  #generation = 0

  constructor(index: UnderTest, orders: readonly OrderDriver[]) {
    this.#index = index
    this.#orders = orders
  }

  async #start(entries: number): Promise<void> {
    const { log, derived } = this.store.journal
    this.#projector = new Projector({
      behaviours: new Map([['order', behaviour]]),
      log,
      derived,
      index: faulty(this.#index.writer, (when) => this.#fault === when),
      decodeSnapshot: decodeTestSnapshot,
      shards: 2,
      park: ({ reason }) => Promise.reject(new Error(reason)),
      unpark: () => Promise.resolve(),
      pause: () => Promise.resolve(),
      clock: () => 0,
      limits: { entries, actors: 2 },
    })
    await this.#projector.start(this.store.heads, `g${this.#generation}`)
  }

  async commit(): Promise<void> {
    for (const order of this.#orders) {
      const fresh = order.entries.slice(this.#committed.get(order) ?? 0)
      this.#committed.set(order, order.entries.length)
      for (const { records, timeMs } of fresh) {
        this.store.nowMs = timeMs
        await this.store.commit([order.orderId, ...records])
      }
    }
    await this.store.flush()
  }

  /** Something that may come between two batches. */
  async meet(event: Event, entries: number): Promise<void> {
    if (this.#projector === null || event === 'restart') await this.#start(entries)
    if (event === 'anew') {
      this.#generation++
      await this.#start(entries)
    }
    if (event !== 'before' && event !== 'after') return
    this.#fault = event
    await this.#projector!.step(this.store.heads).catch((error: unknown) => {
      if (!(error instanceof IndexAway)) throw error
    })
    this.#fault = null
  }

  async follow(): Promise<void> {
    while ((await this.#projector!.step(this.store.heads)).next !== 'idle');
  }

  async check(): Promise<void> {
    const own = this.#orders.map(shownByItself) as { orderId: string }[]
    const sorted = own.toSorted((a, b) => (a.orderId < b.orderId ? -1 : 1))
    deepStrictEqual(
      JSON.parse(JSON.stringify(await shownByIndex(this.#index.reader))),
      JSON.parse(JSON.stringify(sorted)),
    )
  }
}

const line = (n: number, deliveryId = id(1)): Command => ({
  type: 'createOrderLine',
  deliveryId,
  orderLineId: id(n),
  productNumber: `P${n}`,
  quantity: 2,
  unitPrice: 1,
})

type Event = 'none' | 'wait' | 'restart' | 'anew' | 'before' | 'after'

const eventArbitrary = fc.constantFrom<Event[]>(
  ...(['none', 'none', 'none', 'wait', 'wait', 'restart', 'anew', 'before', 'after'] as const),
)

async function property(t: Test, make: (t: Test) => UnderTest): Promise<void> {
  t.setTimeout(120_000)
  const index = make(t)
  await fc.assert(
    fc.asyncProperty(
      fc.array(restlessArbitrary, { minLength: 1, maxLength: 2 }),
      fc.array(fc.record({ event: eventArbitrary, back: fc.option(fc.nat(), { freq: 1 }) }), {
        minLength: 1,
        maxLength: 20,
      }),
      fc.integer({ min: 1, max: 6 }),
      async (scripts, rounds, entries) => {
        const orders = scripts.map((_, i) => new OrderDriver({ orderId: actorIdOf(i + 1, i % 2) }))
        const followed = new Followed(index, orders)
        await index.writer.reset('none')
        for (let at = 0; at < 60; at++) {
          const { event, back } = rounds[at % rounds.length]!
          for (const [i, order] of orders.entries()) {
            const { beginning, batches, ...body } = scripts[i]!
            if (order.state === null) order.create(beginning, body)
            if (order.state === null) order.create([], body)
            const batch = batches[at]
            if (batch !== undefined) order.apply(...batch)
            if (back === null || at % 3 !== 0) continue
            const checkpoints = order.checkpoints()
            order.send('rewind', { checkpointId: checkpoints[back % checkpoints.length] })
          }
          if (event === 'wait') continue
          await followed.commit()
          await followed.meet(event, entries)
          await followed.follow()
          await followed.check()
        }
      },
    ),
    { numRuns: Number(process.env['NESTED_RUNS'] ?? 15), endOnFailure: true },
  )
}

function embedded(t: Test, nowMs: () => number = () => 0): UnderTest {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-nested-'))
  const writer = new SqliteGraphWriter({ dir, schema, nowMs })
  const reader = new SqliteGraphReader({ dir, schema })
  t.teardown(() => {
    reader.close()
    writer.close()
    rmSync(dir, { recursive: true })
  })
  return { writer, reader }
}

function twin(): UnderTest {
  const index = new MemoryGraphIndex({ schema })
  return { writer: index, reader: index }
}

t.test('nested lists of the embedded index are as the order has them', (t) => property(t, embedded))
t.test("nested lists of the index's twin are as the order has them", (t) => property(t, twin))

for (const [name, isForgotten] of [
  ['remembered', false],
  ['forgotten', true],
] as const) {
  t.test(`a line that a rewind brings back, its removal ${name}, has its old place`, async (t) => {
    let nowMs = 0
    const index = embedded(t, () => nowMs)
    const order = new OrderDriver({ orderId: actorIdOf(1, 0) })
    const followed = new Followed(index, [order])
    const step = async (): Promise<void> => {
      await followed.commit()
      await followed.meet('none', 1)
      await followed.follow()
      await followed.check()
    }
    const deliveryId = id(1)
    order.create([{ type: 'createDelivery', deliveryId }, line(11), line(12)])
    await step()
    order.do({ type: 'deleteOrderLine', orderLineId: id(11) })
    await step()
    if (isForgotten) nowMs += 2 * LIMITS.storage.indexTombstoneMs
    order.do({ type: 'addTag', key: 'x' })
    await step()
    order.send('rewind', { checkpointId: order.checkpoints()[0] })
    await step()
    order.do({ type: 'deleteOrderLine', orderLineId: id(11) })
    order.do(line(11))
    await step()
    t.strictSame([...order.state!.lines.keys()], [id(12), id(11)])
  })
}
