// The filter language: what can be written, what it becomes, and where a mistake is shown. That
// filters mean what they say, missing values and all, is the matter of
// storage/conformance/search.ts.

import fc from 'fast-check'
import t from 'tap'
import { SCHEMA } from '../../../storage/conformance/search-nodes.ts'
import { codePointOrder } from '../../../storage/conformance/search-terms.ts'
import { compareText, compileCondition } from '../evaluate.ts'
import { dateMs, instantMs, instantText } from './instants.ts'
import { SyntaxMistake } from './lexer.ts'
import type { Condition } from '../plan.ts'
import { typeFilter } from './typing.ts'

const NOW = Date.parse('2026-01-31T12:00:00.000Z')
const scope = { node: SCHEMA.nodes.get('library')!, nowMs: NOW, depthMax: 32, mayName: () => true }
const typed = (text: string): Condition => typeFilter(text, scope)

function mistake(text: string): string {
  try {
    typed(text)
  } catch (error) {
    if (error instanceof SyntaxMistake) return `${error.position}: ${error.message}`
    throw error
  }
  return 'none'
}

/** The constant that `field operator` is compared with. */
function constantOf(text: string): unknown {
  const condition = typed(text)
  if (condition.kind !== 'compare') return condition.kind
  const { left, right } = condition
  return right.kind === 'value' ? right.value : left.kind === 'value' ? left.value : null
}

void t.test('constants', (t) => {
  const constants: [string, unknown][] = [
    ["name == 'a'", 'a'],
    ['name == "a"', 'a'],
    [String.raw`name == 'it\'s "\\" \n'`, String.raw`it's "\" \n`],
    ['area == 1', 1],
    ['area == -1.5', -1.5],
    ['area == 2e3', 2000],
    ['area == 25%', 0.25],
    ['area == 0.1%', 0.001],
    ['area == 1 + 2 - 4', -1],
    ['area == (1)', 1],
    ['isPublic == true', true],
    ['libraryId == 0190A000-0000-7000-8000-000000000001', '0190a000-0000-7000-8000-000000000001'],
    ["libraryId == '0190A000-0000-7000-8000-000000000001'", '0190a000-0000-7000-8000-000000000001'],
    ['openedAt == now', '2026-01-31T12:00:00.000Z'],
    ['openedAt > now - 7 days', '2026-01-24T12:00:00.000Z'],
    ['openedAt > now-1week+1day', '2026-01-25T12:00:00.000Z'],
    ['openedAt > 2 hours + now', '2026-01-31T14:00:00.000Z'],
    ['openedAt > now - 90 seconds', '2026-01-31T11:58:30.000Z'],
    ['openedAt + 1 day > now', '2026-01-30T12:00:00.000Z'],
    ['now < openedAt + 1 minute', '2026-01-31T11:59:00.000Z'],
    ["openedAt >= '2026-01-31'", '2026-01-31T00:00:00.000Z'],
    ['openedAt >= 2026-01-31T10:00Z', '2026-01-31T10:00:00.000Z'],
    ["openedAt >= '2026-01-31T10:00:00.123456+02:00'", '2026-01-31T08:00:00.123Z'],
    ["openedAt == '2026-01-31' + 1 day", '2026-02-01T00:00:00.000Z'],
    ["closesOn == '2026-02-28'", '2026-02-28'],
    ['closesOn + 1 week < 2026-02-28', '2026-02-21'],
    ["dynamic->'x' > now", '2026-01-31T12:00:00.000Z'],
  ]
  for (const [text, value] of constants) t.equal(constantOf(text), value, text)
  t.end()
})

void t.test('grammar', (t) => {
  t.match(typed("name == 'a' or name == 'b' and not isPublic"), {
    kind: 'or',
    of: [{ kind: 'compare' }, { kind: 'and', of: [{ kind: 'compare' }, { kind: 'not' }] }],
  })
  t.match(typed("not name == 'a' and isPublic"), { kind: 'and', of: [{ kind: 'not' }, {}] })
  t.match(typed('not not isPublic'), { kind: 'not', of: { kind: 'not' } })
  t.match(typed("name in ['a', 'b', 'a']"), { kind: 'in', values: ['a', 'b'] })
  t.match(typed("dynamic->'x' in [1, 'a', nothing, 2]"), {
    kind: 'or',
    of: [
      { kind: 'missing' },
      { kind: 'in', as: 'number', values: [1, 2] },
      { kind: 'in', as: 'text', values: ['a'] },
    ],
  })
  t.same(typed('name in []'), { kind: 'constant', value: false })
  t.match(typed("tags allof ['a', 'b']"), { kind: 'array', operator: 'allof' })
  t.same(typed('nothing == null'), { kind: 'constant', value: true })
  t.match(typed("now - openedAt > 2 days and name endsWith 'b'"), {
    of: [
      { as: 'number', right: { value: 172_800_000 } },
      { kind: 'text', operator: 'endsWith' },
    ],
  })
  t.match(typed("dynamic->'in'->'d.e' == 1"), { left: { path: ['dynamic', 'in', 'd.e'] } })
  t.end()
})

void t.test('mistakes', (t) => {
  const mistakes: [string, string | RegExp][] = [
    ['', '0: found the end, expected a field or a value'],
    ['name ==', '7: found the end, expected a field or a value'],
    ["name = 'a'", '5: "=" has no meaning in a filter; equality is =='],
    ["name == 'a' && isPublic", /^12: "&" has no meaning.*use and/],
    ["name == 'a", "8: the string that starts here has no closing '"],
    ["(name == 'a'", '12: found the end, expected and, or, or )'],
    ["name == 'a')", '11: found ")", expected and, or, or the end'],
    ["name == 'a' == 'b'", '12: found "==", expected and, or, or the end'],
    ["and name == 'a'", '0: found "and", expected a field or a value'],
    ["name in 'a'", /^8: found the string "a", expected a list/],
    ["name in ['a' 'b']", '13: found the string "b", expected a comma or ]'],
    ['name in [motto]', '9: found "motto", expected a value'],
    ["dynamic->x == 'a'", /^9: found "x", expected a quoted member name/],
    ['openedAt > now - 1.5 days', '17: a duration needs a whole number, found 1.5'],
    ['nme == 1', /^0: library has no field nme; did you mean name/],
    ['area == 1 or address.flor == 1', /^13: address has no member flor; did you mean floor/],
    ["name->'x' == 'a'", '0: name is text, -> is for dynamic'],
    ["address.floor->'x' == 1", '0: address.floor is a number, -> is for dynamic'],
    ["area == 'a'", "5: a number can't be compared with text"],
    ['name == 1', "5: text can't be compared with a number"],
    ['area == 5 days', "5: a number can't be compared with a duration"],
    ["dynamic->'x' > 5 days", /can't be compared with a duration/],
    ['isPublic < true', '9: booleans have no order; use == or !='],
    ['area > nothing', '5: nothing has no order; use == or !='],
    ['area + 1 == nothing', '5: only a field can be compared with nothing'],
    ['area', '0: a number is no condition; compare it with something'],
    ['name and isPublic', '0: text is no condition; compare it with something'],
    ["libraryId == 'abc'", '13: "abc" is not a UUID'],
    ["openedAt == 'soon'", /^12: "soon" is not a timestamp, as in/],
    ['openedAt == 2026-02-30', /^12: "2026-02-30" is not a date, as in/],
    ["closesOn == 'x'", /^12: "x" is not a date, as in/],
    ['closesOn + 1 hour == now', '9: a date is moved by whole days or weeks only'],
    ['openedAt + openedAt > now', "9: a timestamp can't be added to a timestamp"],
    ["name + 'a' == 'b'", /is not a timestamp/],
    ['openedAt > now - 999999 weeks', /outside the years 0 to 9999/],
    ['tags == 1', "5: a list of text can't be compared with a number"],
    ["tags in ['a']", /^5: a list of text is tested with anyof or allof/],
    ["name anyof ['a']", '5: anyof is for lists; text is tested with in'],
    ['tags anyof [1]', "12: text can't be compared with a number"],
    ["tags anyof ['a', nothing]", '17: a list never holds nothing'],
    ["area startsWith 'a'", '0: startsWith is for text, this is a number'],
    ["raw == 'a'", "4: a JSON value can't be compared with text"],
    ['area == 1e999', '8: the number 1e999 is too large'],
    [`${'('.repeat(33)}isPublic${')'.repeat(33)}`, /^33: nested deeper/],
    [`area == 1${' + area'.repeat(40)}`, /longer sum, than 32/],
  ]
  for (const [text, expected] of mistakes) {
    if (typeof expected === 'string') t.equal(mistake(text), expected, text)
    else t.match(mistake(text), expected, text)
  }
  t.equal(mistake(`isPublic${' or isPublic'.repeat(500)}`), 'none', 'a chain is not nested')
  t.end()
})

void t.test('any text is a filter or a mistake with its place', (t) => {
  const word = fc.constantFrom(
    ...'name area == != < ( ) [ ] , . -> + - % and or not in anyof now 7 days 1'.split(' '),
    "'a'",
    'dynamic',
    'nothing',
    '2026-01-01',
    '\\',
    "'",
    '😀',
  )
  fc.assert(
    fc.property(fc.array(word, { maxLength: 12 }), fc.constantFrom('', ' '), (words, space) => {
      const text = words.join(space)
      const said = mistake(text)
      const position = Number(/^\d+/.exec(said)?.[0] ?? 0)
      return said === 'none' || (position >= 0 && position <= text.length)
    }),
    { numRuns: 2_000 },
  )
  t.end()
})

void t.test('text goes by code point', (t) => {
  const text = fc.string({
    unit: fc.constantFrom('a', 'b', 'é', '\uD7FF', '\uE000', '\uFFFF', '😀'),
  })
  fc.assert(
    fc.property(text, text, (a, b) => {
      const utf8 = Buffer.compare(Buffer.from(a), Buffer.from(b))
      const order = Math.sign(compareText(a, b))
      return order === utf8 && order === Math.sign(codePointOrder(a, b))
    }),
  )
  t.end()
})

void t.test('nothing below a list or a value', (t) => {
  const test = compileCondition(typed("dynamic->'x'->'length' != nothing"))
  t.notOk(test({ dynamic: { x: [1] } }))
  t.notOk(test({ dynamic: { x: 'abc' } }))
  t.ok(test({ dynamic: { x: { length: 1 } } }))
  t.notOk(compileCondition(typed("dynamic->'toString' != nothing"))({ dynamic: {} }))
  t.end()
})

void t.test('an enum field is compared only with what it can be', (t) => {
  t.equal(constantOf("kind == 'small'"), 'small')
  t.equal(mistake("kind == 'smal'"), '8: "smal" is none of small, large; did you mean small?')
  t.equal(mistake("kind in ['large', 'huge']"), '18: "huge" is none of small, large')
  t.equal(mistake("'huge' != kind"), '0: "huge" is none of small, large')
  t.equal(
    mistake("kind == nothing or kind contains 'mall'"),
    'none',
    'a part of one may be asked for',
  )
  t.end()
})

void t.test('instants', (t) => {
  t.equal(instantMs('2026-01-31T12:00:00Z'), Date.UTC(2026, 0, 31, 12))
  t.equal(instantMs('2026-01-31T12:00:00.5-01:30'), Date.UTC(2026, 0, 31, 13, 30, 0, 500))
  for (const text of ['2026-01-31', '2026-01-31T12:00:00', '2026-01-31T24:00:00Z', 'x', '']) {
    t.equal(instantMs(text), null, text)
  }
  t.equal(dateMs('2024-02-29'), Date.UTC(2024, 1, 29))
  for (const text of ['2026-02-29', '2026-13-01', '2026-1-1']) t.equal(dateMs(text), null, text)
  t.equal(instantText(Date.UTC(10_000, 0, 1)), null)
  t.equal(instantText(Number.NaN), null)
  t.end()
})
