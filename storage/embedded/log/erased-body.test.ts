// Bodies as readers of a log get them from which entries are gone.

import t from 'tap'
import { ERASED_ENTRY, joinEntries, splitEntries } from '../../../protocol/entry/entry.ts'
import { withErased } from './erased-body.ts'

const NOTHING = Buffer.alloc(0)
const [ONE, TWO] = [Buffer.from('one'), Buffer.from('two')]

t.test('an entry that says nothing stands where one is gone', (t) => {
  const found = (body: Buffer, count: number) => splitEntries(withErased(body, count))
  t.same(
    found(NOTHING, 3),
    Array.from({ length: 3 }, () => Buffer.from(ERASED_ENTRY)),
  )
  t.same(found(joinEntries([ONE, NOTHING, TWO]), 3), [ONE, Buffer.from(ERASED_ENTRY), TWO])
  const whole = joinEntries([ONE, TWO])
  t.equal(withErased(whole, 2), whole, 'nothing is gone')
  const other = Buffer.from([255, 255, 255])
  t.equal(withErased(other, 1), other, 'what is no entries is what it is')
  t.end()
})
