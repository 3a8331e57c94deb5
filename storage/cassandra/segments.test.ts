// A row that must be there and is not seen is of an append that hangs half way: a serial read of
// its partition brings that to its end before the rows are read. Source: PROTOCOL 3.1, 3.2.

import { types } from 'cassandra-driver'
import t from 'tap'
import { group } from '../conformance/journal-samples.ts'
import { openCassandra } from './store.ts'
import { TwinCassandra } from './testing/twin.ts'

t.test('rows are read behind a serial read of their partition, where that is asked', async (t) => {
  const twin = new TwinCassandra(t)
  const { segments, close } = await openCassandra(twin.options(t))
  t.teardown(close)
  t.equal(await segments.append(1, group({ shard: 0, epoch: 0 })), 'applied')
  const levels: unknown[] = []
  twin.fault = (_, { consistency }) => {
    levels.push(consistency)
    return null
  }
  const of = { shard: 0, segment: 1 }
  const { localSerial, localQuorum } = types.consistencies
  t.equal((await segments.rows(of, { after: 0, bytesMax: 1e6 })).length, 1)
  t.same(levels.splice(0), [localQuorum])
  t.equal((await segments.rows(of, { after: 0, bytesMax: 1e6, serial: true })).length, 1)
  t.same(levels, [localSerial, localQuorum])
})
