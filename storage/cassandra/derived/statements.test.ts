// Derived rows as statements: what expires, what goes first, what one request carries.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { encodeEntry, type Entry } from '../../../protocol/entry/entry.ts'
import type { DerivedRow } from '../../journal.ts'
import { stagesOf } from './statements.ts'
import type { Statement } from '../session/session.ts'

const ACTOR = '00000000-0000-7000-8000-00000000000a'
const WIDE = { bytes: 1e9, partitions: 1e9 }

function stages(rows: readonly DerivedRow[], bounds = WIDE, keepsRejections = false) {
  return stagesOf({ keyspace: 'k', shard: 3, bounds, keepsRejections }, rows)
}

function entry(n: number, records: number): DerivedRow {
  const made = {
    y: 'order',
    p: ACTOR,
    q: 'a "r":[] b',
    v: 0,
    n,
    r: Array.from({ length: records }, () => ({ type: 'x' })),
    m: 'm',
    a: { type: '"r":[]', data: { r: [] } },
  }
  return {
    kind: 'entry',
    actorId: ACTOR,
    n,
    offset: n,
    body: encodeEntry(made as unknown as Entry),
  }
}

function ttlOf({ query, params }: Statement): number | null {
  return query.includes('TTL ?') ? (params[1] as number) : null
}

void t.test(
  'what expires: rejections, marks, keys of creates, actors that are done with',
  async (t) => {
    const expiry = LIMITS.storage.derivedTtlSeconds
    const alias = (keyType: string): DerivedRow => {
      return { kind: 'alias', offset: 1, row: { keyType, key: 'k', claims: [] } }
    }
    const parked = (body: Buffer | null): DerivedRow => {
      return { kind: 'parked', consumer: 'index', actorId: ACTOR, offset: 1, body }
    }
    const body = Buffer.of(1)
    const cases: [string, DerivedRow, number | null][] = [
      ['an entry with records', entry(1, 1), null],
      ['a rejection', entry(2, 0), expiry],
      ['a rejection that ends its partition', entry(256, 0), null],
      ['a mark', { kind: 'mark', actorId: ACTOR, day: 1, messageId: 'm', offset: 1, body }, expiry],
      ['a key', alias('order'), null],
      ['a key of a create', alias('order!key'), expiry],
      ['a snapshot', { kind: 'snapshot', actorId: ACTOR, offset: 1, body }, null],
      ['the shard', { kind: 'shard', offset: 1, body }, null],
      ['a consumer', { kind: 'consumer', consumer: 'flush', offset: 1 }, null],
      ['a parked actor', parked(body), null],
      ['one that is done with', parked(null), expiry],
      ['an image', { kind: 'image', offset: 1, part: 0, body }, null],
    ]
    const kept = stages([entry(2, 0)], WIDE, true).first[0]![0]!
    t.equal(ttlOf(kept), null, 'a rejection in a store that has lost entries')
    t.equal(expiry, 2 * 24 * 3_600, 'twice the time of a key')
    for (const [name, given, wanted] of cases) {
      const { first, second, aside } = stages([given])
      t.equal(ttlOf([...first, ...second, ...aside][0]![0]!), wanted, name)
    }
  },
)

void t.test('every statement is stamped with its offset', async (t) => {
  const { first, second, aside } = stages([
    entry(7, 1),
    { kind: 'consumer', consumer: 'flush', offset: 0 },
    { kind: 'snapshot', actorId: ACTOR, offset: 9, body: Buffer.of() },
  ])
  const stamps = [...first.flat(), ...second.flat(), ...aside.flat()].map(({ query, params }) => {
    t.match(query, /USING TIMESTAMP \?/)
    return params[0]
  })
  t.same(stamps, [7, 0, 9])
})

void t.test('snapshots and consumers wait for all others', async (t) => {
  const body = Buffer.of(1)
  const { first, second, aside } = stages([
    { kind: 'consumer', consumer: 'flush', offset: 5 },
    { kind: 'snapshot', actorId: ACTOR, offset: 5, body },
    entry(1, 1),
    { kind: 'mark', actorId: ACTOR, day: 1, messageId: 'm', offset: 5, body },
    { kind: 'shard', offset: 5, body },
    { kind: 'image', offset: 5, part: 0, body },
  ])
  const tables = (requests: typeof first) =>
    requests.flat().map(({ query }) => /UPDATE k\.(\w+)/.exec(query)![1])
  t.same(tables(first), ['actor_entry', 'mark', 'shard_snap', 'system_image'])
  t.same(tables(second), ['consumer_offset'])
  t.same(tables(aside), ['actor_snap'])
})

void t.test('requests keep the bounds; a partition is not divided but by its weight', async (t) => {
  const actors = Array.from({ length: 10 }, (_, i) => `${ACTOR.slice(0, 35)}${i}`)
  const rows = actors.map((actorId): DerivedRow => {
    return { kind: 'snapshot', actorId, offset: 1, body: Buffer.alloc(1_000) }
  })
  const sizes = (bounds: typeof WIDE) => stages(rows, bounds).aside.map(({ length }) => length)
  t.same(sizes(WIDE), [10])
  t.same(sizes({ bytes: 1e9, partitions: 4 }), [4, 4, 2])
  t.same(sizes({ bytes: 3_500, partitions: 50 }), [3, 3, 3, 1])
  t.same(sizes({ bytes: 10, partitions: 50 }), Array(10).fill(1), 'at least one')
  const many = Array.from({ length: 20 }, (_, i) => entry(i + 1, 1))
  t.same(
    stages(many, { bytes: 1, partitions: 1 }).first.map(({ length }) => length),
    [20],
    'one mutation',
  )
  const heavy = [1, 2, 3].map((n): DerivedRow => {
    const body = Buffer.alloc(LIMITS.cassandra.registerMutationBytesMax / 2)
    return { kind: 'entry', actorId: ACTOR, n, offset: n, body }
  })
  t.same(
    stages(heavy, { bytes: 1, partitions: 1 }).first.map(({ length }) => length),
    [1, 1, 1],
  )
})

void t.test('an empty part of an image is written, too, and one that fills its chunk once', (t) => {
  const part = (bytes: number): DerivedRow => {
    return { kind: 'image', offset: 5, part: 0, body: Buffer.alloc(bytes) }
  }
  const count = (bytes: number): number => stages([part(bytes)]).first.flat().length
  const { imageChunkBytes } = LIMITS.storage
  t.same([0, 1, imageChunkBytes, imageChunkBytes + 1].map(count), [1, 1, 1, 2])
  t.end()
})

void t.test('the end of an actor that is forgotten takes with it what was before', async (t) => {
  const ends = (n: number, records: number, f: number): DerivedRow => {
    const made = {
      y: 'x',
      p: ACTOR,
      v: 0,
      n,
      r: Array.from({ length: records }, () => ({ t: 'x' })),
      m: 'm',
      c: 1_000,
      f,
    }
    const body = encodeEntry({ ...made, a: { type: 'x', success: true } } as unknown as Entry)
    return { kind: 'entry', actorId: ACTOR, n, offset: 90, body, passesFrom: f }
  }
  const expiry = LIMITS.storage.derivedTtlSeconds
  const of = (row: DerivedRow, keeps = false): readonly Statement[] => {
    return stages([row], WIDE, keeps).first.flat()
  }
  const day = 24 * 3_600
  const end = of(ends(300, 1, 1_000 + day * 1_000))
  t.same(
    end.filter(({ query }) => query.startsWith('DELETE')).map(({ params }) => params),
    [
      [89, ACTOR],
      [89, ACTOR, 0],
      [89, ACTOR, 1],
    ],
    'its snapshot and its partitions, up to the end itself',
  )
  const kept = end.filter(({ query }) => query.startsWith('UPDATE'))
  t.same(kept.map(ttlOf), [expiry + day])
  t.same(of(ends(3, 0, 1_000)).map(ttlOf), [expiry], 'what is told to it later takes nothing')
  const ages = of(ends(1, 1, 1e15)).map(ttlOf)
  t.equal(ages.at(-1), LIMITS.storage.endedTtlSecondsMax, 'an engine refuses a longer time')
  t.same(of(ends(3, 1, 1_000), true).map(ttlOf), [null], 'nothing in a store that lost entries')
  const body = Buffer.of(1)
  const snapshot = { kind: 'snapshot', actorId: ACTOR, offset: 1, body, passesFrom: 5 } as const
  t.equal(ttlOf(stages([snapshot]).aside.flat()[0]!), expiry)
})
