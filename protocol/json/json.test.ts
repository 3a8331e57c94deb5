// parseJson against the platform's own parser, hand-picked attacks, and noise.

import fc from 'fast-check'
import t from 'tap'
import { JSON_DEPTH_MAX, JSON_MEMBERS_MAX, JSON_VALUES_MAX, parseJson } from './json.ts'
import { invalidUtf8At } from './json-fault.ts'
import { RequestError } from '../errors.ts'

const parse = (text: string): unknown => parseJson(Buffer.from(text))

function refusal(value: unknown): RequestError {
  if (!(value instanceof RequestError)) throw new Error(`expected a refusal, got ${typeof value}`)
  return value
}

const messageOf = (text: string): string => refusal(parse(text)).message
const positionOf = (text: string): unknown => refusal(parse(text)).errors[0]!.details!['position']

t.test('what is JSON comes back as JSON.parse gives it', (t) => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 8 }), (text) => {
      const value = parse(text)
      if (text.includes('__proto__')) return
      t.same(value instanceof RequestError, false)
      if (JSON.stringify(value) !== JSON.stringify(JSON.parse(text))) throw new Error(text)
    }),
  )
  for (const text of [
    '0',
    '-0',
    '1e3',
    '"\\ud83d\\ude00"',
    ' [1 , 2] ',
    '{"a":{"b":null}}',
    '""',
  ]) {
    t.same(parse(text), JSON.parse(text), text)
  }
  t.end()
})

t.test('a view into a larger buffer is read within its bounds', (t) => {
  const large = Buffer.from('garbage{"a":1}garbage')
  t.same(parseJson(new Uint8Array(large.buffer, large.byteOffset + 7, 7)), { a: 1 })
  t.end()
})

t.test('escapes of lone surrogates are refused with their place', (t) => {
  t.equal(positionOf('"ab\\ud800"'), 3)
  t.equal(positionOf('["\\udc00x"]'), 2)
  t.equal(positionOf('"\\ud800\\u0041"'), 1)
  t.equal(positionOf('"\\udc00\\udc00"'), 1)
  t.equal(positionOf('"\\uD83D\\uD83D\\uDE00"'), 1)
  t.match(messageOf('{"\\uDBFF":1}'), /half of a surrogate pair/)
  t.same(parse('"\\\\ud800"'), '\\ud800', 'an escaped backslash starts no escape')
  t.end()
})

t.test('keys that reach a prototype are refused, the same words elsewhere are not', (t) => {
  for (const text of [
    '{"__proto__":{"admin":true}}',
    '[{"a":{"__proto__" : 1}}]',
    '{"\\u005f_proto__":1}',
    '{"__proto\\u005f_":1}',
  ]) {
    t.match(messageOf(text), /__proto__/, text)
  }
  t.match(messageOf('{"constructor":{"prototype":{"x":1}}}'), /constructor/)
  t.match(messageOf('{"a":[{"c\\u006fnstructor":{"prototype":1}}]}'), /constructor/)
  t.same(parse('["__proto__"]'), ['__proto__'])
  t.same(parse('{"a":"__proto__"}'), { a: '__proto__' })
  t.same(parse('{"maker":"constructor"}'), { maker: 'constructor' })
  t.end()
})

t.test('nesting is bounded before anything is built', (t) => {
  const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
  t.notOk(parse(nested(JSON_DEPTH_MAX)) instanceof RequestError)
  t.match(messageOf(nested(JSON_DEPTH_MAX + 1)), /deeper than 64 levels at byte 64/)
  t.match(messageOf('{"a":'.repeat(5_000_000)), /deeper/)
  t.notOk(parse(`"${'['.repeat(1000)}"`) instanceof RequestError, 'brackets in strings are text')
  t.equal(refusal(parseJson(Buffer.from('[[[1]]]'), 2)).errors[0]!.details!['depthMax'], 2)
  t.end()
})

t.test('numbers that a double cannot hold are refused', (t) => {
  for (const text of ['1e999', '[-1e400]', '{"a":1E+309}', '1e-400', '0.1e-999', '9'.repeat(400)]) {
    t.match(messageOf(text), /out of range/, text.slice(0, 20))
  }
  for (const text of ['1e308', '0e999', '0.0', '1e-300', '123456789012345678901234567890', '1.5']) {
    t.equal(parse(text), Number(text), text)
  }
  t.equal(parse('"1e999"'), '1e999')
  t.end()
})

t.test('broken syntax is explained by line, column and what would be right', (t) => {
  t.match(messageOf('{\n  "a": 1,\n  b: 2\n}'), /line 3, column 3 there is 'b', expected a key/)
  t.match(messageOf('[1 2]'), /column 4 there is '2', expected ',' or '\]'/)
  t.match(messageOf('{"a" 1}'), /expected ':'/)
  t.match(messageOf('[1,]'), /expected a JSON value/)
  t.match(messageOf('{"a":1'), /the end of the text, expected ',' or '}'/)
  t.match(messageOf(''), /the end of the text, expected a JSON value/)
  t.match(messageOf('"a\nb"'), /U\+000A/)
  t.match(messageOf('"\\x"'), /a JSON escape/)
  t.match(messageOf('"\\u12g4"'), /a hex digit/)
  t.match(messageOf('01'), /expected the end of the text/)
  t.match(messageOf('nul'), /expected null/)
  t.match(messageOf('\ufeff{}'), /byte order mark/)
  t.equal(positionOf('{"a":tru}'), 8)
  t.equal(positionOf('{"a b": " c ", "d":tru}'), 22, 'spaces in texts are none of it')
  t.end()
})

t.test('invalid UTF-8 is refused with the first bad byte', (t) => {
  const cases: [number[], number][] = [
    [[0x22, 0xff, 0x22], 1],
    [[0x22, 0xc3, 0x22], 1],
    [[0x22, 0xed, 0xa0, 0x80, 0x22], 1],
    [[0x22, 0xc0, 0x80, 0x22], 1],
    [[0x22, 0x61, 0xf4, 0x90, 0x80, 0x80, 0x22], 2],
    [[0x22, 0xe2, 0x82], 1],
  ]
  for (const [bytes, at] of cases) {
    const error = refusal(parseJson(Uint8Array.from(bytes)))
    t.same(error.errors[0]!.details, { position: at })
  }
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  const valid = (bytes: Uint8Array): boolean => {
    try {
      utf8.decode(bytes)
      return true
    } catch {
      return false
    }
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 12 }), (bytes) => {
      const at = invalidUtf8At(bytes)
      if (valid(bytes) !== (at === bytes.length))
        throw new Error(Buffer.from(bytes).toString('hex'))
      if (!valid(bytes.subarray(0, at))) throw new Error('the bytes before the fault are valid')
    }),
    { numRuns: 2000 },
  )
  t.end()
})

// A second, slow opinion on what may pass: every number and key as the parser itself saw it.
function harmless(text: string): boolean {
  let good = true
  type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown
  const look: Reviver = (key, value, context) => {
    if (key === '__proto__') good = false
    if (typeof value === 'number') {
      const mantissa = (context.source ?? '').split(/e/i)[0]!
      if (!Number.isFinite(value) || (value === 0 && /[1-9]/.test(mantissa))) good = false
    }
    if (typeof value === 'string' && !value.isWellFormed()) good = false
    if (!key.isWellFormed()) good = false
    return value
  }
  JSON.parse(text, look as (key: string, value: unknown) => unknown)
  return good
}

t.test('noise never throws, and what passes is harmless JSON', (t) => {
  const piece = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '\\',
    '\\u',
    'd800',
    '\\udc00',
    '1',
    'e',
    '9',
    '-',
    '.',
    '999',
    'true',
    'null',
    ' ',
    '\n',
    '"a"',
    '"__proto__"',
    '"\\u005f_proto__"',
    'é',
    '😀',
    '\u0000',
  )
  const noise = fc.oneof(
    fc.array(piece, { maxLength: 14 }).map((p) => p.join('')),
    fc.string(),
  )
  let taken = 0
  fc.assert(
    fc.property(noise, (text) => {
      const value = parse(text)
      let valid = true
      try {
        JSON.parse(text)
      } catch {
        valid = false
      }
      // fc's strings may hold lone surrogates, which become U+FFFD on the way to bytes.
      const expected = valid && harmless(Buffer.from(text).toString())
      if (expected === value instanceof RequestError) throw new Error(JSON.stringify(text))
      if (expected) taken++
    }),
    { numRuns: 20_000 },
  )
  t.ok(taken > 100, `some of the noise is JSON (${taken})`)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      parseJson(bytes)
    }),
    { numRuns: 5000 },
  )
  t.end()
})

t.test('many values and members are refused before anything is made of them', (t) => {
  const read = (text: string): unknown => parseJson(Buffer.from(text))
  const listed = (n: number): string => `[${Array(n).fill('0').join()}]`
  t.equal((read(listed(JSON_VALUES_MAX - 2)) as unknown[]).length, JSON_VALUES_MAX - 2)
  const keys = (n: number): string =>
    `{${Array.from({ length: n }, (_, i) => `"${i}":[1,2]`).join()}}`
  t.equal(Object.keys(read(keys(JSON_MEMBERS_MAX)) as object).length, JSON_MEMBERS_MAX)
  for (const text of [
    listed(JSON_VALUES_MAX),
    '{},'.repeat(JSON_VALUES_MAX),
    keys(JSON_MEMBERS_MAX + 1),
    `[${keys(JSON_MEMBERS_MAX + 1)}]`,
  ]) {
    const refused = read(text)
    t.ok(refused instanceof RequestError)
    t.equal((refused as RequestError).errors[0]!.code, 'TOO_LARGE')
  }
  t.end()
})

t.test('a fault far away is not looked for', (t) => {
  const fault = (text: string): unknown =>
    (parseJson(Buffer.from(text)) as RequestError).errors[0]!.message
  t.match(fault('\n'.repeat(200_000) + '!'), /line 200001, column 1 there is '!'/)
  t.match(
    fault('\n'.repeat(2_000_000) + '!'),
    /line 262145, column 1 there is something further on/,
  )
  t.match(fault('!' + '\n'.repeat(2_000_000)), /line 1, column 1 there is '!'/)
  t.end()
})
