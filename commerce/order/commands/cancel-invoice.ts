// cancelInvoice: the invoice stays as a document, marked cancelled; what stands on it is released
// again. Source: COMMERCE 3 (invoice), 5 row 62.

import { command } from '../command.ts'
import { move } from '../machines.ts'
import type { BillableRef } from '../records.ts'
import { notFound } from '../refuse.ts'
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
