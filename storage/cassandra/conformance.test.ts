// The Cassandra driver passes the suites of its ports against a real server.

import t from 'tap'
import { controlConformance } from '../conformance/control.ts'
import { derivedConformance } from '../conformance/derived.ts'
import { segmentsConformance } from '../conformance/segments.ts'
import { statementProperties } from '../conformance/statement-properties.ts'
import { StoreMaker, testCassandra } from './testing/test-store.ts'

const cassandra = await testCassandra()
if ('skipped' in cassandra) {
  void t.test('the ports on Cassandra', { skip: cassandra.skipped }, () => {})
} else {
  const stores = new StoreMaker(cassandra.options(t))
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
  void t.test('random statements', async (t) => {
    const store = await stores.make(t, 64)
    await statementProperties(t, store, { runs: 32, shards: 64 })
  })
}
