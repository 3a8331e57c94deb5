// Where numbers are free again: whatever is taken, the number found is free, and all below it that
// were looked at are taken, so that nothing which was seen to be free is passed over.

import t from 'tap'
import fc from 'fast-check'
import { seeded } from '../../testing/harness.ts'
import { boundaryAbove } from './number-search.ts'

/** Stretches of taken numbers, one behind the other, with free ones between. */
const stretches = fc.array(
  fc.record({
    taken: fc.integer({ min: 1, max: 50_000 }),
    free: fc.integer({ min: 1, max: 5_000 }),
  }),
  { minLength: 1, maxLength: 6 },
)

t.test('whatever is taken, it goes on at the lowest number that it has seen free', async () => {
  await fc.assert(
    fc.asyncProperty(stretches, fc.integer(), async (some, seed) => {
      const looked = new Map<number, boolean>()
      const isTaken = (n: number): boolean => {
        let end = 0
        for (const { taken, free } of some) {
          if (n <= end + taken) return n > end
          end += taken + free
        }
        return false
      }
      const found = await boundaryAbove({
        after: 1,
        nextAbove: (n) => n + 1,
        isTaken: (n) => {
          looked.set(n, isTaken(n))
          return isTaken(n)
        },
        random: seeded(seed),
      })
      if (isTaken(found)) throw new Error(`${found} is taken`)
      const passed = [...looked.keys()].find((n) => n < found && !looked.get(n)!)
      if (passed !== undefined) throw new Error(`${found} was chosen, ${passed} is free`)
    }),
    { numRuns: 200 },
  )
})
