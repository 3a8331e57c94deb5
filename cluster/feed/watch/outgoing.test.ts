// What waits for a watcher has a bound: for another member by what goes over the wire, for the own
// one by the entries. Source: PROTOCOL 3.18.

import t from 'tap'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import type { AnyEntry } from '../../../protocol/entry/entry.ts'
import { Outgoing } from './outgoing.ts'

const taken = (offset: number, bytes: number) => ({
  ...{ shard: 1, offset, bytes },
  entry: { n: offset } as AnyEntry,
})

t.test('items past the bound are dropped, and the part says so', (t) => {
  t.teardown(overrideLimits({ 'feed.watchBytesMax': 100 }))
  const large = 'x'.repeat(90)
  for (const [isOwn, bytes, value] of [
    [true, 60, large],
    [false, 1, large],
  ] as const) {
    const outgoing = new Outgoing(isOwn)
    outgoing.cover(1, 0)
    t.equal(outgoing.add(taken(1, bytes), [value]), 0)
    t.equal(outgoing.add(taken(2, bytes), [value]), 1)
    t.match(outgoing.take(false), [{ from: 0, to: 2, items: [[1, value]], dropped: 1 }])
    t.equal(outgoing.add(taken(3, bytes), [value]), 0, 'what has left has room')
  }
  const own = new Outgoing(true)
  own.cover(1, 0)
  for (let offset = 1; offset <= 50; offset++) {
    t.equal(own.add(taken(offset, 2), [large]), 0, 'what stays in the member is no text')
  }
  t.end()
})
