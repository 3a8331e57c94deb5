// What is known of a log's segments never becomes less: statics are read by several at a time, and
// the older of two reads may come last. Source: PROTOCOL 3.5.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
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

t.test('so many segments are kept, of each shard: the one noted first is looked at again', (t) => {
  const chain = new SegmentChain({ segments: {}, control: {} } as never)
  const note = (shard: number, segment: number) =>
    chain.note({ shard, segment }, { base: segment, head: segment + 1, sealed: true })
  note(1, 1)
  for (let segment = 1; segment <= LIMITS.log.segmentsKnownMax; segment++) note(0, segment)
  note(0, 1)
  t.ok(chain.known({ shard: 0, segment: 1 }), 'as many as are allowed')
  note(0, LIMITS.log.segmentsKnownMax + 1)
  t.equal(chain.known({ shard: 0, segment: 1 }), undefined)
  t.ok(chain.known({ shard: 0, segment: 2 }))
  t.ok(chain.known({ shard: 0, segment: LIMITS.log.segmentsKnownMax + 1 }))
  t.ok(chain.known({ shard: 1, segment: 1 }))
  t.end()
})
