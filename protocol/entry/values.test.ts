// Values in their binary form: what is read is what JSON would have made of it, and bytes that
// aren't what was written are refused, or read as something, but never hang or read elsewhere.

import { deepStrictEqual, throws } from 'node:assert'
import fc from 'fast-check'
import t from 'tap'
import { countIn, ValueReader } from './value-reader.ts'
import { ValueWriter } from './value-writer.ts'
import { VALUE_DEPTH_MAX } from './values.ts'

const writer = new ValueWriter()

function written(...values: readonly unknown[]): Buffer {
  const take = (isWide: boolean): void => {
    writer.begin(isWide)
    for (const value of values) writer.value(value)
  }
  take(false)
  if (writer.needsWide) take(true)
  // Something stands before and behind it, as in a piece of memory that many share.
  const piece = Buffer.alloc(writer.size + 7, 0xff)
  writer.into(piece, 3)
  return piece.subarray(3, 3 + writer.size)
}

function read(bytes: Uint8Array): unknown {
  const reader = new ValueReader(bytes)
  const value = reader.value()
  reader.end()
  return value
}

function passed(bytes: Uint8Array): void {
  const reader = new ValueReader(bytes)
  reader.pass()
  reader.end()
}

const viaJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const texts = fc.oneof(
  fc.string(),
  fc.string({ unit: 'grapheme' }),
  // Halves of surrogate pairs, too.
  fc.array(fc.nat(0xffff)).map((units) => String.fromCharCode(...units)),
  fc.nat(9000).map((n) => 'x'.repeat(n)),
)
const numbers = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.integer().map((n) => n / 100),
  fc.constantFrom(-0, 0.1 + 0.2, 2 ** 31, 2 ** 31 / 100, 2 ** 53, -(2 ** 53), 1e21, 5e-324, NaN),
)
const names = fc.oneof(texts, fc.constantFrom('__proto__', 'constructor', 'toString', '1', ''))
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { depthSize: 'medium' },
    texts,
    numbers,
    fc.constantFrom(null, true, false),
    fc.array(tie('json')),
    fc.array(fc.constantFrom(null, undefined), { minLength: 10, maxLength: 40 }),
    fc
      .array(fc.tuple(names, fc.oneof(tie('json'), fc.constant(undefined))))
      .map((members) => Object.fromEntries(members)),
  ),
}))

t.test('any value is read as JSON would have it', async () => {
  fc.assert(
    fc.property(json, (value) => {
      const bytes = written(value)
      deepStrictEqual(read(bytes), viaJson(value))
      passed(bytes)
    }),
    { numRuns: 500 },
  )
})

t.test('several values are read one after the other', async (t) => {
  const bytes = written('é', [1, 'ж'], { a: '語' })
  const reader = new ValueReader(bytes)
  t.strictSame([reader.value(), reader.value(), reader.value()], ['é', [1, 'ж'], { a: '語' }])
  reader.end()
})

t.test('what JSON writes by itself, or not at all', async (t) => {
  const day = new Date(0)
  const odd = { day, none: undefined, run: () => 1, list: [undefined, () => 1] }
  t.strictSame(read(written(odd)), viaJson(odd))
  t.throws(() => written(1n), /BigInt/)
})

t.test('bytes of another length are refused', async () => {
  fc.assert(
    fc.property(json, fc.nat(), (value, n) => {
      const bytes = written(value)
      throws(() => read(bytes.subarray(0, n % bytes.length)))
      throws(() => read(Buffer.concat([bytes, bytes.subarray(0, 1 + (n % bytes.length))])))
    }),
    { numRuns: 200 },
  )
})

t.test('damaged bytes are refused or read as some value', async () => {
  const change = fc.tuple(fc.nat(), fc.nat(255))
  fc.assert(
    fc.property(json, fc.array(change, { minLength: 1, maxLength: 4 }), (value, changes) => {
      const bytes = Buffer.from(written(value))
      for (const [at, byte] of changes) bytes[at % bytes.length] = byte
      countIn(bytes)
      for (const look of [passed, (all: Buffer) => JSON.stringify(read(all))]) {
        try {
          look(bytes)
        } catch (error) {
          if (!String(error).includes('not the bytes of an entry')) throw error
        }
      }
    }),
    { numRuns: 1000 },
  )
})

t.test('nesting has a bound, for who writes and for who reads', async (t) => {
  const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)])
  t.strictSame(read(written(nested(VALUE_DEPTH_MAX))), nested(VALUE_DEPTH_MAX))
  t.throws(() => written(nested(VALUE_DEPTH_MAX + 1)), /nested/)
  t.strictSame(read(written('next')), 'next', 'the writer goes on')
  // Lists of one in each other, more of them than a stack has room for.
  const bytes = Buffer.alloc(200_000, 0x91)
  bytes.set([0xe2, 0xba, 0x9a, 0x0c, 0, 0])
  t.throws(() => read(bytes), /nested too deep/)
  t.throws(() => passed(bytes), /nested too deep/)
})
