// What a sales channel asks of its orders: its currency, the inventories that it has, the countries
// that it serves. The rules hold for what a batch leaves, in whichever order its commands came.
// They look at what the batch changed, so that a channel that changes stops no other command.
// Source: specification "Release-note resources (2026.1)", commerce/README.md "Commands".

import { RequestError } from '../../protocol/errors.ts'
import type { Channel } from './channels.ts'
import type { OrderDraft } from './draft.ts'
import type { OrderRecord } from './records/records.ts'
import { type Delivery, isCancelled } from './state/state.ts'

/** A rule that the batch breaks, and the place of the record that made it so. */
export interface ChannelFault {
  readonly error: RequestError
  readonly record: number
}

/** The first rule of the order's channel that the records of a draft break, or null. */
export function channelFault(draft: OrderDraft): ChannelFault | null {
  const { channelKey, deliveries } = draft.state
  if (channelKey === null || !draft.channels.any()) return null
  const changed = changesOf(draft.records)
  const channel = draft.channels.get(channelKey)
  if (changed.channel !== null) {
    const fault = channelFaultOf(draft, channelKey, channel)
    const member = draft.records[changed.channel]!.t === 'orderCreated' ? 'channelKey' : 'value'
    if (fault !== null) return { error: broken(fault, member), record: changed.channel }
  }
  if (channel === null) return null
  for (const delivery of deliveries.values()) {
    if (delivery.state === 'completed' || isCancelled(delivery)) continue
    for (const member of ['inventoryKey', 'countryCode'] as const) {
      const record = changed[member].get(delivery.deliveryId) ?? changed.channel
      if (record === null) continue
      const fault = deliveryFault(channelKey, channel, { delivery, member })
      if (fault === null) continue
      const own = changed[member].has(delivery.deliveryId)
      return { error: broken(fault, own ? member : 'value'), record }
    }
  }
  return null
}

interface Changes {
  channel: number | null
  readonly inventoryKey: Map<string, number>
  readonly countryCode: Map<string, number>
}

/** The last record of each change that a channel has a say in. */
function changesOf(records: readonly OrderRecord[]): Changes {
  const changes: Changes = { channel: null, inventoryKey: new Map(), countryCode: new Map() }
  records.forEach((record, i) => {
    if (record.t === 'orderCreated' && record.channelKey !== undefined) changes.channel = i
    if (record.t === 'orderChanged' && record.after.channelKey !== undefined) changes.channel = i
    if (record.t === 'deliveryChanged' && record.after.inventoryKey !== undefined) {
      changes.inventoryKey.set(record.deliveryId, i)
    }
    if (record.t === 'addressChanged' && record.after.countryCode !== undefined) {
      if (record.deliveryId !== null) changes.countryCode.set(record.deliveryId, i)
    }
  })
  return changes
}

function channelFaultOf(draft: OrderDraft, key: string, channel: Channel | null): string | null {
  if (channel === null)
    return `there is no channel ${key}: it is to be one of those under channels/`
  const { currencyCode } = draft.state
  if (channel.currencyCode === currencyCode) return null
  return `channel ${key} sells in ${channel.currencyCode}, the order is in ${currencyCode}`
}

function deliveryFault(
  key: string,
  { inventories, countries }: Channel,
  of: { readonly delivery: Delivery; readonly member: 'inventoryKey' | 'countryCode' },
): string | null {
  const { inventoryKey, address, deliveryNumber } = of.delivery
  const served = of.member === 'inventoryKey' ? inventories : countries
  const value = of.member === 'inventoryKey' ? inventoryKey : (address.countryCode ?? null)
  if (value === null || served.length === 0 || served.includes(value)) return null
  const only = `only ${served.join(', ')} (delivery ${deliveryNumber})`
  return of.member === 'inventoryKey'
    ? `channel ${key} has no inventory ${value}, ${only}`
    : `channel ${key} does not serve ${value}, ${only}`
}

function broken(message: string, member: string): RequestError {
  return new RequestError('INVALID_COMMAND', message, { member })
}
