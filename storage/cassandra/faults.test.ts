// Opening a store and filling one while answers get lost: whichever statement it is, and whether or
// not it was carried out, the store is whole in the end, with this call or the next one. Source:
// PROTOCOL 3.0 "First start", 3.1, 3.12 (a store that was moved).

import t from 'tap'
import { encodeEntry, joinEntries, type Entry } from '../../protocol/entry/entry.ts'
import { freshUuid } from '../conformance/journal-samples.ts'
import type { StoreSource } from '../copy.ts'
import type { DerivedRow, LogRow } from '../journal.ts'
import { fillCassandra } from './fill/fill.ts'
import { openCassandra, type CassandraOptions } from './store.ts'
import { TwinCassandra, type Fault } from './testing/twin.ts'
import { verifyCassandra } from './verify/log.ts'

const ACTOR = '00000000-0000-7000-8000-00000000000a'
const KINDS: readonly Fault[] = ['not sent', 'not answered']
const ATTEMPTS_MAX = 3

t.setTimeout(180_000)

async function findings(options: CassandraOptions): Promise<string[]> {
  const lines: string[] = []
  await verifyCassandra(options, (line) => lines.push(line))
  return lines
}

interface Work {
  readonly of: () => CassandraOptions
  readonly act: (options: CassandraOptions) => Promise<unknown>
  /** That all of it is there in the end. */
  readonly check: (options: CassandraOptions) => Promise<void>
}

/**
 * Acts in keyspaces of their own, in each with one other request that fails; when that rejects it
 * is done again, once the locks of the first attempt are over. Answers how many requests it takes.
 */
async function withEachFault(twin: TwinCassandra, { of, act, check }: Work): Promise<number> {
  const counts = new Map<string, number>()
  const faults = new Map<string, { readonly at: number; readonly kind: Fault }>()
  twin.fault = (query) => {
    const keyspace = /\b(twin_\d+)\b/.exec(query)?.[1] ?? ''
    const count = counts.get(keyspace) ?? 0
    counts.set(keyspace, count + 1)
    const fault = faults.get(keyspace)
    return fault?.at === count ? fault.kind : null
  }
  const plain = of()
  await act(plain)
  const requests = counts.get(plain.keyspace)!
  const all = Array.from({ length: requests }, (_, at) => KINDS.map((kind) => ({ at, kind })))
  const left = all.flat().map((fault) => ({ options: of(), fault }))
  for (const { options, fault } of left) faults.set(options.keyspace, fault)
  for (let attempt = 1, open = left; open.length > 0; attempt++) {
    if (attempt > ATTEMPTS_MAX) throw new Error(`${open.length} are not done`)
    const done = await Promise.allSettled(open.map(({ options }) => act(options)))
    open = open.filter((_, i) => done[i]!.status === 'rejected')
    twin.aheadMs += 100_000
  }
  twin.fault = () => null
  for (const { options } of left) await check(options)
  return requests
}

function openWithKey(options: CassandraOptions) {
  return openCassandra({ ...options, secretsKeys: { current: 'key', known: ['key'] } })
}

t.test('opening a store', async (t) => {
  const twin = new TwinCassandra(t)
  const requests = await withEachFault(twin, {
    of: () => twin.options(t, { shards: 2 }),
    act: async (options) => (await openWithKey(options)).close(),
    check: async (options) => {
      const store = await openWithKey(options)
      t.match(store.identity, { shards: 2, serial: 'LOCAL_SERIAL', secretsKey: 'key' })
      t.match(store.identity.secret, /^[\w-]{43}$/)
      t.same(
        (await store.control.shards()).map(({ shard, epoch, segment }) => [shard, epoch, segment]),
        [-1, 0, 1].map((shard) => [shard, 0, 1]),
      )
      for (const shard of [-1, 0, 1]) {
        const statics = await store.segments.statics({ shard, segment: 1 })
        t.match(statics, { epoch: 0, base: 0, head: 0, sealed: false })
      }
      await store.close()
    },
  })
  t.ok(requests > 30, `${requests} requests`)
})

function entryOf(n: number): Entry {
  const entry = { y: 'order', p: ACTOR, v: n - 1, n, r: [{ type: 'x' }], m: `m${n}`, l: 1 as const }
  return { ...entry, a: { type: 'm', success: true }, t: 0, c: n, b: 'me' } as unknown as Entry
}

/** A store of one shard beside `system`, with some entries in two epochs. */
function sourceOf(): StoreSource {
  const bodies = [1, 2, 3, 4].map((n) => encodeEntry(entryOf(n)))
  const rows = bodies.map((body, i): LogRow => {
    const of = { shard: 0, epoch: i < 2 ? 1 : 4, offset: i + 1, count: 1 }
    return { ...of, commitId: freshUuid(), body: joinEntries([body]) }
  })
  const derived = bodies.map((body, i): DerivedRow => {
    return { kind: 'entry', actorId: ACTOR, n: i + 1, offset: i + 1, body }
  })
  derived.push({ kind: 'consumer', consumer: 'flush', offset: 4 })
  return {
    identity: { format: 1, shards: 1, generation: 'of the source', secret: 's', secretsKey: 'k' },
    extents: [
      { shard: -1, epoch: 2, floor: 0, head: 0 },
      { shard: 0, epoch: 6, floor: 0, head: 4 },
    ],
    log: (shard) => (shard === 0 ? rows : []),
    derived: () => derived.map((row) => ({ shard: 0, row })),
    assertUnchanged() {},
    close: async () => {},
  }
}

t.test('filling a store', async (t) => {
  const twin = new TwinCassandra(t)
  const requests = await withEachFault(twin, {
    of: () => twin.options(t, { shards: null }),
    act: (options) => fillCassandra(options, sourceOf(), () => {}),
    check: async (options) => {
      t.same(await findings(options), [])
      const store = await openCassandra(options)
      t.equal(store.identity.secretsKey, 'k')
      t.match(await store.control.shards(), [
        { shard: -1, epoch: 2, segment: 1 },
        { shard: 0, epoch: 6, segment: 1 },
      ])
      const statics = await store.segments.statics({ shard: 0, segment: 1 })
      t.match(statics, { epoch: 6, base: 0, head: 4 })
      const range = { order: 'ascending', after: 0, bytesMax: 1e6 } as const
      t.equal((await store.derived.entries(ACTOR, range)).length, 4)
      t.equal(await store.derived.consumer(0, 'flush'), 4)
      await store.close()
    },
  })
  t.ok(requests > 40, `${requests} requests`)
})

t.test('a source that somebody has written to is no whole copy', async (t) => {
  const twin = new TwinCassandra(t)
  const options = twin.options(t, { shards: null })
  const changed = {
    ...sourceOf(),
    assertUnchanged: () => {
      throw new Error('written to meanwhile')
    },
  }
  await t.rejects(
    fillCassandra(options, changed, () => {}),
    { message: 'written to meanwhile' },
  )
  await t.rejects(openCassandra(options), { message: /being moved into it and is not whole/ })
  await fillCassandra(options, sourceOf(), () => {})
  t.same(await findings(options), [])
})

t.test('how far a fill has come is told, up to what it answers', async (t) => {
  const twin = new TwinCassandra(t)
  const told: object[] = []
  const report = await fillCassandra(twin.options(t, { shards: null }), sourceOf(), (done) => {
    told.push(done)
  })
  const whole = { derivedRows: 5, groups: 2, entries: 4 }
  t.match(report, whole)
  t.same(told.at(-1), whole)
  t.ok(told.length > 2)
})

t.test('a keyspace that another store is moved into takes no second one', async (t) => {
  const twin = new TwinCassandra(t)
  const options = twin.options(t, { shards: null })
  const first = {
    ...sourceOf(),
    assertUnchanged: () => {
      throw new Error('not whole')
    },
  }
  await t.rejects(fillCassandra(options, first, () => {}))
  const { identity, ...rest } = sourceOf()
  const other = { ...rest, identity: { ...identity, generation: 'another' } }
  await t.rejects(
    fillCassandra(options, other, () => {}),
    { message: /another store is being moved into it/ },
  )
})

t.test('a fill that goes on ends with the epochs of its own source', async (t) => {
  const twin = new TwinCassandra(t)
  const options = twin.options(t, { shards: null })
  const whole = sourceOf()
  const cut = {
    ...whole,
    // As the node had it before it was started once more.
    extents: whole.extents.map((extent) => ({ ...extent, epoch: Math.min(extent.epoch, 4) })),
    assertUnchanged: () => {
      throw new Error('written to meanwhile')
    },
  }
  await t.rejects(
    fillCassandra(options, cut, () => {}),
    { message: 'written to meanwhile' },
  )
  await fillCassandra(options, whole, () => {})
  t.same(await findings(options), [])
  const store = await openCassandra(options)
  t.teardown(() => store.close())
  t.equal((await store.control.shard(0)).epoch, 6)
})

t.test('each row is written once, however many there are of a shard', async (t) => {
  const twin = new TwinCassandra(t)
  const count = 1_203
  const rows = Array.from({ length: count }, (_, i) => {
    const row = { kind: 'consumer', consumer: `c${i}`, offset: 1 } as const
    return { shard: i % 2 === 0 ? 0 : -1, row }
  })
  const source = { ...sourceOf(), derived: () => rows }
  const options = twin.options(t, { shards: null })
  const { derivedRows } = await fillCassandra(options, source, () => {})
  t.equal(derivedRows, count)
  const store = await openCassandra(options)
  t.teardown(() => store.close())
  for (const { shard, row } of [rows[0]!, rows[1]!, rows.at(-2)!, rows.at(-1)!]) {
    t.equal(await store.derived.consumer(shard, row.consumer), 1)
  }
})
