// The audit of the derived tables, over rows as only a mistake of ours would leave them: each is
// told with its table and key, and what is sound is not. Source: PROTOCOL 3.0, 3.12, 4.1 (K4).

import t, { type Test } from 'tap'
import { encodeEntry, type Entry } from '../../../protocol/entry/entry.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { bucketOf, BUCKET_ENTRIES, encodeBlob } from '../derived/rows.ts'
import { applySchema } from '../schema.ts'
import type { Session } from '../session/session.ts'
import { TwinCassandra } from '../testing/twin.ts'
import type { EntryOf } from './shard.ts'
import { verifyTables } from './tables.ts'

const ACTOR = '00000000-0000-7000-8000-00000000000a'
const OTHER = '00000000-0000-7000-8000-00000000000c'

function entryOf(n: number, more: Partial<Entry> = {}): Entry {
  return {
    ...{ y: 'order', p: ACTOR, v: n - 1, n, r: [{ t: 'x' }], m: `m${n}`, l: 1, t: 0, c: 0 },
    ...{ a: { type: 'm', success: true }, b: 'me' },
    ...more,
  }
}

interface Place {
  readonly n?: number
  readonly pid?: string
  readonly bucket?: number
  readonly ttl?: number
}

interface Scene {
  readonly session: Session
  readonly entry: (offset: number, entry: Entry, place?: Place) => Promise<void>
  readonly put: (set: string, params: readonly unknown[]) => Promise<void>
  readonly verify: (how?: How) => Promise<Found>
}

interface How {
  /** By shard; all others: 1,000. */
  readonly heads?: Readonly<Record<number, number>>
  readonly keepsRefusals?: boolean
  readonly repairs?: boolean
}

interface Found {
  readonly lines: string[]
  readonly rows: number
  readonly put: readonly (readonly [EntryOf, number])[]
}

async function scene(t: Test, twin = new TwinCassandra(t)): Promise<Scene> {
  const { keyspace, datacenter, now } = twin.options(t)
  const session = await twin.session(t)
  await applySchema(session, { keyspace, datacenter, replication: null, owner: OTHER, now })
  const put: Scene['put'] = (set, params) =>
    session.put([{ query: `UPDATE ${keyspace}.${set}`, params }])
  return {
    session,
    put,
    async entry(offset, entry, place = {}) {
      const { n = entry.n, pid = entry.p, bucket = bucketOf(n), ttl = 0 } = place
      const body = encodeBlob(offset, encodeEntry(entry))
      const set = `actor_entry USING TIMESTAMP ? AND TTL ? SET body = ?
                   WHERE pid = ? AND bucket = ? AND n = ?`
      await put(set, [offset, ttl, body, pid, bucket, n])
    },
    async verify({ heads = {}, keepsRefusals = false, repairs = false } = {}) {
      const lines: string[] = []
      const written: [EntryOf, number][] = []
      const rows = await verifyTables({
        ...{ session, keyspace, shards: 2, keepsRefusals },
        reaches: async (shard, offset) => offset <= (heads[shard] ?? 1_000),
        putBack: repairs ? async (...row) => void written.push(row) : null,
        report: (line) => lines.push(line),
      })
      return { lines, rows, put: written }
    },
  }
}

function same(t: Test, { lines }: Found, wanted: readonly RegExp[]): void {
  t.equal(lines.length, wanted.length, lines.join('; '))
  for (const [i, pattern] of wanted.entries()) t.match(lines[i], pattern)
}

t.test('an actor over two partitions, the second of which begins behind refusals', async (t) => {
  const { entry, verify } = await scene(t)
  // More refusals at the end of the first partition than are read at once.
  const recorded = BUCKET_ENTRIES - 40
  for (let n = 1; n <= recorded; n++) await entry(n, entryOf(n))
  for (let n = recorded + 1; n <= BUCKET_ENTRIES; n++) {
    await entry(n, entryOf(n, { v: recorded, r: [] }))
  }
  const next = BUCKET_ENTRIES + 1
  await entry(next, entryOf(next, { v: recorded }))
  const found = await verify()
  t.same(found, { lines: [], rows: next, put: [] })
  await entry(next + 1, entryOf(next + 1, { v: recorded + 2 }))
  same(t, await verify(), [
    new RegExp(`^actor_entry ${ACTOR} 1: entry 258 .* which ends at version ${recorded + 1}: `),
  ])
})

t.test('two actors are two histories', async (t) => {
  const { entry, verify } = await scene(t)
  for (const p of [ACTOR, OTHER]) for (const n of [1, 2]) await entry(n, entryOf(n, { p }))
  same(t, await verify(), [])
})

t.test("an entry in another one's place", async (t) => {
  const cases: readonly (readonly [Place, Entry, readonly RegExp[]])[] = [
    [{ n: 3 }, entryOf(1), [/^actor_entry \S+a 0 3: holds another entry$/]],
    [{ pid: OTHER }, entryOf(1), [/^actor_entry \S+c 0 1: holds another entry$/]],
    [{ bucket: 2 }, entryOf(1), [/^actor_entry \S+a 2 1: stands in another partition/]],
  ]
  for (const [place, made, wanted] of cases) {
    const { entry, verify } = await scene(t)
    await entry(1, made, place)
    same(t, await verify(), wanted)
  }
})

t.test("what can't be read is told, and what comes behind it is read", async (t) => {
  const { entry, put, verify } = await scene(t)
  await entry(1, entryOf(1))
  const set = 'actor_entry SET body = ? WHERE pid = ? AND bucket = 0 AND n = ?'
  await put(set, [encodeBlob(2, Buffer.from('{')), ACTOR, 2])
  await put(set, [Buffer.of(9, 0, 0, 0, 0, 0, 1), ACTOR, 3])
  await entry(4, entryOf(4, { v: 1 }))
  const found = await verify()
  same(t, found, [
    /^actor_entry \S+a 0 2: can't be read: /,
    /^actor_entry \S+a 0 3: .*newer Kontor/,
  ])
  t.equal(found.rows, 4)
})

t.test('an offset above the head of its log, be it its own or that of `system`', async (t) => {
  const { entry, put, verify } = await scene(t)
  await entry(7, entryOf(1))
  const shards = { 0: 6, 1: 6, [SYSTEM_SHARD]: 6 }
  same(t, await verify({ heads: { ...shards, [SYSTEM_SHARD]: 7 } }), [])
  same(t, await verify({ heads: { ...shards, 0: 7, 1: 7 } }), [])
  same(t, await verify({ heads: shards }), [/its offset 7 is above the head of its log$/])
  await put('consumer_offset SET off = ? WHERE shard = ? AND consumer = ?', [8, 1, 'index'])
  const both = { ...shards, [SYSTEM_SHARD]: 9 }
  same(t, await verify({ heads: { ...both, 1: 8 } }), [])
  same(t, await verify({ heads: { ...both, 1: 7 } }), [
    /^consumer_offset 1 index 8: is above the head of its log$/,
  ])
  for (const consumer of ['index-live', 'index-next', 'index-gone']) {
    await put('consumer_offset SET off = ? WHERE shard = ? AND consumer = ?', [99, 1, consumer])
  }
  // Generations are no offsets.
  same(t, await verify({ heads: { ...both, 1: 8 } }), [])
})

t.test('a snapshot is at the version that its entry ends with', async (t) => {
  const { entry, put, verify } = await scene(t)
  await entry(5, entryOf(1))
  const snapshot = (offset: number, text: string) =>
    put('actor_snap SET body = ? WHERE pid = ?', [encodeBlob(offset, Buffer.from(text)), ACTOR])
  await snapshot(5, '{"n":1,"version":1}')
  same(t, await verify(), [])
  await snapshot(5, '{"n":1,"version":2}')
  same(t, await verify(), [/^actor_snap \S+a: is at version 2, entry 1 ends at 1$/])
  await snapshot(4, '{"n":1,"version":2}')
  same(t, await verify(), [])
  await snapshot(5, '{"n":9,"version":2}')
  same(t, await verify(), [])
  for (const text of ['{"n":1}', '{"version":1}', '{"n":"1","version":1}']) {
    await snapshot(5, text)
    same(t, await verify(), [/^actor_snap \S+a: names no entry and no version$/])
  }
  await snapshot(1_001, '{"n":1,"version":1}')
  same(t, await verify(), [/^actor_snap \S+a: its offset 1001 is above the head/])
})

t.test('keys, marks and the other tables are read, too', async (t) => {
  const { put, verify } = await scene(t)
  const text = (value: string) => encodeBlob(1, Buffer.from(value))
  const alias = (key: string, value: string) =>
    put("alias SET body = ? WHERE type = 'order' AND key = ?", [text(value), key])
  await alias('free', '[]')
  await alias('taken', '[{"actorId":"a","messageId":"m"}]')
  await put('mark SET body = ? WHERE pid = ? AND day = 1 AND id = ?', [
    text('{"messageId":"m"}'),
    ACTOR,
    'm',
  ])
  await put('shard_snap SET body = ? WHERE shard = 0', [text('{}')])
  await put('parked SET body = ? WHERE shard = 0 AND consumer = ? AND pid = ?', [
    encodeBlob(1, Buffer.of(1)),
    'index',
    ACTOR,
  ])
  await put('system_image SET body = ? WHERE at = 1 AND part = 0 AND chunk = 0', [text('x')])
  const found = await verify()
  same(t, found, [])
  t.equal(found.rows, 6)
  await alias('none', '{}')
  await alias('half', '[{"actorId":"a","messageId":"m"},{"actorId":"a"}]')
  await put('mark SET body = ? WHERE pid = ? AND day = 1 AND id = ?', [
    text('{"messageId":"another"}'),
    ACTOR,
    'n',
  ])
  await put('shard_snap SET body = ? WHERE shard = 1', [text('{')])
  const newer = Buffer.of(2, 0, 0, 0, 0, 0, 1, 0)
  await put('parked SET body = ? WHERE shard = 1 AND consumer = ? AND pid = ?', [
    newer,
    'index',
    ACTOR,
  ])
  await put('system_image SET body = ? WHERE at = 2 AND part = 0 AND chunk = 0', [newer])
  const { lines } = await verify()
  t.same(
    lines.map((line) => line.slice(0, line.indexOf(':'))).toSorted(),
    [
      'alias order half',
      'alias order none',
      `mark ${ACTOR} 1 n`,
      `parked 1 index ${ACTOR}`,
      'shard_snap 1',
      'system_image 2 0 0',
    ].toSorted(),
  )
})

t.test('what is needed must not go, and stays when asked', async (t) => {
  const { entry, verify } = await scene(t)
  await entry(5, entryOf(1), { ttl: 1_000 })
  await entry(6, entryOf(2, { r: [], v: 1 }), { ttl: 1_000 })
  same(t, await verify(), [/^actor_entry \S+a 0 1: is needed and goes in \d+ s$/])
  const repaired = await verify({ repairs: true })
  same(t, repaired, [/ 0 1: is needed and goes in \d+ s; it stays now$/])
  t.match(repaired.put, [[{ actorId: ACTOR, n: 1, offset: 5 }, 6]], 'above its own stamp')
  same(t, await verify({ keepsRefusals: true }), [/ 0 1: is needed/, / 0 2: is needed/])
})

t.test('a Cassandra that does not answer is no finding', async (t) => {
  const twin = new TwinCassandra(t)
  const { entry, put, verify } = await scene(t, twin)
  await entry(5, entryOf(1))
  const body = encodeBlob(5, Buffer.from('{"n":1,"version":1}'))
  await put('actor_snap SET body = ? WHERE pid = ?', [body, ACTOR])
  twin.fault = (query) => (query.includes('WHERE pid') ? 'not sent' : null)
  await t.rejects(verify(), { errors: [{ code: 'UNAVAILABLE' }] })
})
