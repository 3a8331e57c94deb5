// Quantities as lines and returns have them: a decimal above 0 with at most four decimals; more are
// refused, not rounded. Source: commerce/README.md "Values".

import { hasDecimals, PRICE_DECIMALS } from '../../../protocol/money.ts'
import { invalid } from '../refuse.ts'

export function checkQuantity(quantity: number, member = 'quantity'): void {
  if (hasDecimals(quantity, PRICE_DECIMALS) && quantity > 0) return
  invalid(`${member} ${quantity} must have at most ${PRICE_DECIMALS} decimals`, member)
}

export function checkSkus(skus: Readonly<Record<string, number>>): void {
  for (const sku of Object.keys(skus)) checkQuantity(skus[sku]!, `skus.${sku}`)
}
