// Money: rounding by hand, the fast ways against big.js, currencies.

import { Big } from 'big.js'
import fc from 'fast-check'
import t from 'tap'
import {
  addDecimals,
  fromUnits,
  hasDecimals,
  includedTax,
  isCurrency,
  minorDigits,
  partOf,
  portionOf,
  priceUnits,
  roundDecimals,
  roundFactor,
  shareOf,
  toUnits,
} from './money.ts'

const HALF_AWAY = Big.roundHalfUp
const digits = fc.integer({ min: 0, max: 4 })
/** Numbers as people write them, and the noise that floating point arithmetic leaves. */
const price = fc.oneof(
  fc.tuple(fc.nat(10_000_000), fc.integer({ min: 0, max: 6 })).map(([n, d]) => n / 10 ** d),
  fc.double({ min: 0, max: 1e12, noNaN: true }),
  fc.tuple(fc.nat(1_000), fc.nat(1_000)).map(([a, b]) => a * 0.1 + b * 0.7),
)
const factor = fc.oneof(
  fc.constantFrom(0, 0.25, 0.2, 0.19, 0.06, 0.08875, 1, 1 / 3),
  fc.double({ min: 0, max: 1_000, noNaN: true }),
)
const units = fc.oneof(fc.nat(100_000), fc.integer({ min: 0, max: 1e15 }))

/** `value` in whole numbers, rounded half away from zero: the plain way. */
const whole = (value: Big): number => Number(value.round(0, HALF_AWAY).toFixed(0))

t.test('rounds half away from zero, by the decimal notation', (t) => {
  t.equal(toUnits(1.005, 2), 101, 'although the double lies below 1.005')
  t.equal(toUnits(-1.005, 2), -101)
  t.equal(toUnits(1.0049, 2), 100)
  t.equal(toUnits(0.5, 0), 1)
  t.equal(toUnits(2.5, 0), 3)
  t.equal(toUnits(0.0005, 3), 1)
  t.equal(toUnits(-0.001, 2), 0)
  t.notOk(Object.is(toUnits(-0.001, 2), -0), 'no -0')
  t.equal(roundDecimals(1.00005, 4), 1.0001)
  t.equal(roundDecimals(12.3, 4), 12.3)
  t.equal(fromUnits(1234, 2), 12.34)
  t.end()
})

t.test('products, shares, portions and taxes worked by hand', (t) => {
  t.equal(priceUnits(3, 9.99, 2), 2_997)
  t.equal(priceUnits(0.5, 0.01, 2), 1, 'half a cent is one')
  t.equal(priceUnits(1.5, 99, 0), 149)
  t.equal(priceUnits(1_000_000_000, 0.1234, 3), 123_400_000_000)
  t.equal(priceUnits(999_999_999.9999, 1_000, 2), 99_999_999_999_990)
  t.equal(portionOf(999, 0.1), 100)
  t.equal(shareOf(100, 1, 3), 33)
  t.equal(shareOf(5, 1, 10), 1, 'half a unit is one')
  t.equal(includedTax(12_500, 0.25), 2_500)
  t.equal(includedTax(100, 0.19), 16)
  t.equal(partOf(1_000, { quantity: 3, part: 1, factor: 1 }), 333)
  t.equal(partOf(1_000, { quantity: 4, part: 1, factor: 0.5 }), 125)
  t.equal(addDecimals(0.1, 0.2), 0.3)
  t.equal(addDecimals(5, -4.9999), 0.0001)
  t.end()
})

t.test('knows the minor units of currencies', (t) => {
  t.equal(minorDigits('EUR'), 2)
  t.equal(minorDigits('JPY'), 0)
  t.equal(minorDigits('KRW'), 0)
  t.equal(minorDigits('KWD'), 3)
  t.equal(minorDigits('TND'), 3)
  t.equal(minorDigits('CLF'), 4)
  t.ok(isCurrency('SEK'))
  for (const code of ['', 'eur', 'EURO', 'ABC', 'XXX', 'constructor']) t.notOk(isCurrency(code))
  t.throws(() => minorDigits('ABC'), { message: 'no such currency: ABC' })
  t.end()
})

t.test('has all currencies of the language tables but those that were abolished', (t) => {
  const without = Intl.supportedValuesOf('currency').filter((code) => !isCurrency(code))
  t.strictSame(
    without,
    ['HRK', 'SLL', 'XDR', 'XSU'].filter((code) => without.includes(code)),
  )
  t.end()
})

t.test('toUnits equals big.js', (t) => {
  fc.assert(
    fc.property(price, digits, (value, d) => {
      const exact = Number(
        Big(value)
          .times(10 ** d)
          .round(0, HALF_AWAY)
          .toFixed(0),
      )
      return toUnits(value, d) === exact && toUnits(-value, d) === 0 - exact
    }),
    { numRuns: 2_000 },
  )
  t.end()
})

t.test('roundDecimals equals big.js, and hasDecimals follows', (t) => {
  fc.assert(
    fc.property(price, digits, (value, d) => {
      const exact = Number(Big(value).round(d, HALF_AWAY).toString())
      return roundDecimals(value, d) === exact && hasDecimals(value, d) === (exact === value)
    }),
    { numRuns: 2_000 },
  )
  t.end()
})

t.test('units of up to 15 digits survive the way to a JSON number and back', (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1e15 - 1 }), digits, (n, d) => {
      return toUnits(JSON.parse(JSON.stringify(fromUnits(n, d))) as number, d) === n
    }),
    { numRuns: 2_000 },
  )
  t.end()
})

t.test('products equal big.js', (t) => {
  const quantity = price.map((value) => roundDecimals(Math.min(value, 1e9), 4))
  const unitPrice = price.map((value) => roundDecimals(value, 4))
  fc.assert(
    fc.property(quantity, unitPrice, digits, (q, p, d) => {
      return (
        priceUnits(q, p, d) ===
        whole(
          Big(q)
            .times(p)
            .times(10 ** d),
        )
      )
    }),
    { numRuns: 2_000 },
  )
  t.end()
})

t.test('portions, shares and included taxes equal big.js', (t) => {
  const Exact = Big()
  Exact.DP = 60
  fc.assert(
    fc.property(units, factor, (amount, f) => {
      if (portionOf(amount, f) !== whole(Big(amount).times(f))) return false
      // 60 digits tell an exact half from its neighbours: numerator and denominator have fewer.
      const tax = Exact(amount).times(f).div(Exact(f).plus(1))
      return includedTax(amount, f) === whole(tax)
    }),
    { numRuns: 2_000 },
  )
  fc.assert(
    fc.property(units, units, units, (a, b, c) => {
      const [part, sum] = [Math.min(b, c), Math.max(b, c, 1)]
      return shareOf(a, part, sum) === whole(Exact(a).times(part).div(sum))
    }),
    { numRuns: 2_000 },
  )
  t.end()
})

t.test('factors keep what is written and lose noise beyond 18 decimals', (t) => {
  t.equal(roundFactor(0.25), 0.25)
  t.equal(roundFactor(1 / 3), 1 / 3)
  t.equal(roundFactor(1e-30), 0)
  fc.assert(
    fc.property(fc.double({ min: 1e-2, max: 1e3, noNaN: true }), (f) => {
      return Math.abs(roundFactor(f) - f) < 1e-17 * Math.max(1, f * 100)
    }),
  )
  t.end()
})
