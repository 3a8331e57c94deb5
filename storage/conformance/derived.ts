// The suite of every store of derived rows: registers that move forward by offset. Drivers that
// share a journal's epochs fence older owners; a server can't, and declares so. The port is
// storage/journal.ts. Source: PROTOCOL 3.0, 3.12.

import type { Test } from 'tap'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { AliasRow, DerivedRow, DerivedStore } from '../journal.ts'
import { freshUuid } from './journal-samples.ts'

/** What drivers may differ in. */
export interface DerivedRules {
  /** Under a newer epoch an older owner's rows are refused; else they lose by their offsets. */
  readonly fences: boolean
  /** Of two rows of one offset the later one stays, or on a server the one of the greater bytes. */
  readonly sameOffset: 'replaces' | 'greater'
}

export interface DerivedUnderTest {
  readonly derived: DerivedStore
  /** Takes a shard; answers the epoch to write under. */
  readonly claim: (shard: number) => Promise<number>
  readonly rules: DerivedRules
}

/** Makes an empty store of `shards` shards; ends it with `t.teardown`. */
export type MakeDerived = (t: Test, shards: number) => Promise<DerivedUnderTest>

const ACTORS = ['00000000-0000-7000-8000-00000000000a', '00000000-0000-7000-8000-00000000000b']
const [ACTOR, OTHER] = ACTORS as [string, string]

function bytes(content: string): Buffer {
  return Buffer.from(content)
}

/** Text of bytes that may be any Uint8Array. */
function text(body: Uint8Array | null | undefined): string | null {
  return body === null || body === undefined ? null : Buffer.from(body).toString()
}

export function derivedConformance(t: Test, makeDerived: MakeDerived): void {
  void t.test('registers', (s) => registers(s, makeDerived))
  void t.test('one register twice in one write', (s) => twice(s, makeDerived))
  void t.test('entries', (s) => entries(s, makeDerived))
  void t.test('actors', (s) => actors(s, makeDerived))
  void t.test('aliases', (s) => aliases(s, makeDerived))
  void t.test('parked actors', (s) => parked(s, makeDerived))
  void t.test('images', (s) => images(s, makeDerived))
  void t.test('an older owner', (s) => olderOwner(s, makeDerived))
}

async function registers(t: Test, makeDerived: MakeDerived): Promise<void> {
  const { derived, claim, rules } = await makeDerived(t, 2)
  const epoch = await claim(0)
  const other = await claim(1)
  const day = 20_000
  const messageId = 'a'.repeat(32)
  const rows = (offset: number): DerivedRow[] => [
    { kind: 'snapshot', actorId: ACTOR, offset, body: bytes(`snapshot ${offset}`) },
    { kind: 'mark', actorId: ACTOR, day, messageId, offset, body: bytes(`mark ${offset}`) },
    { kind: 'shard', offset, body: bytes(`shard ${offset}`) },
    { kind: 'consumer', consumer: 'flush', offset },
  ]
  const say = async () => [
    text((await derived.snapshot(ACTOR))?.body),
    (await derived.snapshot(ACTOR))?.offset,
    text(await derived.mark(ACTOR, day, messageId)),
    text((await derived.shard(0))?.body),
    (await derived.shard(0))?.offset,
    await derived.consumer(0, 'flush'),
  ]
  const said = (x: number) => [`snapshot ${x}`, x, `mark ${x}`, `shard ${x}`, x, x]
  t.same(await derived.snapshot(ACTOR), null)
  t.same(await derived.shard(0), null)
  t.same(await derived.consumer(0, 'flush'), null)
  t.equal(await derived.write(0, epoch, []), 'committed')
  t.equal(await derived.write(0, epoch, rows(7)), 'committed')
  t.same(await say(), said(7))
  t.equal(await derived.write(0, epoch, rows(5)), 'committed')
  t.same(await say(), said(7), 'an older row changes nothing')
  t.equal(await derived.write(0, epoch, rows(9)), 'committed')
  t.same(await say(), said(9))
  t.equal(await derived.write(0, epoch, [...rows(12), ...rows(11)]), 'committed')
  t.same(await say(), said(12), 'nor within one write')
  const both = [derived.write(0, epoch, rows(14)), derived.write(0, epoch, rows(13))]
  t.same(await Promise.all(both), ['committed', 'committed'])
  t.same(await say(), said(14), 'nor in two at once')
  const same: DerivedRow = { kind: 'shard', offset: 14, body: bytes('again') }
  t.equal(await derived.write(0, epoch, [same]), 'committed')
  const kept = rules.sameOffset === 'replaces' ? 'again' : 'shard 14'
  t.equal(text((await derived.shard(0))?.body), kept, 'of one offset: as the driver declares')

  t.same(await derived.mark(ACTOR, day - 1, messageId), null)
  t.same(await derived.mark(OTHER, day, messageId), null)
  t.same(await derived.shard(1), null)
  t.same(await derived.consumer(1, 'flush'), null)
  t.same(await derived.consumer(0, 'index'), null)
  const index: DerivedRow = { kind: 'consumer', consumer: 'index', offset: 3 }
  t.equal(await derived.write(1, other, [index]), 'committed')
  t.equal(await derived.consumer(1, 'index'), 3)
}

async function entries(t: Test, makeDerived: MakeDerived): Promise<void> {
  const { derived, claim } = await makeDerived(t, 2)
  const epoch = await claim(0)
  const entry = (actorId: string, n: number): DerivedRow => {
    return { kind: 'entry', actorId, n, offset: n * 10, body: Buffer.alloc(100, n) }
  }
  const rows = Array.from({ length: 300 }, (_, i) => entry(ACTOR, i + 1))
  t.equal(await derived.write(0, epoch, rows), 'committed')
  const read = async (range: Parameters<typeof derived.entries>[1], actorId = ACTOR) =>
    (await derived.entries(actorId, range)).map((row) => row.n)
  const numbers = rows.map((_, i) => i + 1)
  t.same(await read({ order: 'ascending', after: 0, bytesMax: 1e6 }), numbers)
  t.same(await read({ order: 'ascending', after: 255, bytesMax: 1e6 }), numbers.slice(255))
  t.same(await read({ order: 'ascending', after: 300, bytesMax: 1e6 }), [])
  t.same(await read({ order: 'ascending', after: 4, bytesMax: 1 }), [5], 'at least one')
  t.same(await read({ order: 'ascending', after: 4, bytesMax: 350 }), [5, 6, 7])
  const before = Number.MAX_SAFE_INTEGER
  t.same(await read({ order: 'descending', before, countMax: 3, bytesMax: 1e6 }), [300, 299, 298])
  t.same(
    await read({ order: 'descending', before: 258, countMax: 4, bytesMax: 1e6 }),
    [257, 256, 255, 254],
  )
  t.same(await read({ order: 'descending', before: 3, countMax: 10, bytesMax: 1e6 }), [2, 1])
  t.same(await read({ order: 'descending', before: 1, countMax: 10, bytesMax: 1e6 }), [])
  t.same(await read({ order: 'descending', before, countMax: 9, bytesMax: 1 }), [300])
  t.same(await read({ order: 'descending', before, countMax: 9, bytesMax: 350 }), [300, 299, 298])
  // Over the edge of what a store keeps together.
  t.same(
    await read({ order: 'descending', before: 259, countMax: 9, bytesMax: 350 }),
    [258, 257, 256],
  )
  t.same(await read({ order: 'ascending', after: 0, bytesMax: 1e6 }, OTHER), [])
  const [row] = await derived.entries(ACTOR, { order: 'ascending', after: 41, bytesMax: 1 })
  t.same({ ...row, body: [...row!.body] }, { n: 42, offset: 420, body: Array(100).fill(42) })
  t.equal(await derived.write(0, epoch, rows.slice(10, 20)), 'committed', 'written again')
  t.same(await read({ order: 'ascending', after: 0, bytesMax: 1e6 }), numbers)

  const gaps = [1, 2].map((n) => entry(OTHER, n))
  t.equal(await derived.write(0, epoch, gaps), 'committed')
  t.same(await read({ order: 'ascending', after: 0, bytesMax: 1e6 }, OTHER), [1, 2])
  t.same(await read({ order: 'descending', before, countMax: 9, bytesMax: 1e6 }, OTHER), [2, 1])
}

async function actors(t: Test, makeDerived: MakeDerived): Promise<void> {
  const { derived, claim } = await makeDerived(t, 2)
  const epoch = await claim(0)
  t.same(await derived.actors(null, 10), [])
  const some = [ACTOR, OTHER, ...Array.from({ length: 20 }, () => freshUuid())].sort()
  const first = some.map((actorId): DerivedRow => {
    return { kind: 'entry', actorId, n: 1, offset: 10, body: Buffer.alloc(10) }
  })
  const many = [2, 255, 256, 257, 300].map((n): DerivedRow => {
    return { kind: 'entry', actorId: ACTOR, n, offset: 10 + n, body: Buffer.alloc(10) }
  })
  t.equal(await derived.write(0, epoch, [...first, ...many]), 'committed')
  t.same([...(await derived.actors(null, 100))].sort(), some, 'each once')
  for (const limit of [1, 5, 22]) {
    const paged: string[] = []
    for (let page = await derived.actors(null, limit); page.length > 0;) {
      t.ok(page.length <= limit)
      paged.push(...page)
      page = await derived.actors(paged.at(-1)!, limit)
    }
    t.same([...paged].sort(), some, `in pages of ${limit}`)
    t.equal(new Set(paged).size, some.length)
  }
}

async function aliases(t: Test, makeDerived: MakeDerived): Promise<void> {
  const { derived, claim } = await makeDerived(t, 2)
  const epoch = await claim(0)
  const alias = (keyType: string, key: string, actorId: string): AliasRow => {
    const one = { actorId, messageId: 'f'.repeat(32), confirmed: true, clock: 12 }
    return { keyType, key, claims: [one] }
  }
  const long = 'ö'.repeat(600)
  const keys: [string, string][] = [
    ['order', '1001'],
    ['order', '1002'],
    ['order!key', '1001'],
    ['o', 'rder1001'],
    ['registry', long],
    ['registry', `${long}!`],
    ['registry', `x${long}`],
    ['registry', 'k'.repeat(55)],
    ['registry', 'k'.repeat(56)],
    // Few characters, and more bytes than a driver may keep of a key.
    ['registry', 'ö'.repeat(40)],
    ['registry', `${'ö'.repeat(40)}!`],
    ['registry', '\u{1f600}'.repeat(20)],
    ['order', '\u{1f600} 5/ä'],
    ['order', ''],
  ]
  for (const [keyType, key] of keys) t.same(await derived.alias(keyType, key), null)
  const rows = keys.map(([keyType, key], i): DerivedRow => {
    return { kind: 'alias', offset: 5, row: alias(keyType, key, `${ACTOR.slice(0, 34)}${i + 10}`) }
  })
  t.equal(await derived.write(0, epoch, rows), 'committed')
  for (const [i, [keyType, key]] of keys.entries()) {
    const row = alias(keyType, key, `${ACTOR.slice(0, 34)}${i + 10}`)
    t.same(await derived.alias(keyType, key), row, `${keyType} ${key.slice(0, 20)}`)
  }
  t.same(await derived.alias('order', '100'), null)
  const free = { keyType: 'order', key: '1001', claims: [] }
  t.equal(await derived.write(0, epoch, [{ kind: 'alias', offset: 9, row: free }]), 'committed')
  t.same(await derived.alias('order', '1001'), free, 'a freed key says so')
  const late = { kind: 'alias', offset: 8, row: alias('order', '1001', OTHER) } as const
  t.equal(await derived.write(0, epoch, [late]), 'committed')
  t.same(await derived.alias('order', '1001'), free, 'and an older claim does not come back')
  const two: AliasRow = {
    keyType: 'order',
    key: 'two',
    claims: [alias('', '', ACTOR).claims[0]!, { ...alias('', '', OTHER).claims[0]!, clock: 13 }],
  }
  t.equal(await derived.write(0, epoch, [{ kind: 'alias', offset: 9, row: two }]), 'committed')
  t.same(await derived.alias('order', 'two'), two)
}

async function parked(t: Test, makeDerived: MakeDerived): Promise<void> {
  const { derived, claim } = await makeDerived(t, 2)
  const epoch = await claim(0)
  const park = (actorId: string, offset: number, body: Uint8Array | null): DerivedRow => {
    return { kind: 'parked', consumer: 'index', actorId, offset, body }
  }
  const say = async (shard = 0, consumer = 'index') =>
    (await derived.parked(shard, consumer)).map((row) => [row.actorId, text(row.body)])
  t.same(await say(), [])
  const two = [park(ACTOR, 3, bytes('why')), park(OTHER, 4, bytes(''))]
  t.equal(await derived.write(0, epoch, two), 'committed')
  t.same(await say(), [
    [ACTOR, 'why'],
    [OTHER, ''],
  ])
  t.same(await say(0, 'inde'), [])
  t.same(await say(1), [])
  t.equal(await derived.write(0, epoch, [park(ACTOR, 5, null)]), 'committed')
  t.same(await say(), [[OTHER, '']])
  t.equal(await derived.write(0, epoch, [park(ACTOR, 3, bytes('late'))]), 'committed')
  t.same(await say(), [[OTHER, '']], 'what is done with stays so')
}

async function images(t: Test, makeDerived: MakeDerived): Promise<void> {
  const { derived, claim } = await makeDerived(t, 2)
  const epoch = await claim(SYSTEM_SHARD)
  const write = (rows: DerivedRow[]) => derived.write(SYSTEM_SHARD, epoch, rows)
  const parts = (offset: number): DerivedRow[] =>
    [0, 1, 2].map((part) => ({ kind: 'image', offset, part, body: bytes(`${offset}.${part}`) }))
  const say = async () => {
    const found = await derived.image()
    return found && [found.offset, ...found.parts.map((part) => text(part))]
  }
  t.same(await say(), null)
  t.equal(await write(parts(10)), 'committed')
  t.same(await say(), null, 'not whole until its consumer says so')
  t.equal(await write([{ kind: 'consumer', consumer: 'image', offset: 10 }]), 'committed')
  t.same(await say(), [10, '10.0', '10.1', '10.2'])
  await derived.trimImages()
  t.equal(await write([...parts(20), ...parts(30)]), 'committed')
  t.same(await say(), [10, '10.0', '10.1', '10.2'])
  t.equal(await write([{ kind: 'consumer', consumer: 'image', offset: 30 }]), 'committed')
  t.same(await say(), [30, '30.0', '30.1', '30.2'])
  await derived.trimImages()
  t.same(await say(), [30, '30.0', '30.1', '30.2'])
  const large = Buffer.alloc(2_500_000, 'large')
  t.equal(await write([{ kind: 'image', offset: 40, part: 0, body: large }]), 'committed')
  t.equal(await write([{ kind: 'consumer', consumer: 'image', offset: 45 }]), 'committed')
  const found = await derived.image()
  t.equal(found?.offset, 40, 'the newest one that is not above its consumer')
  t.ok(large.equals(found!.parts[0]!), 'a part of any size')
}

async function twice(t: Test, makeDerived: MakeDerived): Promise<void> {
  const { derived, claim } = await makeDerived(t, 2)
  const epoch = await claim(0)
  const alias = (offset: number, messageId: string): DerivedRow => {
    const one = { actorId: ACTOR, messageId, confirmed: true, clock: 1 }
    return { kind: 'alias', offset, row: { keyType: 'order', key: '7', claims: [one] } }
  }
  const holder = async () => (await derived.alias('order', '7'))?.claims[0]?.messageId
  // One entry may change a key twice: the later change counts, whatever its bytes are.
  t.equal(await derived.write(0, epoch, [alias(5, 'z'), alias(5, 'a')]), 'committed')
  t.equal(await holder(), 'a')
  t.equal(await derived.write(0, epoch, [alias(7, 'c'), alias(6, 'x')]), 'committed')
  t.equal(await holder(), 'c')
}

async function olderOwner(t: Test, makeDerived: MakeDerived): Promise<void> {
  const { derived, claim, rules } = await makeDerived(t, 2)
  const old = await claim(0)
  const row = (offset: number): DerivedRow => ({ kind: 'shard', offset, body: bytes(`${offset}`) })
  t.equal(await derived.write(0, old, [row(1)]), 'committed')
  const now = await claim(0)
  if (rules.fences) {
    t.equal(await derived.write(0, old, [row(2)]), 'fenced')
    t.equal((await derived.shard(0))?.offset, 1, 'an older owner writes nothing')
    const both = [derived.write(0, now, [row(3)]), derived.write(0, old, [row(4)])]
    t.same(await Promise.all(both), ['committed', 'fenced'])
  } else {
    const both = [derived.write(0, now, [row(3)]), derived.write(0, old, [row(2)])]
    t.same(await Promise.all(both), ['committed', 'committed'], 'nothing tells it')
  }
  t.equal((await derived.shard(0))?.offset, 3, 'and its rows lose by their offsets')
}
