// Quantities and prices of an invoice file as integers: ten-thousandths, so that a row's amount is
// exact to the penny without a float ever holding a fraction. Source: commerce/README.md "Values".

/** One unit, in ten-thousandths. */
export const E4 = 10_000

/** Largest price that is kept exactly as a JSON number with four decimals. */
export const PRICE_E4_MAX = Number.MAX_SAFE_INTEGER
/** Largest quantity of an order line (commerce/README.md "Values"). */
export const QUANTITY_E4_MAX = 1_000_000_000 * E4

const PENNY = 1_000_000
const ZERO = 48

/**
 * Ten-thousandths of a plain decimal (`6`, `-2.55`, `17.0`), as an integer; `null` for anything
 * else, for more than four decimals that say something, and for what an integer can't hold.
 */
export function parseE4(text: string): number | null {
  let at = text.charCodeAt(0) === 45 ? 1 : 0
  const start = at
  let value = 0
  let digit = text.charCodeAt(at) - ZERO
  while (digit >= 0 && digit <= 9) {
    value = value * 10 + digit
    digit = text.charCodeAt(++at) - ZERO
  }
  if (at === start) return null
  value *= E4
  if (text.charCodeAt(at) === 46) {
    const point = at
    let unit = E4 / 10
    digit = text.charCodeAt(++at) - ZERO
    while (digit >= 0 && digit <= 9) {
      if (unit < 1 && digit !== 0) return null
      if (unit >= 1) value += digit * unit
      unit /= 10
      digit = text.charCodeAt(++at) - ZERO
    }
    if (at === point + 1) return null
  }
  if (at !== text.length || !Number.isSafeInteger(value)) return null
  return start === 1 && value !== 0 ? -value : value
}

/**
 * The number that stands for so many ten-thousandths. The quotient of two integers is the double
 * nearest to the decimal, so it prints as the decimal that was read.
 */
export function fromE4(value: number): number {
  return value / E4
}

/** Quantity times price in pennies, rounded half away from zero; both are not negative. */
export function rowPennies(quantityE4: number, unitPriceE4: number): bigint {
  const product = quantityE4 * unitPriceE4
  if (product <= Number.MAX_SAFE_INTEGER) {
    // Remainders of integers are exact, quotients are not: so divide what divides evenly.
    const rest = product % PENNY
    return BigInt((product - rest) / PENNY + (rest * 2 >= PENNY ? 1 : 0))
  }
  const exact = BigInt(quantityE4) * BigInt(unitPriceE4)
  return (exact + BigInt(PENNY / 2)) / BigInt(PENNY)
}

/** `482646649n` as `4826466.49`. */
export function formatPennies(pennies: bigint): string {
  const sign = pennies < 0n ? '-' : ''
  const digits = (pennies < 0n ? -pennies : pennies).toString().padStart(3, '0')
  return `${sign}${digits.slice(0, -2)}.${digits.slice(-2)}`
}
