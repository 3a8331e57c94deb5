// Automatic completion: with the setting a batch that leaves nothing to do completes its order, and
// without it nothing of it happens. Against a plain reading of commerce/README.md "Machines".

import fc from 'fast-check'
import t from 'tap'
import type { ActorRecord } from '../../protocol/behaviour.ts'
import type { Completion } from './completion.ts'
import type { OrderState } from './state/state.ts'
import { id, OrderDriver } from './testing/order-driver.ts'

type Command = Readonly<Record<string, unknown>>

const [ONE, TWO, LINE, OTHER, RETURN] = [id(1), id(2), id(11), id(12), id(31)]
const state = (orderState: string): Command => ({ type: 'setOrderState', orderState })
const complete = (deliveryId = ONE): Command => ({ type: 'completeDelivery', deliveryId })
const release = (orderLineId = LINE): Command => ({
  type: 'releaseOrderLineToInvoicing',
  orderLineId,
})
const invoice = { type: 'invoice' }
const line = (orderLineId: string, deliveryId: string): Command => ({
  type: 'createOrderLine',
  ...{ deliveryId, orderLineId, productNumber: 'p', quantity: 3, unitPrice: 10 },
})
const BEGINNING = [{ type: 'createDelivery', deliveryId: ONE }, line(LINE, ONE), state('confirmed')]

function begun(completion: Completion, ...more: readonly Command[]): OrderDriver {
  const order = new OrderDriver({ completion })
  const answer = order.create([...BEGINNING, ...more])
  if (!answer.ok) throw new Error(JSON.stringify(answer.errors))
  return order
}

t.test('the last thing to do completes the order, whichever it is', async (t) => {
  for (const steps of [
    [complete(), release(), invoice],
    [release(), invoice, complete()],
  ]) {
    const order = begun('automatic')
    for (const [i, step] of steps.entries()) {
      t.equal(order.state!.state, 'confirmed')
      const records = order.do(step)
      if (i < steps.length - 1) continue
      t.match(records.at(-1), { t: 'orderStateChanged', from: 'confirmed', to: 'completed' })
    }
    t.equal(order.doc('order')['orderState'], 'completed')
    t.match(order.history().at(-1), { doc: { type: 'orderStateChanged' } })
  }
  t.equal(begun('automatic', complete(), release(), invoice).state!.state, 'completed', 'at once')
})

t.test('what is cancelled is final; a delivery is completed all the same', async (t) => {
  const cancel = { type: 'cancelDelivery', deliveryId: TWO }
  const two = [{ type: 'createDelivery', deliveryId: TWO }, line(OTHER, TWO)]
  const order = begun('automatic', ...two, complete(), release(), invoice)
  t.equal(order.state!.state, 'confirmed')
  order.do(cancel)
  t.equal(order.state!.state, 'completed')
  const none = begun('automatic')
  none.do({ type: 'cancelDelivery', deliveryId: ONE })
  t.equal(none.state!.state, 'confirmed', 'nothing was delivered')
})

t.test('shipping that costs something, and returns, are to be invoiced too', async (t) => {
  const order = begun('automatic', { type: 'setShippingPrice', deliveryId: ONE, shippingPrice: 5 })
  order.do(complete(), release(), invoice)
  t.equal(order.state!.state, 'confirmed')
  const back = { type: 'createReturn', orderLineId: LINE, quantity: 1, refundFactor: 0 }
  order.do({ ...back, returnId: RETURN }, { type: 'retractReturnFromInvoicing', returnId: RETURN })
  order.do({ type: 'releaseShippingToInvoicing', deliveryId: ONE }, invoice)
  t.equal(order.state!.state, 'confirmed', 'the return is held back')
  order.do({ type: 'releaseReturnToInvoicing', returnId: RETURN }, invoice)
  t.equal(order.state!.state, 'completed', 'a credit of nothing is a credit')
})

t.test(
  'a completed order can be taken back, and stays so until there was more to do',
  async (t) => {
    const order = begun('automatic', complete(), release(), invoice)
    order.do(state('confirmed'))
    order.do({ type: 'addTag', key: 'again' })
    t.equal(order.state!.state, 'confirmed')
    order.do({ type: 'createReturn', orderLineId: LINE, quantity: 1, refundFactor: 1 })
    t.equal(order.state!.state, 'confirmed')
    order.do(invoice)
    t.equal(order.state!.state, 'completed')
  },
)

t.test('commands of rules count, and rules that judge see the result', async (t) => {
  const seen: unknown[] = []
  const order = new OrderDriver({
    completion: 'automatic',
    rules: {
      OnOrderCommands: ({ order: shown }) => {
        seen.push((shown as { orderState: string }).orderState)
        return [
          { effect: 'orderCommand', ...release() },
          { effect: 'orderCommand', ...invoice },
        ]
      },
      OnOrderValidate: ({ order: shown }) => {
        seen.push((shown as { orderState: string }).orderState)
        return []
      },
    },
  })
  t.ok(order.create([...BEGINNING, complete()]).ok)
  t.strictSame(seen, ['confirmed', 'completed'])
  t.equal(order.state!.state, 'completed')
})

t.test('a rewind completes nothing: it brings back what was', async (t) => {
  const order = begun('automatic', complete(), release(), invoice)
  order.do(state('confirmed'))
  const at = order.checkpoints().at(-1)
  order.do({ type: 'createReturn', orderLineId: LINE, quantity: 1, refundFactor: 1 })
  t.ok(order.send('rewind', { checkpointId: at }).ok)
  t.equal(order.state!.state, 'confirmed')
  t.equal(order.state!.returns.size, 0)
})

// --- any script ------------------------------------------------------------------------------

/** Nothing left to do, as commerce/README.md "Machines" has it. */
function isDone({ deliveries, lines, returns }: OrderState): boolean {
  const all = [...deliveries.values()]
  const going = all.filter((one) => one.state === 'open' || one.state === 'processing')
  const there = all.filter((one) => one.state === 'completed')
  if (going.length > 0 || there.length === 0) return false
  const isOpen = (one: { readonly invoiceId: string | null }): boolean => one.invoiceId === null
  const bills = [...lines.values()].filter((one) =>
    there.some((d) => d.deliveryId === one.deliveryId),
  )
  const fees = there.filter((one) => (one.shippingPrice ?? 0) > 0)
  return ![...bills, ...fees, ...returns.values()].some(isOpen)
}

const delivery = fc.constantFrom(ONE, ONE, TWO)
const orderLine = fc.constantFrom(LINE, LINE, OTHER)
const step: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: delivery.map(complete) },
  { weight: 3, arbitrary: orderLine.map(release) },
  { weight: 4, arbitrary: fc.constant(invoice) },
  { weight: 2, arbitrary: fc.constantFrom('confirmed', 'completed', 'pending').map(state) },
  delivery.map((deliveryId) => ({ type: 'cancelDelivery', deliveryId })),
  delivery.map((deliveryId) => ({ type: 'reopenDelivery', deliveryId })),
  delivery.map((deliveryId) => ({ type: 'releaseShippingToInvoicing', deliveryId })),
  delivery.map((deliveryId) => ({ type: 'setShippingPrice', deliveryId, shippingPrice: 5 })),
  orderLine.map((orderLineId) => ({ type: 'deleteOrderLine', orderLineId })),
  orderLine.map((orderLineId) => ({
    type: 'createReturn',
    ...{ orderLineId, quantity: 1, refundFactor: 0.5, returnId: RETURN },
  })),
  fc.constant({ type: 'deleteReturn', returnId: RETURN }),
  fc.constant({ type: 'cancelInvoice', invoiceId: 'first' }),
  fc.constant({ type: 'addTag', key: 'x' }),
)
const script = fc.record({
  more: fc.constantFrom([], [{ type: 'createDelivery', deliveryId: TWO }, line(OTHER, TWO)]),
  batches: fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { maxLength: 25, size: 'max' }),
})

function apply(order: OrderDriver, batch: readonly Command[]): ReturnType<OrderDriver['apply']> {
  const first = [...order.state!.invoices.keys()][0] ?? order.orderId
  return order.apply(
    ...batch.map((one) => (one['type'] === 'cancelInvoice' ? { ...one, invoiceId: first } : one)),
  )
}

const runs = { numRuns: 400 * Number(process.env['KONTOR_RUNS'] ?? 1) }

t.test('any script: completed by itself exactly when a batch has left nothing to do', async (t) => {
  let times = 0
  fc.assert(
    fc.property(script, ({ more, batches }) => {
      const [order, plain] = [begun('automatic', ...more), begun('manual', ...more)]
      for (const batch of batches) {
        const before = order.state!
        plain.state = before
        const [answer, asked] = [order, plain].map((one) => apply(one, batch))
        if (!answer!.ok || !asked!.ok) {
          if (answer!.ok !== asked!.ok) return false
          continue
        }
        const left = plain.state
        const isDue = left.state === 'confirmed' && isDone(left) && !isDone(before)
        if (isDue) times++
        const last = isDue ? [{ t: 'orderStateChanged', from: 'confirmed', to: 'completed' }] : []
        const own = answer!.records.slice(asked!.records.length)
        if (JSON.stringify(own) !== JSON.stringify(last)) return false
        if (order.state!.state !== (isDue ? 'completed' : left.state)) return false
      }
      return true
    }),
    runs,
  )
  t.ok(times > 20, `${times} times`)
})

t.test('without the setting no order completes but by command', async () => {
  fc.assert(
    fc.property(script, ({ more, batches }) => {
      const order = new OrderDriver()
      order.create([...BEGINNING, ...more])
      for (const batch of batches) {
        const answer = apply(order, batch)
        const isAsked = batch.some(({ orderState }) => orderState === 'completed')
        if (answer.ok && !isAsked && answer.records.some(isCompletion)) return false
      }
      return true
    }),
    runs,
  )
})

function isCompletion({ t: kind, to }: ActorRecord): boolean {
  return kind === 'orderStateChanged' && to === 'completed'
}
