// setInvoiceAddress: members that are sent replace those that are there, null clears.
// Source: commerce/README.md "Values", "Commands".

import { command } from '../command.ts'
import { mapDifference } from '../difference.ts'
import { commandMembers, invoiceAddressProperties } from '../shapes.ts'
import { INVOICE_ADDRESS_MEMBERS } from '../state.ts'

export const setInvoiceAddress = command(
  'setInvoiceAddress',
  commandMembers(invoiceAddressProperties),
  (draft, wanted) => {
    const current = draft.state.invoiceAddress as Readonly<Record<string, string>>
    const changed = mapDifference(current, wanted, INVOICE_ADDRESS_MEMBERS)
    if (changed !== null) draft.commit({ t: 'addressChanged', deliveryId: null, ...changed })
  },
)
