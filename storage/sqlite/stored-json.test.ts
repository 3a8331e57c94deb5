// Documents come out of their stored text as they went in, and no stored name has U+0000.

import { deepStrictEqual } from 'node:assert'
import t from 'tap'
import fc from 'fast-check'
import { parseStored, storedJson, storedName } from './stored-json.ts'

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
