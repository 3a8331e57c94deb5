// What is known of a log's segments never becomes less: statics are read by several at a time, and
// the older of two reads may come last. Source: PROTOCOL 3.5.

import t from 'tap'
import { SegmentChain } from './chain.ts'

t.test('a segment that was seen sealed stays sealed, and reaches as far', (t) => {
  const chain = new SegmentChain({ segments: {}, control: {} } as never)
  const of = { shard: 0, segment: 1 }
  chain.note(of, { base: 0, head: 5, sealed: false })
  chain.note(of, { base: 0, head: 9, sealed: true })
  chain.note(of, { base: 0, head: 7, sealed: false })
  t.same(chain.known(of), { base: 0, head: 9, sealed: true })
  t.throws(() => chain.note(of, { base: 1, head: 9, sealed: true }), /begins where it began/)
  t.end()
})
