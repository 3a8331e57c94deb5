// What the protocol rests on, on a real Cassandra: conditional batches and their limits, registers
// by timestamp, rows that a newer version wrote. Source: PROTOCOL 3.0, 3.1, 3.2.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import type { ActorRecord } from '../../../protocol/behaviour.ts'
import { encodeEntry } from '../../../protocol/entry/entry.ts'
import { freshUuid, group } from '../../conformance/journal-samples.ts'
import type { DerivedRow } from '../../journal.ts'
import { bytesOf } from './engine.ts'
import { onBoth } from '../testing/both.ts'
import { StoreMaker } from '../testing/test-store.ts'

const ACTOR = '00000000-0000-7000-8000-00000000000a'
const FIRST = { shard: 0, segment: 1 }
await onBoth(t, 'statements', async (t, cassandra) => {
  const options = cassandra.options(t)
  const { keyspace } = options
  const stores = new StoreMaker(options)

  t.test('a batch above the mutation limit is an unknown outcome, and is not in', async (t) => {
    const { segments } = await stores.make(t)
    const entry = group({
      shard: 0,
      epoch: 0,
      body: Buffer.alloc(LIMITS.protocol.entryBytesMax + 100),
    })
    t.equal(await segments.append(1, entry), 'applied', 'the largest entry goes')
    const session = await cassandra.session(t)
    const [row] = await session.askHost(
      session.hosts()[0]!,
      "SELECT value FROM system_views.settings WHERE name = 'max_mutation_size'",
    )
    const limit = bytesOf(row!['value'] as string)!
    const heavy = group({ shard: 0, epoch: 0, head: 1, body: Buffer.alloc(limit) })
    t.equal(await segments.append(1, heavy), 'unknown')
    const statics = await segments.statics(FIRST)
    t.equal(statics?.lastCommit, entry.commitId)
    t.equal(await segments.append(1, group({ shard: 0, epoch: 0, head: 1 })), 'applied')
  })

  t.test('a log goes on behind what was trimmed', async (t) => {
    const { segments } = await stores.make(t)
    for (let head = 0; head < 6; head++) {
      t.equal(await segments.append(1, group({ shard: 0, epoch: 0, head })), 'applied')
      await segments.dropRows(FIRST, head)
      const rows = await segments.rows(FIRST, { after: 0, bytesMax: 1e6 })
      t.same(
        rows.map(({ offset }) => offset),
        [head + 1],
      )
    }
  })

  t.test('one that races its own fence is in before it or never', async (t) => {
    const { segments } = await stores.make(t)
    for (let i = 0; i < 8; i++) {
      const of = { shard: 0, segment: 10 + i }
      t.equal(await segments.open(of, { epoch: 1, head: 0 }), 'applied')
      const sent = group({ shard: 0, epoch: 1 })
      const [appended, fenced] = await Promise.all([
        segments.append(of.segment, sent),
        segments.fence(of, 2),
      ])
      t.equal(fenced, 'applied')
      const statics = await segments.statics(of)
      t.equal(statics?.head, appended === 'applied' ? 1 : 0)
      t.equal(await segments.append(of.segment, { ...sent, head: statics!.head }), 'refused')
    }
  })

  t.test('a row of a newer version is refused with its place', async (t) => {
    const { segments, derived } = await stores.make(t)
    const session = await cassandra.session(t)
    t.equal(await segments.append(1, group({ shard: 0, epoch: 0 })), 'applied')
    const newer = Buffer.from([2, 0, 0, 0, 0, 0, 1, 9])
    await session.put([
      {
        query: `INSERT INTO ${keyspace}.log (shard, segment, off, n, body) VALUES (0, 1, 1, 1, ?)`,
        params: [newer],
      },
      { query: `UPDATE ${keyspace}.actor_snap SET body = ? WHERE pid = ?`, params: [newer, ACTOR] },
    ])
    await t.rejects(segments.rows(FIRST, { after: 0, bytesMax: 1 }), {
      message: /^shard 0, offset 1: format 2 .* newer Kontor; start that version$/,
    })
    await t.rejects(async () => derived.snapshot(ACTOR), { message: /actor_snap.*format 2/ })
  })

  t.test(
    'offsets are timestamps: 0 counts, an older write loses, of equals the greater',
    async (t) => {
      const { derived } = await stores.make(t)
      const session = await cassandra.session(t)
      const write = (offset: number, content: string) => {
        const row: DerivedRow = { kind: 'shard', offset, body: Buffer.from(content) }
        return derived.write(0, 1, [row])
      }
      const held = async () => Buffer.from((await derived.shard(0))!.body).toString()
      t.equal(await write(0, 'nothing yet'), 'committed')
      t.equal(await held(), 'nothing yet')
      const [row] = await session.read(
        `SELECT writetime(body) AS stamp FROM ${keyspace}.shard_snap WHERE shard = 0`,
        [],
      )
      t.equal(Number(row!['stamp']), 0, 'no clock of any machine is in it')
      t.equal(await write(9, 'nine'), 'committed')
      t.equal(await write(8, 'zz'), 'committed')
      t.equal(await held(), 'nine')
      t.equal(await write(9, 'a'), 'committed')
      t.equal(await held(), 'nine')
      t.equal(await write(9, 'z'), 'committed')
      t.equal(await held(), 'z')
      const consumer = (offset: number): DerivedRow => ({ kind: 'consumer', consumer: 'c', offset })
      t.equal(await derived.write(0, 1, [consumer(0)]), 'committed')
      t.equal(await derived.consumer(0, 'c'), 0)
      const great = 2 ** 48 - 1
      t.equal(await derived.write(0, 1, [consumer(great)]), 'committed')
      t.equal(await derived.consumer(0, 'c'), great)
    },
  )

  t.test('what only tidies up expires, the rest does not', async (t) => {
    const { derived } = await stores.make(t)
    const session = await cassandra.session(t)
    const entry = (n: number, ...r: ActorRecord[]): DerivedRow => {
      const a = { type: 'create', success: true } as const
      const body = encodeEntry({
        ...{ y: 'order', p: ACTOR, v: 0, n, r, m: 'm', l: 0, a, t: 1, c: 1, b: 'tester' },
      })
      return { kind: 'entry', actorId: ACTOR, n, offset: n, body }
    }
    t.equal(await derived.write(0, 1, [entry(1, { t: 'made' }), entry(2)]), 'committed')
    const rows = await session.read(
      `SELECT n, ttl(body) AS expiry FROM ${keyspace}.actor_entry WHERE pid = ? AND bucket = 0`,
      [ACTOR],
    )
    const expiry = rows.map((row) => row['expiry'] as number | null)
    t.equal(expiry[0], null)
    t.ok(
      expiry[1]! > LIMITS.storage.derivedTtlSeconds - 60 &&
        expiry[1]! <= LIMITS.storage.derivedTtlSeconds,
    )
  })

  t.test('entries behind rejections that have expired are found', async (t) => {
    const { derived } = await stores.make(t)
    const rejected = [2, 255, 257, 300, 600]
    const kept = [1, 256, 512, 700]
    // As if the rejections had expired: between them the last ones of partitions remain.
    const rows = kept.map((n): DerivedRow => {
      return { kind: 'entry', actorId: ACTOR, n, offset: n, body: Buffer.alloc(50, n) }
    })
    t.equal(await derived.write(0, 1, rows), 'committed')
    const read = async (range: Parameters<typeof derived.entries>[1]) =>
      (await derived.entries(ACTOR, range)).map(({ n }) => n)
    t.same(await read({ order: 'ascending', after: 0, bytesMax: 1e6 }), kept)
    for (const after of rejected) {
      const behind = kept.filter((n) => n > after)
      t.same(await read({ order: 'ascending', after, bytesMax: 1e6 }), behind)
      const before = kept.filter((n) => n < after).reverse()
      t.same(await read({ order: 'descending', before: after, countMax: 9, bytesMax: 1e6 }), before)
    }
    t.same(await read({ order: 'ascending', after: 1, bytesMax: 1 }), [256])
    t.same(await read({ order: 'ascending', after: 1, bytesMax: 110 }), [256, 512])
    const newest = {
      order: 'descending',
      before: Number.MAX_SAFE_INTEGER,
      countMax: 2,
      bytesMax: 1e6,
    } as const
    t.same(await read(newest), [700, 512])
    t.same(await derived.actors(null, 5), [ACTOR])
  })

  t.test('older images go, the newest but one stays, late parts of older ones too', async (t) => {
    const { derived } = await stores.make(t)
    const session = await cassandra.session(t)
    const part = (offset: number): DerivedRow => {
      return { kind: 'image', offset, part: 0, body: Buffer.of(offset) }
    }
    for (const offset of [10, 20, 30]) {
      t.equal(await derived.write(-1, 1, [part(offset)]), 'committed')
      const consumer = { kind: 'consumer', consumer: 'image', offset } as const
      t.equal(await derived.write(-1, 1, [consumer]), 'committed')
    }
    await derived.trimImages()
    t.equal(await derived.write(-1, 1, [part(10)]), 'committed')
    const rows = await session.read(`SELECT DISTINCT at FROM ${keyspace}.system_image`, [])
    t.same(rows.map((row) => Number(row['at'])).sort(), [20, 30])
    t.equal((await derived.image())?.offset, 30)
  })

  t.test('two racers for a name and for a shard', async (t) => {
    const { control } = await stores.make(t)
    const row = { member: 'm', state: 'up', beat: 0, address: '', version: '1' } as const
    const incarnations = Array.from({ length: 6 }, () => freshUuid())
    const outcomes = await Promise.all(
      incarnations.map((incarnation) => control.insertMember({ ...row, incarnation })),
    )
    const winner = incarnations[outcomes.indexOf('applied')]!
    t.equal(outcomes.filter((outcome) => outcome === 'applied').length, 1)
    t.equal((await control.member('m'))?.incarnation, winner)
    t.equal((await control.members())[0]?.incarnation, winner, 'at quorum, too')
    const beats = await Promise.all(
      [1, 2, 3].map(() => control.updateMember('m', { beat: 1 }, { incarnation: winner, beat: 0 })),
    )
    t.same([...beats].sort(), ['applied', 'refused', 'refused'])
  })
})
