// Commands that make invoices and cancel them. Source: commerce/README.md "Numbers", "Machines",
// "Commands".

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../../config/limits.ts'
import { assert, RequestError } from '../../../protocol/errors.ts'
import { fromUnits, toUnits } from '../../../protocol/money.ts'
import { move } from '../../actor/machine.ts'
import { invalidState } from '../../actor/refuse.ts'
import { commandMembers, Id, Tag } from '../../actor/shapes.ts'
import type { OrderDraft } from '../draft.ts'
import type { BillableRef } from '../records/records.ts'
import { type InvoiceLine, isCancelled } from '../state/state.ts'
import { command } from './command.ts'
import { creditLine, lineOfLine, lineOfShipping } from './invoice-lines.ts'

const DEFAULT_PREFIX = 'I'

/** An invoice line, and a discount on it, in the record, about. */
const LINE_CHARS = 400
const DISCOUNT_CHARS = 150
const PART_CHARS = 40

const invoiceMembers = commandMembers({
  numberPrefix: Type.Optional(Tag),
  mixed: Type.Optional(Type.Boolean()),
})

/**
 * All that is released and not yet invoiced goes on an invoice; what is credited (returns) on one
 * of its own unless `mixed`. The amounts are those that the order shows, so that they are brought
 * up to date first.
 */
export const invoice = command('invoice', invoiceMembers, (draft, { numberPrefix, mixed }) => {
  const { state } = draft
  if (state.state === 'cancelled') {
    invalidState(`order ${state.orderNumber} is cancelled: it can't be invoiced`)
  }
  draft.countInvoice()
  draft.calculate()
  const debits = debitDrafts(draft)
  const credits = creditDrafts(draft)
  const count = debits.length + credits.length
  if (count === 0) {
    throw new RequestError(
      'NOTHING_TO_INVOICE',
      'nothing is released to invoicing that is not invoiced yet: use ' +
        'releaseOrderLineToInvoicing or releaseShippingToInvoicing first',
    )
  }
  draft.room(state.invoiceLines.size + count - 1, LIMITS.order.invoiceLinesMax, 'invoice lines')
  const prefix = numberPrefix ?? DEFAULT_PREFIX
  if (mixed === true) {
    issue(draft, prefix, [...debits, ...credits])
    return
  }
  if (debits.length > 0) issue(draft, prefix, debits)
  if (credits.length > 0) issue(draft, prefix, credits)
})

/** Makes a line once its invoice has an id and the line a number. */
type LineDraft = (
  made: readonly InvoiceLine[],
  place: { readonly invoiceId: string; readonly number: number },
) => InvoiceLine

function debitDrafts(draft: OrderDraft): LineDraft[] {
  const { state } = draft
  const drafts: LineDraft[] = []
  for (const line of state.lines.values()) {
    if (!line.released || line.invoiceId !== null) continue
    if (isCancelled(state.deliveries.get(line.deliveryId)!)) continue
    drafts.push((_made, place) => lineOfLine(draft, line, place))
  }
  for (const delivery of state.deliveries.values()) {
    if (!delivery.released || delivery.invoiceId !== null || isCancelled(delivery)) continue
    drafts.push((_made, place) => lineOfShipping(draft, delivery, place))
  }
  return drafts
}

/**
 * A line's return is credited as far as the line was debited: on an invoice before, or on one that
 * this command makes. Others stay released until it is.
 */
function creditDrafts(draft: OrderDraft): LineDraft[] {
  const { state } = draft
  const drafts: LineDraft[] = []
  for (const item of state.returns.values()) {
    if (!item.released || item.invoiceId !== null) continue
    const { orderLineId, invoiceId, released } = draft.line(item.orderLineId)
    if (invoiceId === null && !released) continue
    drafts.push((made, place) => {
      const { invoiceId: on, invoiceLineId } = draft.line(orderLineId)
      const original =
        on !== null && invoiceLineId !== null
          ? { invoiceId: on, invoiceLineId }
          : made.find((line) => line.referenceId === orderLineId)
      assert(original !== undefined, 'debits come before their credits')
      return creditLine(draft, item, { place, original })
    })
  }
  return drafts
}

function issue(draft: OrderDraft, prefix: string, drafts: readonly LineDraft[]): void {
  const { state, digits } = draft
  draft.copies(JSON.stringify(state.invoiceAddress).length)
  const invoiceId = draft.turn.newId()
  const lines: InvoiceLine[] = []
  for (const make of drafts) lines.push(make(lines, { invoiceId, number: lines.length + 1 }))
  let net = 0
  let tax = 0
  for (const line of lines) {
    draft.copies((line.description?.length ?? 0) + LINE_CHARS)
    draft.copies((line.parts?.length ?? 0) * PART_CHARS)
    for (const { description } of line.discounts) {
      draft.copies((description?.length ?? 0) + DISCOUNT_CHARS)
    }
    net += toUnits(line.net, digits)
    tax += toUnits(line.tax, digits)
  }
  const n = state.lastInvoiceNumber + 1
  draft.commit({
    t: 'invoiceCreated',
    invoiceId,
    invoiceNumber: `${prefix}${state.orderNumber}-${n}`,
    n,
    invoiceAddress: state.invoiceAddress,
    invoiceTotal: fromUnits(net + tax, digits),
    invoiceNetTotal: fromUnits(net, digits),
    invoiceTaxTotal: fromUnits(tax, digits),
    lines,
  })
}

/**
 * The invoice stays as a document, marked cancelled; what stands on it is released again. One with
 * credits on it stays until they are cancelled.
 */
export const cancelInvoice = command(
  'cancelInvoice',
  commandMembers({ invoiceId: Id }),
  (draft, given) => {
    const { state } = draft
    const found = draft.invoice(given.invoiceId)
    const { invoiceId, invoiceNumber, invoiceTotal, invoiceLineIds } = found
    move(`invoice ${invoiceNumber}`, found.isCancelled ? 'cancelled' : 'active', {
      from: ['active'],
      to: 'cancelled',
    })
    checkNoCredits(draft, invoiceId, invoiceNumber)
    const frees = invoiceLineIds.map((id): BillableRef => {
      const line = state.invoiceLines.get(id)!
      return [line.referenceType, line.referenceId]
    })
    draft.commit({
      t: 'invoiceCancelled',
      invoiceId,
      invoiceNumber,
      invoiceTotal,
      lines: invoiceLineIds,
      frees,
    })
  },
)

/** What is credited stays debited: credits on other invoices are cancelled first. */
function checkNoCredits(draft: OrderDraft, invoiceId: string, invoiceNumber: string): void {
  for (const line of draft.state.invoiceLines.values()) {
    if (line.originalInvoiceId !== invoiceId || line.invoiceId === invoiceId) continue
    const credit = draft.state.invoices.get(line.invoiceId)!
    if (credit.isCancelled) continue
    invalidState(
      `invoice ${credit.invoiceNumber} credits a line of invoice ${invoiceNumber}: cancel that ` +
        'first',
    )
  }
}
