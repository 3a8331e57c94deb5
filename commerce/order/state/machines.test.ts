// The state machines, every pair of states against the tables of commerce/README.md "Machines".

import t from 'tap'
import { move, moveTo } from '../../actor/machine.ts'
import { billingState, BILLING_MOVES, DELIVERY_MOVES, ORDER_MOVES } from './machines.ts'
import { DELIVERY_STATES, ORDER_STATES } from './state.ts'

const allowed = (attempt: () => unknown): boolean => {
  try {
    attempt()
    return true
  } catch (error) {
    if ((error as { errors?: { code: string }[] }).errors?.[0]?.code !== 'INVALID_STATE')
      throw error
    return false
  }
}

t.test('order: exactly the moves of the table', (t) => {
  const found = ORDER_STATES.flatMap((from) =>
    ORDER_STATES.filter((to) => allowed(() => moveTo('order', from, to, ORDER_MOVES))).map(
      (to) => `${from} ${to}`,
    ),
  )
  t.strictSame(found, [
    'pending confirmed',
    'pending cancelled',
    'confirmed pending',
    'confirmed completed',
    'confirmed cancelled',
    'completed confirmed',
    'cancelled pending',
    'cancelled confirmed',
  ])
  t.end()
})

t.test('delivery: exactly the moves of the table', (t) => {
  const names = Object.keys(DELIVERY_MOVES) as (keyof typeof DELIVERY_MOVES)[]
  const found = names.flatMap((name) =>
    DELIVERY_STATES.filter((from) => allowed(() => move('it', from, DELIVERY_MOVES[name]))).map(
      (from) => `${name}: ${from} ${move('it', from, DELIVERY_MOVES[name])}`,
    ),
  )
  t.strictSame(found, [
    'release: open processing',
    'retract: processing open',
    'complete: open completed',
    'complete: processing completed',
    'cancel: open cancelled',
    'cancel: processing cancelled',
    'reopen: cancelled open',
    'orderCancelled: open cancelledByOrder',
    'orderCancelled: processing cancelledByOrder',
    'orderReopened: cancelledByOrder open',
  ])
  t.end()
})

t.test('billing: exactly the moves of the table', (t) => {
  const states = ['notReleased', 'released', 'invoiced'] as const
  const names = Object.keys(BILLING_MOVES) as (keyof typeof BILLING_MOVES)[]
  const found = names.flatMap((name) =>
    states
      .filter((from) => allowed(() => move('it', from, BILLING_MOVES[name])))
      .map((from) => `${name}: ${from} ${move('it', from, BILLING_MOVES[name])}`),
  )
  t.strictSame(found, [
    'release: notReleased released',
    'release: released released',
    'retract: released notReleased',
    'invoice: released invoiced',
    'cancelInvoice: invoiced released',
  ])
  t.end()
})

t.test('billing states follow from the flags', (t) => {
  const flags = { released: false, invoiceId: null, invoiceLineId: null }
  t.equal(billingState(flags), 'notReleased')
  t.equal(billingState({ ...flags, released: true }), 'released')
  t.equal(billingState({ released: true, invoiceId: 'a', invoiceLineId: 'b' }), 'invoiced')
  t.end()
})

t.test('a refusal says what it takes', (t) => {
  t.throws(() => move('delivery D1', 'completed', DELIVERY_MOVES.cancel), {
    message:
      "delivery D1 is completed and can't become cancelled: " +
      'that takes one that is open or processing',
  })
  t.end()
})
