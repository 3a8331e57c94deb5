// The Cassandra driver passes the suites of its ports against a real server.

import t from 'tap'
import { controlConformance } from '../conformance/control.ts'
import { derivedConformance } from '../conformance/derived.ts'
import { expiryConformance } from '../conformance/expiry.ts'
import { segmentsConformance } from '../conformance/segments.ts'
import { statementProperties } from '../conformance/statement-properties.ts'
import { onBoth } from './testing/both.ts'
import { expireRows } from './testing/expired-rows.ts'
import { StoreMaker } from './testing/test-store.ts'

await onBoth(t, 'the ports', async (t, cassandra) => {
  const options = cassandra.options(t)
  const stores = new StoreMaker(options)
  void t.test('control', async (t) =>
    controlConformance(t, async (t, shards) => (await stores.make(t, shards)).control),
  )
  void t.test('segments', async (t) =>
    segmentsConformance(t, async (t, shards) => (await stores.make(t, shards)).segments),
  )
  void t.test('derived rows', async (t) =>
    derivedConformance(t, async (t, shards) => {
      const { derived } = await stores.make(t, shards)
      let epoch = 0
      const rules = { fences: false, sameOffset: 'greater' } as const
      return { derived, rules, claim: async () => ++epoch }
    }),
  )
  void t.test('what expires', async (t) =>
    expiryConformance(t, async (t, shards) => {
      const { derived } = await stores.make(t, shards)
      const session = await cassandra.session(t)
      let epoch = 0
      const expire = async () => void (await expireRows(session, options.keyspace))
      return { derived, claim: async () => ++epoch, expire, countedBy: 'engine' }
    }),
  )
  void t.test('random statements', async (t) => {
    const store = await stores.make(t, 64)
    await statementProperties(t, store, { runs: 32, shards: 64 })
  })
})
