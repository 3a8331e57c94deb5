// Where the log ends, in one number that another thread reads as it was stored.

import t from 'tap'
import { SharedEnd } from './shared-end.ts'

t.test('a position comes back, in whatever thread', (t) => {
  const end = new SharedEnd()
  const other = new SharedEnd(end.buffer)
  t.equal(other.load(), null, 'nothing was stored')
  const positions = [1, 511, 2 ** 32 - 1, 2 ** 32, 2 ** 33 + 7, 2 ** 40 - 1]
  for (const file of [1, 2, 70_000, 2 ** 22]) {
    for (const position of positions) {
      end.store({ file, position })
      t.same(other.load(), { file, position })
    }
  }
  end.store({ file: 3, position: 0 })
  t.same(other.load(), { file: 3, position: 0 })
  t.end()
})
