// Commands on the order itself: its state, its channel, its customer, its address, its log. Source:
// specification "Actor", commerce/README.md "Commands", "Machines", "Values", "Journal".

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { difference, mapDifference } from '../../actor/difference.ts'
import type { Json, JsonObject } from '../../actor/json.ts'
import { moveTo } from '../../actor/machine.ts'
import { invalid, invalidState } from '../../actor/refuse.ts'
import { commandMembers, JsonMembers, Key, nullable } from '../../actor/shapes.ts'
import type { OrderDraft } from '../draft.ts'
import { invoiceAddressProperties } from '../messages/shapes.ts'
import type { DeliveryMove } from '../records/records.ts'
import { DELIVERY_MOVES, ORDER_MOVES } from '../state/machines.ts'
import { INVOICE_ADDRESS_MEMBERS, ORDER_STATES, type OrderStateName } from '../state/state.ts'
import { callingCommand, command } from './command.ts'

/** A delivery's id and states in the record, about. */
const MOVE_CHARS = 64

const setOrderStateMembers = commandMembers({
  orderState: Type.Unsafe<OrderStateName>(Type.String({ enum: [...ORDER_STATES] })),
})

/**
 * The order's own state machine; deliveries that are not final go with a cancellation and come back
 * with it.
 */
export const setOrderState = command(
  'setOrderState',
  setOrderStateMembers,
  (draft, { orderState }) => {
    const { state } = draft
    if (state.state === orderState) return
    const to = moveTo(`order ${state.orderNumber}`, state.state, orderState, ORDER_MOVES)
    if (state.state === 'confirmed' && to === 'pending') checkUntouched(draft)
    if (to === 'cancelled') checkCancellable(draft)
    const deliveries = cascade(draft, state.state, to)
    draft.copies(deliveries.length * MOVE_CHARS)
    draft.commit({
      t: 'orderStateChanged',
      from: state.state,
      to,
      ...(deliveries.length > 0 && { deliveries }),
    })
  },
)

/** confirmed -> pending: nothing may be under way yet. */
function checkUntouched(draft: OrderDraft): void {
  for (const delivery of draft.state.deliveries.values()) {
    if (delivery.state !== 'processing' && delivery.state !== 'completed') continue
    invalidState(
      `delivery ${delivery.deliveryNumber} is ${delivery.state}: the order can't go back to ` +
        'pending',
    )
  }
  checkNoInvoice(draft, 'go back to pending')
}

function checkCancellable(draft: OrderDraft): void {
  for (const delivery of draft.state.deliveries.values()) {
    if (delivery.state !== 'completed') continue
    invalidState(`delivery ${delivery.deliveryNumber} is completed: the order can't be cancelled`)
  }
  checkNoInvoice(draft, 'be cancelled')
}

function checkNoInvoice(draft: OrderDraft, what: string): void {
  for (const invoice of draft.state.invoices.values()) {
    if (invoice.isCancelled) continue
    invalidState(
      `invoice ${invoice.invoiceNumber} is not cancelled: the order can't ${what} before that`,
    )
  }
}

/** Deliveries that go with a cancellation, or come back from it. */
function cascade(draft: OrderDraft, from: OrderStateName, to: OrderStateName): DeliveryMove[] {
  if (to === 'cancelled') return moves(draft, 'orderCancelled')
  return from === 'cancelled' ? moves(draft, 'orderReopened') : []
}

function moves(draft: OrderDraft, name: 'orderCancelled' | 'orderReopened'): DeliveryMove[] {
  const { from, to } = DELIVERY_MOVES[name]
  const found: DeliveryMove[] = []
  for (const { deliveryId, state } of draft.state.deliveries.values()) {
    if ((from as readonly string[]).includes(state)) found.push([deliveryId, state, to])
  }
  return found
}

/**
 * The sales channel of the order; it must be a configured one when there are any (channel-rules.ts,
 * at the end of the batch). Source: specification "Actor", commerce/README.md "Commands".
 */
export const setChannelKey = command(
  'setChannelKey',
  commandMembers({ value: Key }),
  (draft, { value }) => {
    const changed = difference({ channelKey: draft.state.channelKey }, { channelKey: value })
    if (changed !== null) draft.commit({ t: 'orderChanged', ...changed })
  },
)

/** The customer of the order; null clears. */
export const setCustomerNumber = command(
  'setCustomerNumber',
  commandMembers({ value: nullable(Key) }),
  (draft, { value }) => {
    const { customerNumber } = draft.state
    const changed = difference({ customerNumber }, { customerNumber: value })
    if (changed !== null) draft.commit({ t: 'orderChanged', ...changed })
  },
)

/** Members that are sent replace those that are there, null clears. */
export const setInvoiceAddress = command(
  'setInvoiceAddress',
  commandMembers(invoiceAddressProperties),
  (draft, wanted) => {
    const current = draft.state.invoiceAddress as Readonly<Record<string, string>>
    const changed = mapDifference(current, wanted, INVOICE_ADDRESS_MEMBERS)
    if (changed !== null) draft.commit({ t: 'addressChanged', deliveryId: null, ...changed })
  },
)

const setLocaleMembers = commandMembers({
  locale: nullable(Type.String({ minLength: 1, maxLength: LIMITS.commerce.tagCharsMax })),
})

/** The language in which the customer is spoken to, as a BCP 47 tag; null clears. */
export const setLocale = command('setLocale', setLocaleMembers, (draft, { locale }) => {
  if (locale !== null && !/^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/.test(locale)) {
    invalid(`${JSON.stringify(locale)} is not a language tag such as en or sv-SE`, 'locale')
  }
  const changed = difference({ locale: draft.state.locale }, { locale })
  if (changed !== null) draft.commit({ t: 'orderChanged', ...changed })
})

/** Type of the natural key `externalReference`. */
export const EXTERNAL_REFERENCE_KEY = 'order!externalReference'

/**
 * The order's name in another system, unique over all orders; null gives it up. Source:
 * commerce/README.md "Commands", ARCHITECTURE 4.
 */
export const setExternalReference = callingCommand(
  'setExternalReference',
  commandMembers({ value: nullable(Key) }),
  function* (draft, { value }) {
    const before = draft.state.externalReference
    if (value === before) return
    if (value !== null) {
      const reserved = yield { call: 'reserve', keyType: EXTERNAL_REFERENCE_KEY, key: value }
      if (reserved !== true) {
        throw new RequestError('ALREADY_EXISTS', `another order has externalReference ${value}`, {
          member: 'value',
        })
      }
    }
    draft.commit({
      t: 'orderChanged',
      before: { externalReference: before },
      after: { externalReference: value },
    })
  },
)

/**
 * A line of human text in the order's activity log; {placeholders} of the template are filled from
 * `dynamic`.
 */
export const addActivityLog = command(
  'addActivityLog',
  commandMembers({
    messageTemplate: Type.String({ minLength: 1, maxLength: LIMITS.commerce.textCharsMax }),
    dynamic: Type.Optional(JsonMembers),
  }),
  (draft, { messageTemplate, dynamic }) => {
    const message = fill(messageTemplate, dynamic ?? {})
    if (message.length > LIMITS.commerce.dynamicCharsMax) {
      invalid(
        `the filled message is longer than ${LIMITS.commerce.dynamicCharsMax} characters`,
        'dynamic',
      )
    }
    draft.copies(message.length)
    draft.commit({
      t: 'activityLogged',
      messageTemplate,
      message,
      ...(dynamic !== undefined && { dynamic }),
    })
  },
)

/** `{a.b}` becomes the text of dynamic.a.b; one that names nothing stays as it is. */
function fill(template: string, dynamic: JsonObject): string {
  let length = 0
  return template.replace(/\{([^{}]+)\}/g, (placeholder, path: string) => {
    if (length > LIMITS.commerce.dynamicCharsMax) return placeholder
    let value: Json | undefined = dynamic
    for (const key of path.trim().split('.')) {
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) {
        return placeholder
      }
      value = (value as JsonObject)[key]
    }
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    length += text.length
    return text
  })
}
