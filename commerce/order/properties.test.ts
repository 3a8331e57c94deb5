// What must hold for every order, whatever its life: replays, totals, graph nodes, snapshots.

import fc from 'fast-check'
import t from 'tap'
import type { NodeRef } from '../../protocol/behaviour.ts'
import { minorDigits } from '../../protocol/money.ts'
import { COMMANDS } from './command-table.ts'
import type { OrderState } from './state/state.ts'
import { OrderDriver } from './testing/order-driver.ts'
import { scriptArbitrary } from './testing/random-commands.ts'
import { oracleTotals } from './testing/totals-oracle.ts'

const RUNS = { numRuns: 100 }
type Batch = readonly Readonly<Record<string, unknown>>[]
interface Life {
  readonly currencyCode: string
  readonly taxIncluded: boolean
  readonly beginning: Batch
  readonly batches: readonly Batch[]
}

/** Commands name "the first" or "the last" invoice: its id is known only now. */
function withInvoices(order: OrderDriver, batch: Batch): Batch {
  const ids = [...order.state!.invoices.keys()]
  return batch.map((command) => {
    if (command['type'] !== 'cancelInvoice') return command
    const id = command['invoiceId'] === 'first' ? ids[0] : ids.at(-1)
    return { ...command, invoiceId: id ?? order.orderId }
  })
}

function begin(order: OrderDriver, { currencyCode, taxIncluded, beginning }: Life): void {
  if (!order.create(beginning, { currencyCode, taxIncluded }).ok) {
    order.create([], { currencyCode, taxIncluded })
  }
}

/** Lives an order through; `look` is called after each batch that was accepted. */
function live(script: Life, look: (order: OrderDriver, before: OrderState) => void): OrderDriver {
  const order = new OrderDriver()
  begin(order, script)
  for (const batch of script.batches) {
    const before = order.state!
    if (order.apply(...withInvoices(order, batch)).ok) look(order, before)
  }
  return order
}

t.test('random lives reach every command, accepted and refused', (t) => {
  const accepted = new Set<unknown>()
  const refused = new Set<unknown>()
  for (const script of fc.sample(scriptArbitrary, { numRuns: 200, seed: 7 })) {
    const order = new OrderDriver()
    begin(order, script)
    for (const command of script.batches.flat()) {
      const one = withInvoices(order, [command])
      const known = order.apply(...one).ok ? accepted : refused
      known.add(command['type'])
    }
  }
  t.strictSame(
    [...COMMANDS.keys()].filter((type) => !accepted.has(type)),
    [],
  )
  t.ok(refused.size > 40, `${refused.size} kinds of commands were refused at times`)
  t.end()
})

t.test('a decision equals the fold of its records, and refusals change nothing', (t) => {
  // The driver itself throws when a decision changes the state that it was given.
  fc.assert(
    fc.property(scriptArbitrary, (script) => {
      const order = live(script, (now) => assertSame(now.replay(), now.state))
      assertSame(order.replay(), order.state)
    }),
    RUNS,
  )
  t.end()
})

t.test('totals equal the plain reckoning', (t) => {
  fc.assert(
    fc.property(scriptArbitrary, (script) => {
      live(script, ({ state }) => assertReckoned(state!))
    }),
    RUNS,
  )
  t.end()
})

t.test('no target goes below 0, and shares add up to their discounts', (t) => {
  fc.assert(
    fc.property(scriptArbitrary, (script) => {
      live(script, ({ state }) => {
        for (const target of [...state!.lines.values(), ...state!.deliveries.values()]) {
          if (target.total < 0 || target.shares.some((share) => share.value <= 0)) {
            throw new Error(JSON.stringify(target))
          }
        }
        for (const item of state!.discounts.values()) {
          if (!item.isPercentage && item.calculatedTotal > item.value + 0.5) {
            throw new Error(JSON.stringify(item))
          }
        }
      })
    }),
    RUNS,
  )
  t.end()
})

t.test('what changes in the graph is named by the records, and says when', (t) => {
  fc.assert(
    fc.property(scriptArbitrary, (script) => {
      live(script, assertNamed)
    }),
    RUNS,
  )
  t.end()
})

t.test('a snapshot survives the way to bytes and back, and goes on like the original', (t) => {
  fc.assert(
    fc.property(scriptArbitrary, (script) => {
      const order = live(script, () => undefined)
      const { behaviour } = order
      const bytes = JSON.stringify(behaviour.toSnapshot(order.state!))
      const back = behaviour.fromSnapshot(JSON.parse(bytes))
      assertSame(back, order.state)
      order.state = back
      order.apply({ type: 'createDelivery', shippingPrice: 1 })
      assertSame(order.replay(), order.state)
    }),
    RUNS,
  )
  t.end()
})

t.test('a rewind brings the business back, keeps what was issued, and replays', (t) => {
  fc.assert(
    fc.property(scriptArbitrary, fc.nat(), (script, pick) => {
      const order = live(script, () => undefined)
      const checkpoints = order.checkpoints()
      const at = pick % checkpoints.length
      const then = order.replay(at + 1)!
      const now = order.state!
      const answer = order.send('rewind', { checkpointId: checkpoints[at] })
      const unmade = [...now.invoices.values()].some(
        (invoice) => !invoice.isCancelled && !then.invoices.has(invoice.invoiceId),
      )
      if (answer.ok === unmade) throw new Error('refused exactly past a standing invoice')
      if (!answer.ok) return
      assertSame(order.replay(), order.state)
      assertNamed(order, now)
      const back = order.state!
      assertSame([...back.lines.keys()], [...then.lines.keys()])
      assertSame(
        [back.orderNumber, back.externalReference],
        [now.orderNumber, now.externalReference],
      )
      assertSame([...back.invoices.values()], [...now.invoices.values()])
      if (now.invoices.size === 0) assertSame(totalsOf(back), totalsOf(then))
      assertReckoned(back)
      // And forward again.
      const forward = order.send('rewind', { checkpointId: checkpoints.at(-1) })
      if (!forward.ok) throw new Error(JSON.stringify(forward.errors))
      assertSame(totalsOf(order.state!), totalsOf(now))
      assertSame([...order.state!.lines.keys()], [...now.lines.keys()])
    }),
    RUNS,
  )
  t.end()
})

/** Parts of a split are rounded together: split-order-line.test.ts says what must hold of them. */
function assertReckoned(state: OrderState): void {
  if ([...state.lines.values()].some(({ family }) => family !== undefined)) return
  assertSame(totalsOf(state), oracleTotals(state, minorDigits(state.currencyCode)))
}

/** Every node that is other than before is named by the newest records, with its time of change. */
function assertNamed(order: OrderDriver, before: OrderState): void {
  const { behaviour, state } = order
  const records = order.entries.at(-1)!.records
  const named = new Set(records.flatMap((r) => behaviour.touched(r, order.orderId)).map(textOf))
  const refs = new Map(
    [...behaviour.nodes(before), ...behaviour.nodes(state!)].map((ref) => [textOf(ref), ref]),
  )
  for (const [text, ref] of refs) {
    const [was, is] = [behaviour.project(before, ref), behaviour.project(state!, ref)]
    const changed = JSON.stringify(was) !== JSON.stringify(is)
    if (changed && !named.has(text)) throw new Error(`${text} changed without being named`)
    if (!changed || is === null) continue
    if (is.doc['lastModified'] !== new Date(order.nowMs).toISOString()) {
      throw new Error(`${text} changed without its lastModified`)
    }
  }
}

function textOf({ node, id }: NodeRef): string {
  return `${node} ${id}`
}

/** Deep equality of states and values, order of maps included. */
function assertSame(found: unknown, wanted: unknown): void {
  const [a, b] = [textOfValue(found), textOfValue(wanted)]
  if (a !== b) throw new Error(`found  ${a}\nwanted ${b}`)
}

function textOfValue(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    item instanceof Map ? [...(item as Map<unknown, unknown>)].toSorted(byKey) : sorted(item),
  )
}

/** Children keep their order only where it is one: derived maps may be filled in any. */
function byKey(a: [unknown, unknown], b: [unknown, unknown]): number {
  return String(a[0]) < String(b[0]) ? -1 : 1
}

function sorted(item: unknown): unknown {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return item
  return Object.fromEntries(Object.entries(item).toSorted(byKey))
}

function totalsOf(state: OrderState): unknown {
  const targets = [...state.lines.values(), ...state.deliveries.values()]
  return {
    targets: Object.fromEntries(
      targets.map((target) => [
        'orderLineId' in target ? target.orderLineId : target.deliveryId,
        {
          total: target.total,
          tax: target.tax,
          shares: target.shares.map((s) => [s.referenceId, s.value]),
        },
      ]),
    ),
    discounts: Object.fromEntries(
      [...state.discounts.values()].map((d) => [d.discountId, d.calculatedTotal]),
    ),
    returns: Object.fromEntries(
      [...state.returns.values()].map((r) => [r.returnId, r.returnTotal]),
    ),
    order: state.totals,
  }
}
