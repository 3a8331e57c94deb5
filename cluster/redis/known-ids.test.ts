// Ids that come again, against the plain list of all that came.

import t from 'tap'
import fc from 'fast-check'
import { KnownIds } from './known-ids.ts'

t.test('of the last ones each is known, over every change of tables; none is made up', async () => {
  const max = fc.integer({ min: 1, max: 6 })
  fc.assert(
    fc.property(max, fc.array(fc.nat(12), { maxLength: 80, size: 'max' }), (most, ids) => {
      const known = new KnownIds(most)
      /** Those that were new when they came, in their order. */
      const taken: number[] = []
      for (const id of ids) {
        const isNew = known.isNew(`${id}-0`)
        if (isNew && taken.slice(-most).includes(id)) return false
        // Twice as many are kept at most: what came before is forgotten.
        if (!isNew && !taken.slice(-2 * most).includes(id)) return false
        if (isNew) taken.push(id)
      }
      return true
    }),
    { numRuns: 500 },
  )
})
