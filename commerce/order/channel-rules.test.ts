// The rules of a sales channel hold for what a batch leaves, whatever the order of its commands.

import fc from 'fast-check'
import t from 'tap'
import type { Channel } from './channels.ts'
import { id, OrderDriver } from './testing/order-driver.ts'

const CHANNELS: Readonly<Record<string, Channel>> = {
  se: { currencyCode: 'EUR', inventories: ['north'], countries: ['SE'] },
  de: { currencyCode: 'EUR', inventories: ['south'], countries: ['DE'] },
  us: { currencyCode: 'USD', inventories: [], countries: [] },
}
const channels = { any: () => true, get: (key: string) => CHANNELS[key] ?? null }
const channel = (value: string) => ({ type: 'setChannelKey', value })
const country = (countryCode: string) => ({
  type: 'setDeliveryAddress',
  deliveryId: id(1),
  countryCode,
})
const inventory = (inventoryKey: string) => ({
  type: 'setDeliveryInventory',
  deliveryId: id(1),
  inventoryKey,
})

function order(): OrderDriver {
  const order = new OrderDriver({ channels })
  order.create([{ type: 'createDelivery', deliveryId: id(1) }])
  return order
}

t.test('a channel looks at the addresses and inventories that are there', (t) => {
  const it = order()
  it.do(country('DE'), inventory('south'))
  t.match(it.refusal({ type: 'addTag', key: 'a' }, channel('se')), {
    code: 'INVALID_COMMAND',
    message: /commands\[1\] setChannelKey: channel se has no inventory south, only north/,
    details: { commandIndex: 1, commandType: 'setChannelKey', member: 'value' },
  })
  t.match(it.refusal(channel('se'), inventory('north')), { message: /does not serve DE, only SE/ })
  it.do(channel('se'), inventory('north'), country('SE'))
  it.do(country('DE'), inventory('south'), channel('de'))
  t.match(it.refusal(country('SE')), { details: { commandIndex: 0, member: 'countryCode' } })
  t.end()
})

t.test('any order of the commands is answered alike', (t) => {
  const commands = [channel('se'), country('SE'), inventory('north'), country('DE'), channel('de')]
  fc.assert(
    fc.property(fc.shuffledSubarray(commands, { minLength: 1 }), (batch) => {
      const last = (type: string) => batch.findLast((command) => command.type === type)
      const wanted = last('setChannelKey') as { value: string } | undefined
      const at = last('setDeliveryAddress') as { countryCode: string } | undefined
      const from = last('setDeliveryInventory') as { inventoryKey: string } | undefined
      const rules = wanted === undefined ? null : CHANNELS[wanted.value]!
      const fits =
        rules === null ||
        ((at === undefined || rules.countries.includes(at.countryCode)) &&
          (from === undefined || rules.inventories.includes(from.inventoryKey)))
      if (order().apply(...batch).ok !== fits) throw new Error(`to be ${String(fits)}`)
    }),
  )
  t.end()
})

t.test('a channel sells in its own currency', (t) => {
  t.match(order().refusal(channel('us')), {
    code: 'INVALID_COMMAND',
    message: /channel us sells in USD, the order is in EUR/,
    details: { commandIndex: 0, member: 'value' },
  })
  const made = new OrderDriver({ channels })
  t.match(made.create([], { channelKey: 'us' }), {
    ok: false,
    errors: [{ code: 'INVALID_COMMAND', details: { member: 'channelKey' } }],
  })
  t.ok(made.create([], { channelKey: 'us', currencyCode: 'USD' }).ok)
  t.end()
})

t.test('a channel that changes stops no other command', (t) => {
  const known = { ...CHANNELS }
  const it = new OrderDriver({
    channels: { any: () => true, get: (key) => known[key] ?? null },
  })
  it.create([{ type: 'createDelivery', deliveryId: id(1) }, channel('se'), country('SE')])
  known['se'] = { currencyCode: 'USD', inventories: [], countries: ['NO'] }
  t.ok(it.apply({ type: 'addTag', key: 'a' }).ok)
  delete known['se']
  t.ok(it.apply(country('DE')).ok)
  t.end()
})
