// Money: decimal arithmetic on JSON numbers, and the minor units of currencies. An amount under way
// is an integer of minor units; big.js is the arithmetic, and where a result provably fits into
// safe integers they are used instead (money.test.ts holds both against each other). Source:
// commerce/README.md "Values", ISO 4217.

import { Big } from 'big.js'
import { assert } from './errors.ts'

/** Decimals that prices, values and quantities are kept with (commerce/README.md "Values"). */
export const PRICE_DECIMALS = 4

/** big.js: round half away from zero. */
const HALF_AWAY = Big.roundHalfUp
/** Up to 15 significant digits a decimal notation and its double tell each other exactly. */
const EXACT_MAX = 1e15
const SAFE_MAX = Number.MAX_SAFE_INTEGER
const POWERS = [1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8]
/** Factors with so many decimals go the fast way. */
const FACTOR_SCALE = 1e6

/**
 * An own constructor, so that no other user of big.js can change our rounding: quotients are
 * whole numbers, rounded half away from zero in the division itself.
 */
const Decimal = Big()
Decimal.DP = 0
Decimal.RM = HALF_AWAY

const TWO_DECIMALS =
  'AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN ' +
  'BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP ' +
  'GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK ' +
  'LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK ' +
  'NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SLL SOS SRD ' +
  'SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD XCG ' +
  'YER ZAR ZMW ZWG ZWL'
/** The exceptions of ISO 4217, by their number of decimals. */
const OTHERS: Readonly<Record<number, string>> = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
}

const CURRENCIES: ReadonlyMap<string, number> = new Map([
  ...TWO_DECIMALS.split(' ').map((code): [string, number] => [code, 2]),
  ...Object.entries(OTHERS).flatMap(([digits, codes]) =>
    codes.split(' ').map((code): [string, number] => [code, Number(digits)]),
  ),
])

/** All currencies of ISO 4217, in order. */
export function currencyCodes(): readonly string[] {
  return [...CURRENCIES.keys()].sort()
}

/** True for a currency of ISO 4217 with its code in capitals. */
export function isCurrency(code: string): boolean {
  return CURRENCIES.has(code)
}

/** Decimals of a currency's minor unit: EUR 2, JPY 0, KWD 3. The code must be a known one. */
export function minorDigits(currencyCode: string): number {
  const digits = CURRENCIES.get(currencyCode)
  assert(digits !== undefined, `no such currency: ${currencyCode}`)
  return digits
}

/**
 * A finite number in units of 10^-digits, rounded half away from zero by its decimal notation:
 * 1.005 is 101 cents although its double lies below. `digits` 0 to 8. The result is an integer,
 * exact while below 2^53.
 */
export function toUnits(value: number, digits: number): number {
  const power = POWERS[digits]!
  const units = Math.round(value * power)
  // The double nearest to units / power is `value`, and with 15 digits or fewer that means that
  // both have the same decimal notation.
  if (units / power === value && units < EXACT_MAX && units > -EXACT_MAX) return units + 0
  return Number(Decimal(value).times(power).round(0, HALF_AWAY).toFixed(0)) + 0
}

/** The number that units of 10^-digits are: the inverse of toUnits, exact to 15 digits. */
export function fromUnits(units: number, digits: number): number {
  return units / POWERS[digits]!
}

/** `value` rounded half away from zero to `digits` decimals, by its decimal notation. */
export function roundDecimals(value: number, digits: number): number {
  if (digits < POWERS.length) {
    const power = POWERS[digits]!
    const units = Math.round(value * power)
    if (units / power === value && units < EXACT_MAX && units > -EXACT_MAX) return value + 0
  }
  return Number(Decimal(value).round(digits, HALF_AWAY).toString()) + 0
}

/** True when the decimal notation of `value` has at most `digits` decimals. */
export function hasDecimals(value: number, digits: number): boolean {
  return roundDecimals(value, digits) === value
}

/** The sum of two quantities or amounts, exact: both have at most PRICE_DECIMALS decimals. */
export function addDecimals(a: number, b: number): number {
  return fromUnits(toUnits(a, PRICE_DECIMALS) + toUnits(b, PRICE_DECIMALS), PRICE_DECIMALS)
}

/** Returns a factor as it is kept, rounded to 18 decimals: what lies beyond is noise. */
export function roundFactor(factor: number): number {
  return scaledFactor(factor) === null ? roundDecimals(factor, 18) : factor
}

/** `quantity * price` in minor units, rounded once. Both have at most PRICE_DECIMALS decimals. */
export function priceUnits(quantity: number, price: number, digits: number): number {
  const product = toUnits(quantity, PRICE_DECIMALS) * toUnits(price, PRICE_DECIMALS)
  if (product <= SAFE_MAX) return divideRounded(product, POWERS[2 * PRICE_DECIMALS - digits]!)
  const exact = Decimal(quantity).times(price).times(POWERS[digits]!)
  return Number(exact.round(0, HALF_AWAY).toFixed(0))
}

/** `round(amount * factor)`: amount in minor units, not negative; factor not negative. */
export function portionOf(amount: number, factor: number): number {
  const scaled = scaledFactor(factor)
  if (scaled !== null && amount * scaled <= SAFE_MAX) {
    return divideRounded(amount * scaled, FACTOR_SCALE)
  }
  return Number(Decimal(amount).times(factor).round(0, HALF_AWAY).toFixed(0))
}

/** The tax inside a gross amount: `round(amount - amount / (1 + factor))`, in minor units. */
export function includedTax(amount: number, factor: number): number {
  const scaled = scaledFactor(factor)
  if (scaled !== null && amount * scaled <= SAFE_MAX) {
    return divideRounded(amount * scaled, FACTOR_SCALE + scaled)
  }
  // amount * f / (1 + f) is the same number, with one division to round.
  return Number(Decimal(amount).times(factor).div(Decimal(factor).plus(1)).toFixed(0))
}

/** `round(amount * part / whole)`, in minor units; all not negative, whole above 0. */
export function shareOf(amount: number, part: number, whole: number): number {
  const product = amount * part
  if (product <= SAFE_MAX) return divideRounded(product, whole)
  return Number(Decimal(amount).times(part).div(whole).toFixed(0))
}

/**
 * `round(amount / quantity * part * factor)`, in minor units: what a part of a line is worth.
 * Rounded once, at the end.
 */
export function partOf(
  amount: number,
  of: { readonly quantity: number; readonly part: number; readonly factor: number },
): number {
  const product = Decimal(amount).times(of.part).times(of.factor)
  return Number(product.div(of.quantity).toFixed(0))
}

/** n / d for safe integers n >= 0, d > 0, rounded half up: `%` is exact, so this is too. */
function divideRounded(n: number, d: number): number {
  const rest = n % d
  const floor = (n - rest) / d
  return rest >= d - rest ? floor + 1 : floor
}

/** Returns the factor in millionths when it is a whole number of them, else null. */
function scaledFactor(factor: number): number | null {
  const scaled = Math.round(factor * FACTOR_SCALE)
  return scaled / FACTOR_SCALE === factor && scaled < EXACT_MAX ? scaled : null
}
