// The shapes of commands, where they hold JSON of the caller's own making.

import t from 'tap'
import { openOrder } from '../testing/sample-orders.ts'

t.test('commands are checked where they hold JSON', (t) => {
  const order = openOrder()
  const bad: unknown = JSON.parse('{"a":{"__proto__":1}}')
  t.match(order.refusal({ type: 'setDynamicFields', fields: bad }), {
    code: 'INVALID_COMMAND',
    message: 'commands[0] setDynamicFields: fields has a member __proto__, which is not allowed',
    details: { commandIndex: 0, commandType: 'setDynamicFields', member: 'fields' },
  })
  const whole = JSON.parse('{"type":"addTag","key":"a","__proto__":{"x":1}}') as object
  t.match(order.refusal(whole), { code: 'INVALID_COMMAND', message: /__proto__ is not known here/ })
  const skus: unknown = JSON.parse('{"__proto__":1}')
  t.match(order.refusal({ type: 'setOrderLineSkus', orderLineId: order.orderId, skus }), {
    code: 'INVALID_COMMAND',
    details: { member: 'skus' },
  })
  t.equal(({} as { polluted?: unknown }).polluted, undefined)
  t.end()
})
