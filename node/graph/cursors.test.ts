// Cursors are sealed: nobody else makes one, reads one or uses one for another query.

import fc from 'fast-check'
import t from 'tap'
import { cursorSeal } from './cursors.ts'

const seal = cursorSeal('secret')
const any = fc.string({ unit: 'grapheme' })

t.test('what was sealed is opened again', async () => {
  fc.assert(
    fc.property(any, any, (text, of) => {
      const cursor = seal.seal(text, of)
      return seal.open(cursor, of) === text && seal.seal(text, of) === cursor
    }),
  )
})

t.test('of another query, or another store, it is none', async () => {
  fc.assert(
    fc.property(any, any, any, (text, of, other) => {
      const cursor = seal.seal(text, of)
      if (cursorSeal('another').open(cursor, of) !== null) return false
      return of === other || seal.open(cursor, other) === null
    }),
  )
})

t.test('with any change it is none', async () => {
  fc.assert(
    fc.property(
      any,
      fc.nat(),
      fc.constantFrom('A', 'b', '7', '-', '=', ' ', ''),
      (text, at, put) => {
        const cursor = seal.seal(text, 'q')
        const i = at % cursor.length
        const changed = cursor.slice(0, i) + put + cursor.slice(i + 1)
        return changed === cursor || seal.open(changed, 'q') === null
      },
    ),
  )
})

t.test('what it says is not to be read in it', async (t) => {
  const cursor = seal.seal('["customer 4711"]', 'q')
  t.notMatch(Buffer.from(cursor, 'base64url').toString('latin1'), /4711/)
  for (const garbage of ['', 'x', 'AQ', 'é', 'a'.repeat(100)])
    t.equal(seal.open(garbage, 'q'), null)
})
