// The audit while members serve: what they write meanwhile is no finding, however far a log goes
// on. Source: PROTOCOL 4.1 (K4).

import t from 'tap'
import { encodeEntry, joinEntries, type Entry } from '../../../protocol/entry/entry.ts'
import { group } from '../../conformance/journal-samples.ts'
import { openCassandra, type CassandraStore } from '../store.ts'
import { TwinCassandra } from '../testing/twin.ts'
import { verifyCassandra } from './log.ts'

const ACTOR = '00000000-0000-7000-8000-00000000000a'

async function append({ segments }: CassandraStore, segment: number, head: number): Promise<void> {
  const n = head + 1
  const entry = { y: 'order', p: ACTOR, v: head, n, r: [{ t: 'x' }], m: `m${n}`, l: 1, t: 0, c: 0 }
  const whole = { ...entry, a: { type: 'm', success: true }, b: 'me' } as unknown as Entry
  const sent = group({ shard: 0, epoch: 0, head, body: joinEntries([encodeEntry(whole)]) })
  t.equal(await segments.append(segment, sent), 'applied')
}

/** What is said of a store in which this happens before the last table is read. */
async function findings(twin: TwinCassandra, work: (store: CassandraStore) => Promise<void>) {
  const options = twin.options(t)
  const store = await openCassandra(options)
  await append(store, 1, 0)
  let isDone = false
  twin.fault = async (query) => {
    if (isDone || !/FROM \w+\.consumer_offset$/.test(query)) return null
    isDone = true
    await work(store)
    return null
  }
  const lines: string[] = []
  await verifyCassandra(options, (line) => lines.push(line))
  t.ok(isDone)
  await store.close()
  return lines
}

function consume({ derived }: CassandraStore, offset: number) {
  return derived.write(0, 0, [{ kind: 'consumer', consumer: 'index', offset }])
}

t.test('a log that goes on meanwhile, over segments, reaches what is derived of it', async (t) => {
  const twin = new TwinCassandra(t)
  const roll = async (store: CassandraStore, segment: number, head: number): Promise<void> => {
    const of = { shard: 0, segment }
    t.equal(await store.segments.seal(of, { epoch: 0, head }), 'applied')
    const next = { shard: 0, segment: segment + 1 }
    t.equal(await store.segments.open(next, { epoch: 0, head }), 'applied')
  }
  const on = await findings(twin, async (store) => {
    await append(store, 1, 1)
    await consume(store, 2)
  })
  t.same(on, [])
  const rolled = await findings(twin, async (store) => {
    await append(store, 1, 1)
    await roll(store, 1, 2)
    await append(store, 2, 2)
    await roll(store, 2, 3)
    await append(store, 3, 3)
    await consume(store, 4)
  })
  t.same(rolled, [])
})

t.test('what is above it all the same is found', async (t) => {
  const twin = new TwinCassandra(t)
  const open = await findings(twin, async (store) => {
    await append(store, 1, 1)
    await consume(store, 3)
  })
  t.match(open, [/consumer_offset 0 index \d: is above the head of its log$/])
  const sealed = await findings(twin, async (store) => {
    await store.segments.seal({ shard: 0, segment: 1 }, { epoch: 0, head: 1 })
    await consume(store, 2)
  })
  t.match(sealed, [/consumer_offset 0 index \d: is above the head of its log$/])
})
