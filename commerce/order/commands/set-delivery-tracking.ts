// setDeliveryTracking: who carries a delivery and how to follow it, in any state; null clears.
// Source: commerce/README.md "Commands".

import { Type } from '@sinclair/typebox'
import { command } from '../command.ts'
import { difference } from '../difference.ts'
import { invalid } from '../refuse.ts'
import { commandMembers, Id, Key, nullable, Text } from '../shapes.ts'

const schema = commandMembers({
  deliveryId: Id,
  carrier: Type.Optional(nullable(Key)),
  trackingNumber: Type.Optional(nullable(Key)),
  trackingUrl: Type.Optional(nullable(Text)),
})

export const setDeliveryTracking = command('setDeliveryTracking', schema, (draft, wanted) => {
  const delivery = draft.delivery(wanted.deliveryId)
  if (typeof wanted.trackingUrl === 'string' && !/^https?:\/\/\S+$/i.test(wanted.trackingUrl)) {
    invalid('trackingUrl must be an address that begins with https:// or http://', 'trackingUrl')
  }
  const { deliveryId, carrier, trackingNumber, trackingUrl } = delivery
  const changed = difference(
    { carrier, trackingNumber, trackingUrl },
    {
      carrier: wanted.carrier,
      trackingNumber: wanted.trackingNumber,
      trackingUrl: wanted.trackingUrl,
    },
  )
  if (changed !== null) draft.commit({ t: 'deliveryChanged', deliveryId, ...changed })
})
