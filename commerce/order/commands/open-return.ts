// Which returns may still be changed: those that are not invoiced. Source: commerce/README.md
// "Machines".

import type { Draft } from '../draft.ts'
import { invalidState } from '../refuse.ts'
import type { Return } from '../state.ts'

export function openReturn(draft: Draft, id: string): Return {
  const item = draft.return(id)
  if (item.invoiceId !== null) {
    const { invoiceNumber } = draft.state.invoices.get(item.invoiceId)!
    invalidState(`return ${item.returnId} is invoiced: cancel invoice ${invoiceNumber} first`)
  }
  return item
}
