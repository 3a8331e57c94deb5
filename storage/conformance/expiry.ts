// The suite of what may go and by which clock: for every store of derived rows, so that each keeps
// what is needed to read an actor. storage/row-expiry.ts has the rule; drivers let rows go each in
// its own way. Source: PROTOCOL 3.12 "What expires".

import type { Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { encodeEntry, type Entry, type KeyChange } from '../../protocol/entry/entry.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { AliasRow, DerivedRow, DerivedStore } from '../journal.ts'
import { ENTRIES_TOGETHER } from '../row-expiry.ts'
import { freshUuid } from './journal-samples.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const EXPIRY_MS = LIMITS.storage.derivedTtlSeconds * 1_000
/** A driver may count from the end of an hour, and a mark counts from the end of its day. */
const OVER_MS = EXPIRY_MS + DAY_MS + HOUR_MS
const ALL = { order: 'ascending', after: 0, bytesMax: 1e9 } as const
const NEWEST = {
  order: 'descending',
  before: Number.MAX_SAFE_INTEGER,
  countMax: 1_000,
  bytesMax: 1e6,
} as const

export interface ExpiryUnderTest {
  readonly derived: DerivedStore
  /** Takes a shard; answers the epoch to write under. */
  readonly claim: (shard: number) => Promise<number>
  /**
   * Removes what is over, by the shards' clocks; where the engine counts its own time, which is
   * never less than a shard's, everything that passes.
   */
  readonly expire: (clockOf: (shard: number) => number | null) => Promise<void>
  readonly countedBy: 'shard' | 'engine'
  /** Rows of an actor that is forgotten stay as long as the log has its entries. */
  readonly goWithLog?: true
}

/** Makes an empty store of `shards` shards; ends it with `t.teardown`. */
export type MakeExpiry = (t: Test, shards: number) => Promise<ExpiryUnderTest>

export function expiryConformance(t: Test, make: MakeExpiry): void {
  void t.test('what is needed to read an actor stays', (s) => actorsStay(s, make))
  void t.test('what only answers repeats goes', (s) => answersGo(s, make))
  void t.test('a row that is written again has its time from then on', (s) => again(s, make))
  void t.test('by the clock of its shard', (s) => byShard(s, make))
  void t.test('an actor that is forgotten goes whole', (s) => forgotten(s, make))
  void t.test('more than one transaction removes', (s) => many(s, make))
}

interface Change {
  readonly records?: number
  readonly v?: number
  readonly s?: Entry['s']
  readonly k?: readonly KeyChange[]
  /** Key of an actor of the `system` shard. */
  readonly q?: string
  /** From when its actor is forgotten. */
  readonly f?: number
}

function entryRow(p: string, n: number, offset: number, change: Change = {}): DerivedRow {
  const { records = 0, v = 0, s, k, q, f } = change
  const r = Array.from({ length: records }, () => ({ t: 'changed', text: '"r":[]' }))
  const a = { type: 'change', success: records > 0 } as Entry['a']
  const entry: Entry = { y: 'order', p, v, n, r, m: freshUuid(), l: 1, a, t: 0, c: 0, b: 'x' }
  const more = { ...(k ? { k } : null), ...(s ? { s } : null), ...(q ? { q } : null) }
  const ends = f === undefined ? null : { f }
  const body = encodeEntry({ ...entry, ...more, ...ends })
  const passing = f === undefined ? null : { passesFrom: f }
  return { kind: 'entry', actorId: p, n, offset, body, ...passing }
}

function aliasRow(keyType: string, key: string, offset: number, clock = 0): DerivedRow {
  const claim = { actorId: freshUuid(), messageId: 'm', confirmed: true, clock }
  return { kind: 'alias', offset, row: { keyType, key, claims: [claim] } satisfies AliasRow }
}

async function numbersOf(derived: DerivedStore, actorId: string): Promise<number[]> {
  return (await derived.entries(actorId, ALL)).map(({ n }) => n)
}

/** Told twice: a row that doesn't say when it was written counts from the first time. */
async function over({ expire }: ExpiryUnderTest): Promise<void> {
  await expire(() => 0)
  await expire(() => OVER_MS)
}

async function actorsStay(t: Test, make: MakeExpiry): Promise<void> {
  const store = await make(t, 2)
  const { derived } = store
  const key = (keyType: string): KeyChange[] => {
    return [{ keyType, key: '1', change: 'take', actorId: freshUuid() }]
  }
  for (const shard of [0, SYSTEM_SHARD]) {
    const epoch = await store.claim(shard)
    const [made, refused, long] = [freshUuid(), freshUuid(), freshUuid()]
    const body = Buffer.from('x')
    const isSystem = shard === SYSTEM_SHARD
    // Its actors are told by their keys, in each of their entries.
    const row = (p: string, n: number, offset: number, change: Change = {}) => {
      return entryRow(p, n, offset, isSystem ? { ...change, q: `key of ${p}` } : change)
    }
    const imageRows: DerivedRow[] = [
      { kind: 'image', offset: 9, part: 0, body },
      { kind: 'consumer', consumer: 'image', offset: 9 },
    ]
    const rows: DerivedRow[] = [
      row(made, 1, 1),
      row(made, 2, 2, { records: 2, k: key('order') }),
      row(made, 3, 3, { v: 2 }),
      row(made, 4, 4, { v: 2, s: [0, 5, 0] }),
      row(made, 5, 5, { v: 2, k: key('order') }),
      row(made, 6, 6, { v: 2, k: key('order!key') }),
      row(made, 7, 7, { v: 2, records: 1 }),
      row(refused, 1, 8),
      row(refused, 2, 9, { k: key('order!key') }),
      { kind: 'snapshot', actorId: made, offset: 7, body },
      { kind: 'shard', offset: 10, body },
      { kind: 'consumer', consumer: 'flush', offset: 10 },
      ...(isSystem ? imageRows : []),
      ...Array.from({ length: ENTRIES_TOGETHER + 2 }, (_, i) => {
        return row(long, i + 1, 11 + i, { records: i === 0 || i >= ENTRIES_TOGETHER ? 1 : 0 })
      }),
    ]
    t.equal(await derived.write(shard, epoch, rows), 'committed')
    t.ok((await derived.actors(null, 100)).includes(refused), 'as long as there is something')
    await over(store)
    t.same(await numbersOf(derived, made), [2, 4, 5, 7], 'records, relays and keys')
    t.same(await numbersOf(derived, refused), [], 'nothing is left of what was only refused')
    const left = [1, ENTRIES_TOGETHER, ENTRIES_TOGETHER + 1, ENTRIES_TOGETHER + 2]
    t.same(await numbersOf(derived, long), left)
    const newest = await derived.entries(long, NEWEST)
    t.same(
      newest.map(({ n }) => n),
      left.toReversed(),
    )
    const listed = await derived.actors(null, 100)
    t.ok([made, long].every((id) => listed.includes(id)) && !listed.includes(refused))
    t.ok(await derived.snapshot(made))
    t.ok(await derived.shard(shard))
    t.equal(await derived.consumer(shard, 'flush'), 10)
    if (isSystem) t.equal((await derived.image())?.offset, 9, 'nor does an image go')
  }
}

async function answersGo(t: Test, make: MakeExpiry): Promise<void> {
  const store = await make(t, 2)
  const { derived, expire } = store
  const epoch = await store.claim(0)
  const [actorId, parkedId] = [freshUuid(), freshUuid()]
  const body = Buffer.from('x')
  const written = await derived.write(0, epoch, [
    aliasRow('order!key', 'k', 1),
    aliasRow('order', 'O1', 2),
    { kind: 'mark', actorId, day: 0, messageId: 'm1', offset: 3, body },
    { kind: 'parked', consumer: 'index', actorId, body: null, offset: 4 },
    { kind: 'parked', consumer: 'index', actorId: parkedId, body, offset: 5 },
  ])
  t.equal(written, 'committed')
  if (store.countedBy === 'shard') {
    await expire(() => EXPIRY_MS - 1)
    t.ok(await derived.alias('order!key', 'k'), 'not before')
    t.ok(await derived.mark(actorId, 0, 'm1'))
    await expire(() => EXPIRY_MS + DAY_MS - 1)
    t.ok(await derived.mark(actorId, 0, 'm1'), 'it is looked for until the end of the next day')
  }
  await over(store)
  t.equal(await derived.alias('order!key', 'k'), null)
  t.equal(await derived.mark(actorId, 0, 'm1'), null)
  t.ok(await derived.alias('order', 'O1'), 'a number stays')
  const parked = await derived.parked(0, 'index')
  t.same(
    parked.map((row) => row.actorId),
    [parkedId],
  )
}

async function again(t: Test, make: MakeExpiry): Promise<void> {
  const { derived, claim, expire, countedBy } = await make(t, 2)
  const epoch = await claim(0)
  const put = (row: DerivedRow) => derived.write(0, epoch, [row])
  t.equal(await put(aliasRow('order!key', 'k', 1)), 'committed')
  t.equal(await put(aliasRow('order!key', 'k', 2, EXPIRY_MS / 2)), 'committed')
  const [actorId] = [freshUuid()]
  t.equal(await put(entryRow(actorId, 1, 3)), 'committed')
  t.equal(await put(entryRow(actorId, 1, 4, { records: 1 })), 'committed')
  if (countedBy === 'shard') {
    await expire(() => EXPIRY_MS + HOUR_MS)
    t.ok(await derived.alias('order!key', 'k'), 'the second time')
  }
  await expire(() => OVER_MS + EXPIRY_MS / 2)
  t.equal(await derived.alias('order!key', 'k'), null)
  t.same(await numbersOf(derived, actorId), [1], 'a number that was given out again stays')
}

async function byShard(t: Test, make: MakeExpiry): Promise<void> {
  const { derived, claim, expire, countedBy } = await make(t, 2)
  if (countedBy === 'engine') return
  const late = 90 * DAY_MS
  for (const [shard, clock] of [0, late].entries()) {
    const epoch = await claim(shard)
    const row = aliasRow('order!key', `k${shard}`, 1, clock)
    t.equal(await derived.write(shard, epoch, [row]), 'committed')
  }
  const left = async () => {
    const rows = [await derived.alias('order!key', 'k0'), await derived.alias('order!key', 'k1')]
    return rows.map((row) => row !== null)
  }
  await expire(() => null)
  t.same(await left(), [true, true], 'a clock that is not known says nothing')
  await expire((shard) => (shard === 0 ? 0 : late + EXPIRY_MS - 1))
  t.same(await left(), [true, true])
  await expire((shard) => (shard === 0 ? OVER_MS : late))
  t.same(await left(), [false, true])
  await expire(() => late + OVER_MS)
  t.same(await left(), [false, false])
}

/** Nothing of it is ever there without its end, whoever writes late, and whatever goes first. */
async function forgotten(t: Test, make: MakeExpiry): Promise<void> {
  const store = await make(t, 2)
  const { derived, expire, countedBy, goWithLog } = store
  const epoch = await store.claim(0)
  const [ended, told, living] = [freshUuid(), freshUuid(), freshUuid()]
  const body = Buffer.from('x')
  const made = (p: string, offset: number): DerivedRow[] => [
    entryRow(p, 1, offset, { records: 1 }),
    entryRow(p, 2, offset + 1, { records: 1, v: 1, s: [0, 5, 0] }),
    { kind: 'snapshot', actorId: p, offset: offset + 1, body },
  ]
  const first = [...made(ended, 1), ...made(living, 3), ...made(told, 5)]
  t.equal(await derived.write(0, epoch, first), 'committed')
  const ends: DerivedRow[] = [
    entryRow(ended, 3, 7, { records: 1, v: 2, f: 9 * HOUR_MS }),
    entryRow(told, 3, 8, { records: 1, v: 2, f: 0 }),
    { kind: 'snapshot', actorId: told, offset: 8, body, passesFrom: 0 },
    entryRow(told, 4, 9, { v: 3, s: [0, 6, 0], f: 0 }),
  ]
  t.equal(await derived.write(0, epoch, ends), 'committed')
  const isThere = async (p: string): Promise<boolean> => {
    const numbers = await numbersOf(derived, p)
    const snapshot = await derived.snapshot(p)
    const isLeft = numbers.some((n) => n < 3) || snapshot !== null
    t.ok(!isLeft || numbers.some((n) => n >= 3), `not without its end: ${numbers.join(' ')}`)
    return numbers.length > 0
  }
  t.same([await isThere(ended), await isThere(told)], [true, true])
  // An owner that is none any more, or a write that comes a second time.
  await derived.write(0, epoch, first)
  t.same([await isThere(ended), await isThere(told)], [true, true])
  t.equal(
    (await derived.snapshot(told))?.offset,
    8,
    'who repeats something is known a while longer',
  )
  if (countedBy === 'shard') {
    await expire(() => EXPIRY_MS + 8 * HOUR_MS)
    t.ok(await isThere(ended), 'not before what it was could count no more')
    t.equal(await isThere(told), goWithLog === true)
  }
  await over(store)
  t.equal(await derived.snapshot(told), null)
  for (const p of [ended, told]) t.equal(await isThere(p), goWithLog === true)
  t.same(await numbersOf(derived, living), [1, 2], 'another stays')
  t.ok(await derived.snapshot(living))
}

async function many(t: Test, make: MakeExpiry): Promise<void> {
  const store = await make(t, 2)
  const epoch = await store.claim(0)
  const count = 2 * LIMITS.storage.expireRowsMax + 1
  const rows = Array.from({ length: count }, (_, i) => aliasRow('order!key', `k${i}`, i + 1))
  t.equal(await store.derived.write(0, epoch, rows), 'committed')
  await over(store)
  for (const i of [0, LIMITS.storage.expireRowsMax, count - 1]) {
    t.equal(await store.derived.alias('order!key', `k${i}`), null)
  }
}
