// The highest amounts of an order. Source: commerce/README.md "Arithmetic".

import { LIMITS } from '../../../config/limits.ts'
import { fromUnits } from '../../../protocol/money.ts'
import { invalid } from '../../actor/refuse.ts'

/** Highest amount in minor units: LIMITS.commerce.amountMax, lower where it would not be exact. */
export function amountUnitsMax(digits: number): number {
  return Math.min(LIMITS.commerce.amountMax * 10 ** digits, LIMITS.order.amountUnitsMax)
}

/** The amount; refuses one that is too high. */
export function bounded(units: number, digits: number, what: string): number {
  if (units <= amountUnitsMax(digits)) return units
  invalid(`${what} is more than ${fromUnits(amountUnitsMax(digits), digits)}`, what)
}
