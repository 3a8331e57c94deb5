// cancelInvoice: the invoice stays as a document, marked cancelled; what stands on it is released
// again. One with credits on it stays until they are cancelled. Source: commerce/README.md
// "Machines", "Commands".

import { command } from '../command.ts'
import type { Draft } from '../draft.ts'
import { move } from '../machines.ts'
import type { BillableRef } from '../records.ts'
import { invalidState, notFound } from '../refuse.ts'
import { commandMembers, Id } from '../shapes.ts'

export const cancelInvoice = command(
  'cancelInvoice',
  commandMembers({ invoiceId: Id }),
  (draft, given) => {
    const { state } = draft
    const invoice = state.invoices.get(given.invoiceId.toLowerCase())
    if (invoice === undefined) notFound('invoice', given.invoiceId, 'invoiceId')
    const { invoiceId, invoiceNumber, invoiceTotal, invoiceLineIds, isCancelled } = invoice
    move(`invoice ${invoiceNumber}`, isCancelled ? 'cancelled' : 'active', {
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
function checkNoCredits(draft: Draft, invoiceId: string, invoiceNumber: string): void {
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
