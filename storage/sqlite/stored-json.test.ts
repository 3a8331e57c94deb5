// Documents come out of their stored text as they went in, and no stored name has U+0000.

import { deepStrictEqual } from 'node:assert'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import fc from 'fast-check'
import { parseStored, patternOf, storedJson, storedName } from './stored-json.ts'

const name = fc.string({ unit: fc.constantFrom('\u0000', '\u0001', '0', '1', 'x'), maxLength: 5 })
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    name,
    fc.constantFrom(1, null, true),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4 }),
  ),
}))

t.test('what is stored comes back', async () => {
  fc.assert(
    fc.property(value, (one) => {
      deepStrictEqual(parseStored(storedJson(one)), JSON.parse(JSON.stringify(one)))
    }),
    { numRuns: 500 },
  )
})

t.test('no two names are stored as one, and none with U+0000', async (t) => {
  fc.assert(
    fc.property(name, name, (a, b) => {
      if (storedName(a).includes('\u0000')) throw new Error('U+0000 is left')
      if (a !== b && storedName(a) === storedName(b)) throw new Error('one name for two')
    }),
    { numRuns: 500 },
  )
  t.equal(storedName('plain'), 'plain')
})

t.test('what is looked for in a stored text is found wherever a value has it', async (t) => {
  const db = new DatabaseSync(':memory:')
  t.teardown(() => db.close())
  const glob = db.prepare('SELECT ? GLOB ? AS found')
  const finds = (stored: unknown, pattern: string | null): boolean =>
    pattern === null || glob.get(storedJson(stored), pattern)!['found'] === 1
  const text = fc.string({
    unit: fc.constantFrom(...'aé😀*?[]^-"\\\n\u0000\u0001\u007f\u2028'),
    maxLength: 8,
  })
  fc.assert(
    fc.property(text, text, text, fc.double({ noNaN: true }), (a, b, c, n) => {
      if (!finds([1, { x: a + b + c }], patternOf(b, 'holds'))) throw new Error('a part')
      if (!finds([1, { x: b }], patternOf(b, 'is'))) throw new Error('a text')
      if (Number.isFinite(n) && !finds([1, { x: n }], patternOf(n, 'is')))
        throw new Error('a number')
    }),
    { numRuns: 1_000 },
  )
  t.equal(patternOf('a[b', 'is'), '*"a[[]b"*')
  t.notOk(finds(['xa[b'], patternOf('a[b', 'is')))
  t.notOk(finds(['a[x'], patternOf('a[b', 'holds')))
  for (const bare of ['ab', 'a"bc', 'a\\bc', 'a\nbc']) t.equal(patternOf(bare, 'holds'), null)
})
