// Routes: what is believed of what was heard, in whatever order it was said.

import t from 'tap'
import fc from 'fast-check'
import { Routes } from './routes.ts'

t.test(
  'the highest epoch wins, whoever said it and when; the first of an epoch stays',
  async () => {
    const saying = fc.record({
      shard: fc.integer({ min: -1, max: 3 }),
      epoch: fc.integer({ min: 0, max: 6 }),
      incarnation: fc.constantFrom('a', 'b', 'c'),
    })
    fc.assert(
      fc.property(fc.array(saying, { maxLength: 40, size: 'max' }), (sayings) => {
        const routes = new Routes()
        for (const [i, said] of sayings.entries()) {
          const before = sayings.slice(0, i).filter(({ shard }) => shard === said.shard)
          const isNews = before.every(({ epoch }) => epoch < said.epoch)
          if (routes.learn(said.shard, said) !== isNews) return false
        }
        return [-1, 0, 1, 2, 3].every((shard) => {
          const heard = sayings.filter((said) => said.shard === shard)
          const highest = Math.max(...heard.map(({ epoch }) => epoch))
          return routes.of(shard) === (heard.find(({ epoch }) => epoch === highest) ?? null)
        })
      }),
    )
  },
)
