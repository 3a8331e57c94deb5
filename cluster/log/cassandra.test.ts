// The log over segments on a real Cassandra: the suite of every log, with a roll before every
// append; and owners that take a shard from each other while their appends are on the way.

import t from 'tap'
import type { CassandraStore } from '../../storage/cassandra/store.ts'
import { StoreMaker, testCassandra } from '../../storage/cassandra/testing/test-store.ts'
import { freshUuid, group } from '../../storage/conformance/journal-samples.ts'
import { logConformance } from '../../storage/conformance/log.ts'
import { LostTenure } from '../../storage/journal.ts'
import { systemClock } from '../clock.ts'
import { SegmentedLog } from './segmented-log.ts'

const SHARD = 0

function open(store: CassandraStore, entriesMax: number, bugs: string[] = []): SegmentedLog {
  const quiet = () => undefined
  return new SegmentedLog({
    segments: store.segments,
    control: store.control,
    flushOf: async (shard) => (await store.derived.consumer(shard, 'flush')) ?? 0,
    clock: systemClock(),
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    onBug: (_, text) => void bugs.push(text),
    limits: { rowsMax: 1e9, bytesMax: 1e9, entriesMax },
  })
}

/** The shard's row names somebody new: the tenure that is then claimed. */
async function take(store: CassandraStore, shard: number) {
  for (;;) {
    const { epoch, incarnation, segment } = await store.control.shard(shard)
    const to = { epoch: epoch + 1, owner: 'test', incarnation: freshUuid() }
    const outcome = await store.control.updateShard(shard, to, { epoch, incarnation })
    if (outcome === 'applied') return { epoch: epoch + 1, segment }
  }
}

/** Takes the shard and appends, until its time is over; every group that was acknowledged. */
async function own(store: CassandraStore, log: SegmentedLog, untilMs: number): Promise<string[]> {
  const acknowledged: string[] = []
  while (performance.now() < untilMs) {
    const tenure = await take(store, SHARD)
    const claimed = await log.claim(SHARD, tenure).catch((error: unknown) => {
      if (error instanceof LostTenure) return null
      throw error
    })
    if (claimed === null) continue
    const { epoch } = tenure
    let { head } = claimed
    for (let i = 0; i < 12; i++) {
      const sent = group({ shard: SHARD, epoch, head, count: 1 + (i % 3) })
      let [outcome] = await log.append([sent])
      while (outcome === 'unknown') [outcome] = await log.append([sent])
      if (outcome !== 'committed') break
      acknowledged.push(sent.commitId)
      head += sent.count
    }
  }
  return acknowledged
}

t.setTimeout(120_000)
const cassandra = await testCassandra()
if ('skipped' in cassandra) {
  void t.test('the log on Cassandra', { skip: cassandra.skipped }, () => {})
} else {
  const stores = new StoreMaker(cassandra.options(t))
  void t.test('every log', async (t) => {
    t.setTimeout(100_000)
    logConformance(
      t,
      async (t, shards) => {
        const store = await stores.make(t, shards)
        const log = open(store, 1)
        const claim = async (shard: number) => log.claim(shard, await take(store, shard))
        return { log, claim, keepsLast: true }
      },
      { histories: 2 },
    )
  })
  void t.test('three owners and a follower', async (t) => {
    const store = await stores.make(t, 2)
    const bugs: string[] = []
    const untilMs = performance.now() + 4_000
    const owners = [1, 2, 3].map(() => own(store, open(store, 10, bugs), untilMs))
    const followed: string[] = []
    const follower = open(store, 10, bugs)
    let at = 0
    const follow = async () => {
      const rows = await follower.read(SHARD, at, 4_000)
      for (const { commitId, offset, count } of rows) {
        t.equal(offset - count, at)
        at = offset
        followed.push(commitId)
      }
      return rows.length
    }
    while (performance.now() < untilMs) await follow()
    const acknowledged = (await Promise.all(owners)).flat()
    const last = open(store, 10, bugs)
    const { head } = await last.claim(SHARD, await take(store, SHARD))
    while ((await follow()) > 0);
    t.equal(at, head)
    t.equal(new Set(followed).size, followed.length)
    const missing = acknowledged.filter((commitId) => !followed.includes(commitId))
    t.same([missing, bugs], [[], []])
    t.ok(acknowledged.length > 10, `${acknowledged.length} groups acknowledged`)
    const { segment } = await store.control.shard(SHARD)
    t.ok(segment > 2, `${segment} segments`)
  })
}
