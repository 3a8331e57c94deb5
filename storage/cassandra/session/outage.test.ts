// Engines that go away in the middle of a statement: what was sent may be in, and is asked for.
// Source: PROTOCOL 3.1 "Driver", 3.2.

import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { group } from '../../conformance/journal-samples.ts'
import type { DerivedRow } from '../../journal.ts'
import { openCassandra } from '../store.ts'
import { proxyTo } from '../testing/proxy.ts'
import { recorder } from '../testing/recorder.ts'
import { testCassandra } from '../testing/test-store.ts'

const FIRST = { shard: 0, segment: 1 }
const cassandra = await testCassandra()
if ('skipped' in cassandra) {
  t.test('outages of Cassandra', { skip: cassandra.skipped }, () => {})
} else {
  t.test('a connection that is cut, and one whose answers are lost', async (t) => {
    const direct = cassandra.options(t)
    const [host, port] = direct.contactPoints[0]!.split(':')
    const proxy = await proxyTo(t, { host: host!, port: Number(port) })
    const log = recorder()
    const contactPoints = [`${proxy.host}:${proxy.port}`]
    const timeoutMsMax = 400
    const store = await openCassandra({ ...direct, contactPoints, log, timeoutMsMax })
    const { control, segments, derived } = store
    t.teardown(() => store.close())
    const first = group({ shard: 0, epoch: 0 })
    const row: DerivedRow = { kind: 'consumer', consumer: 'flush', offset: 1 }

    proxy.cut()
    t.equal(await segments.append(1, first), 'unknown')
    t.equal(await control.hintSegment(0, 2, { epoch: 0 }), 'unknown')
    t.equal(await derived.write(0, 1, [row]), 'unknown')
    await t.rejects(control.members(), { errors: [{ code: 'UNAVAILABLE' }] })
    await t.rejects(segments.statics(FIRST), { errors: [{ code: 'UNAVAILABLE' }] })
    await t.rejects(async () => derived.alias('order', '1'), { errors: [{ code: 'UNAVAILABLE' }] })
    t.ok(log.told.length > 0 && log.told.length < 6, 'told, but not every time')

    const heal = async () => {
      const began = performance.now()
      proxy.heal()
      for (;;) {
        const statics = await segments.statics(FIRST).catch(() => null)
        if (statics !== null) return { statics, ms: performance.now() - began }
        if (performance.now() - began > 10_000) throw new Error('it is not used again')
        await delay(20)
      }
    }
    const healed = await heal()
    t.ok(healed.ms < 5_000, `used again after ${Math.round(healed.ms)} ms`)
    t.equal(healed.statics.head, 0, 'what was never sent is not in')
    t.equal(await segments.append(1, first), 'applied')

    const second = group({ shard: 0, epoch: 0, head: 1 })
    proxy.silence()
    t.equal(await segments.append(1, second), 'unknown')
    const { statics } = await heal()
    t.equal(statics.lastCommit, second.commitId, 'it was in, and the statics say so')
    t.equal(await segments.append(1, second), 'refused', 'the same bytes are in once')
    t.equal((await segments.rows(FIRST, { after: 0, bytesMax: 1e6 })).length, 2)
    t.equal(await derived.write(0, 1, [{ ...row, offset: 2 }]), 'committed')
    t.equal(await derived.consumer(0, 'flush'), 2)
  })
}
