// The one suite that every journal driver passes: the memory twin, LMDB, later Cassandra. It stands
// between the port's words (storage/journal.ts) and the drivers: a twin may be trusted because it
// passes what the real one passes. Source: PROTOCOL 3.0-3.2, 3.12, 3.16.

import type { Test } from 'tap'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { AliasRow, DerivedRow } from '../journal.ts'
import { journalProperties } from './journal-properties.ts'
import { freshUuid, group, type MakeJournal } from './journal-samples.ts'

const ACTORS = ['00000000-0000-7000-8000-00000000000a', '00000000-0000-7000-8000-00000000000b']
const [ACTOR, OTHER] = ACTORS as [string, string]

function bytes(content: string): Buffer {
  return Buffer.from(content)
}

/** Text of bytes that may be any Uint8Array. */
function text(body: Uint8Array | null | undefined): string | null {
  return body === null || body === undefined ? null : Buffer.from(body).toString()
}

export function journalConformance(t: Test, makeJournal: MakeJournal): void {
  void t.test('appends', (s) => appends(s, makeJournal))
  void t.test('fencing', (s) => fencing(s, makeJournal))
  void t.test('sending again', (s) => sendingAgain(s, makeJournal))
  void t.test('reading and trimming', (s) => reading(s, makeJournal))
  void t.test('registers', (s) => registers(s, makeJournal))
  void t.test('entries', (s) => entries(s, makeJournal))
  void t.test('aliases', (s) => aliases(s, makeJournal))
  void t.test('parked actors', (s) => parked(s, makeJournal))
  void t.test('images', (s) => images(s, makeJournal))
  void t.test('fenced rows', (s) => fencedRows(s, makeJournal))
  void t.test('opening again', (s) => openingAgain(s, makeJournal))
  void t.test('properties', (s) => journalProperties(s, makeJournal))
}

async function appends(t: Test, makeJournal: MakeJournal): Promise<void> {
  const { journal } = await makeJournal(t, 4)
  const { log, identity } = journal
  t.equal(identity.shards, 4)
  t.ok(identity.generation.length > 0)
  t.same(await log.append([]), [])
  const first = await log.claim(0)
  t.same(first, { epoch: first.epoch, head: 0, flush: 0 })
  t.same(await log.status(0), { epoch: first.epoch, head: 0, lastCommit: null })
  const { epoch } = await log.claim(3)
  const system = await log.claim(SYSTEM_SHARD)

  const groups = [
    group({ shard: 0, epoch: first.epoch, count: 3, body: bytes('three') }),
    group({ shard: 3, epoch }),
    group({ shard: SYSTEM_SHARD, epoch: system.epoch, count: 2 }),
  ]
  const kept = Buffer.from(groups[0]!.body)
  const appended = log.append(groups)
  t.same(await appended, ['committed', 'committed', 'committed'])
  // The caller may use its buffer again.
  groups[0]!.body.fill(0)
  const [row] = await log.read(0, 0, 1)
  t.same(Buffer.from(row!.body), kept)
  const { shard, offset, count, commitId } = row!
  t.same(
    { shard, epoch: row!.epoch, offset, count, commitId },
    { shard: 0, epoch: first.epoch, offset: 3, count: 3, commitId: groups[0]!.commitId },
  )
  const status = { epoch: first.epoch, head: 3, lastCommit: groups[0]!.commitId }
  t.same(await log.status(0), status)
  t.equal((await log.status(SYSTEM_SHARD)).head, 2)
  t.equal((await log.status(1)).head, 0, 'other shards are as they were')
  t.same(await log.append([group({ shard: 0, epoch: first.epoch, head: 3 })]), ['committed'])
  t.equal((await log.status(0)).head, 4)
}

async function fencing(t: Test, makeJournal: MakeJournal): Promise<void> {
  const { journal } = await makeJournal(t, 4)
  const { log } = journal
  const old = await log.claim(1)
  const peer = await log.claim(2)
  t.same(await log.append([group({ shard: 1, epoch: old.epoch })]), ['committed'])
  const now = await log.claim(1)
  t.ok(now.epoch > old.epoch, 'a claim raises the epoch')
  t.equal(now.head, 1)
  t.equal(await log.epochNow(1), now.epoch)
  t.equal(await log.epochNow(2), peer.epoch, "and no other shard's")

  const outcomes = await log.append([
    group({ shard: 1, epoch: old.epoch, head: 1 }),
    group({ shard: 2, epoch: peer.epoch }),
  ])
  t.same(outcomes, ['fenced', 'committed'], 'one that fails fails alone')
  t.equal((await log.status(1)).head, 1, 'and nothing of it is in')
  t.equal((await log.read(1, 0, 1e6)).length, 1)
  t.same(await log.append([group({ shard: 1, epoch: now.epoch, head: 0 })]), ['fenced'])
  t.same(await log.append([group({ shard: 1, epoch: now.epoch, head: 2 })]), ['fenced'])
  t.same(await log.append([group({ shard: 1, epoch: now.epoch + 1, head: 1 })]), ['fenced'])
  t.same(await log.append([group({ shard: 1, epoch: now.epoch, head: 1 })]), ['committed'])
}

async function sendingAgain(t: Test, makeJournal: MakeJournal): Promise<void> {
  const { journal } = await makeJournal(t, 2)
  const { log } = journal
  const { epoch } = await log.claim(0)
  const first = group({ shard: 0, epoch, count: 2 })
  t.same(await log.append([first]), ['committed'])
  t.same(await log.append([first]), ['committed'], 'the same bytes once more are in already')
  t.equal((await log.status(0)).head, 2)
  const second = group({ shard: 0, epoch, head: 2 })
  t.same(await log.append([second]), ['committed'])
  t.same(await log.append([first]), ['committed'], 'and with others behind them')
  await log.claim(0)
  t.same(await log.append([second]), ['committed'], 'and under a newer epoch: the first copy won')
  t.same(await log.append([{ ...second, commitId: freshUuid() }]), ['fenced'])
  t.equal((await log.read(0, 0, 1e6)).length, 2)
}

async function reading(t: Test, makeJournal: MakeJournal): Promise<void> {
  const { journal } = await makeJournal(t, 2)
  const { log } = journal
  const { epoch } = await log.claim(0)
  await log.claim(1)
  const offsets: number[] = []
  for (let head = 0; head < 20;) {
    const count = 1 + (head % 3)
    const body = Buffer.alloc(1_000, head)
    t.same(await log.append([group({ shard: 0, epoch, head, count, body })]), ['committed'])
    head += count
    offsets.push(head)
  }
  const read = async (after: number, bytesMax: number) =>
    (await log.read(0, after, bytesMax)).map((row) => row.offset)
  t.same(await read(0, 1e6), offsets)
  t.same(await read(offsets[2]!, 1e6), offsets.slice(3))
  t.same(await read(offsets[3]! - 1, 1e6), offsets.slice(3), 'a group in the middle of which it is')
  t.same(await read(0, 1), offsets.slice(0, 1), 'at least one')
  const some = await read(0, 3_500)
  t.ok(some.length >= 2 && some.length <= 4, 'about as many bytes as asked for')
  t.same(await read(offsets.at(-1)!, 1e6), [])
  t.same(await log.read(1, 0, 1e6), [], "no other shard's")

  const upTo = offsets[4]!
  await log.trim(0, epoch, upTo - 1)
  t.same(await read(0, 1e6), offsets.slice(4), 'a group with an entry above it stays')
  await log.trim(0, epoch, upTo)
  t.same(await read(0, 1e6), offsets.slice(5))
  await log.trim(0, epoch, offsets.at(-1)!)
  t.same(await read(0, 1e6), [])
  const status = await log.status(0)
  t.equal(status.head, offsets.at(-1), 'the head outlives its rows')
  t.equal(status.epoch, epoch)
  t.same(await log.append([group({ shard: 0, epoch })]), ['fenced'], 'and no chain begins anew')
  t.same(await log.append([group({ shard: 0, epoch, head: status.head })]), ['committed'])

  const claimed = await log.claim(0)
  await log.trim(0, epoch, status.head + 1)
  t.equal((await log.read(0, 0, 1e6)).length, 1, 'an older owner trims nothing')
  t.equal(claimed.head, status.head + 1)
}

async function registers(t: Test, makeJournal: MakeJournal): Promise<void> {
  const { journal } = await makeJournal(t, 2)
  const { log, derived } = journal
  const { epoch } = await log.claim(0)
  const other = await log.claim(1)
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
  t.equal(text((await derived.shard(0))?.body), 'again', 'one of the same offset replaces it')

  t.same(await derived.mark(ACTOR, day - 1, messageId), null)
  t.same(await derived.mark(OTHER, day, messageId), null)
  t.same(await derived.shard(1), null)
  t.same(await derived.consumer(1, 'flush'), null)
  t.same(await derived.consumer(0, 'index'), null)
  const index: DerivedRow = { kind: 'consumer', consumer: 'index', offset: 3 }
  t.equal(await derived.write(1, other.epoch, [index]), 'committed')
  t.equal(await derived.consumer(1, 'index'), 3)
  t.equal((await log.claim(0)).flush, 14, 'a claim finds the flush offset')
}

async function entries(t: Test, makeJournal: MakeJournal): Promise<void> {
  const { journal } = await makeJournal(t, 2)
  const { log, derived } = journal
  const { epoch } = await log.claim(0)
  t.same(await derived.actors(null, 10), [])
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
  t.same(await read({ order: 'descending', before, countMax: 3 }), [300, 299, 298])
  t.same(await read({ order: 'descending', before: 258, countMax: 4 }), [257, 256, 255, 254])
  t.same(await read({ order: 'descending', before: 3, countMax: 10 }), [2, 1])
  t.same(await read({ order: 'descending', before: 1, countMax: 10 }), [])
  t.same(await read({ order: 'ascending', after: 0, bytesMax: 1e6 }, OTHER), [])
  const [row] = await derived.entries(ACTOR, { order: 'ascending', after: 41, bytesMax: 1 })
  t.same({ ...row, body: [...row!.body] }, { n: 42, offset: 420, body: Array(100).fill(42) })
  t.equal(await derived.write(0, epoch, rows.slice(10, 20)), 'committed', 'written again')
  t.same(await read({ order: 'ascending', after: 0, bytesMax: 1e6 }), numbers)

  const more = Array.from({ length: 20 }, () => freshUuid())
  const first = more.map((actorId) => entry(actorId, 1))
  t.equal(await derived.write(0, epoch, [...first, entry(OTHER, 1)]), 'committed')
  const all = [ACTOR, OTHER, ...more].sort()
  t.same(await derived.actors(null, 100), all)
  const paged: string[] = []
  for (let page = await derived.actors(null, 5); page.length > 0;) {
    paged.push(...page)
    page = await derived.actors(paged.at(-1)!, 5)
  }
  t.same(paged, all)
  t.same(await derived.actors('ffffffff-ffff-ffff-ffff-ffffffffffff', 5), [])
}

async function aliases(t: Test, makeJournal: MakeJournal): Promise<void> {
  const { journal } = await makeJournal(t, 2)
  const { log, derived } = journal
  const { epoch } = await log.claim(0)
  const alias = (keyType: string, key: string, actorId: string): AliasRow => {
    const claim = { actorId, messageId: 'f'.repeat(32), confirmed: true, clock: 12 }
    return { keyType, key, claims: [claim] }
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

async function parked(t: Test, makeJournal: MakeJournal): Promise<void> {
  const { journal } = await makeJournal(t, 2)
  const { log, derived } = journal
  const { epoch } = await log.claim(0)
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

async function images(t: Test, makeJournal: MakeJournal): Promise<void> {
  const { journal } = await makeJournal(t, 2)
  const { log, derived } = journal
  const { epoch } = await log.claim(SYSTEM_SHARD)
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
}

async function fencedRows(t: Test, makeJournal: MakeJournal): Promise<void> {
  const { journal } = await makeJournal(t, 2)
  const { log, derived } = journal
  const old = await log.claim(0)
  const row = (offset: number): DerivedRow => ({ kind: 'shard', offset, body: bytes(`${offset}`) })
  t.equal(await derived.write(0, old.epoch, [row(1)]), 'committed')
  const now = await log.claim(0)
  t.equal(await derived.write(0, old.epoch, [row(2)]), 'fenced')
  t.equal((await derived.shard(0))?.offset, 1, 'an older owner writes nothing')
  const [outcomes, written, stale] = await Promise.all([
    log.append([group({ shard: 0, epoch: now.epoch, head: 7 })]),
    derived.write(0, now.epoch, [row(3)]),
    derived.write(0, old.epoch, [row(4)]),
  ])
  t.same([outcomes, written, stale], [['fenced'], 'committed', 'fenced'], 'each by itself')
  t.equal((await derived.shard(0))?.offset, 3)
}

async function openingAgain(t: Test, makeJournal: MakeJournal): Promise<void> {
  const { journal, reopen } = await makeJournal(t, 2)
  if (reopen === null) {
    t.pass('this driver keeps nothing')
    return
  }
  const { epoch } = await journal.log.claim(0)
  const last = group({ shard: 0, epoch, count: 5, body: bytes('kept') })
  t.same(await journal.log.append([last]), ['committed'])
  const rows: DerivedRow[] = [
    { kind: 'entry', actorId: ACTOR, n: 1, offset: 1, body: bytes('entry') },
    { kind: 'alias', offset: 1, row: { keyType: 'order', key: '7', claims: [] } },
    { kind: 'snapshot', actorId: ACTOR, offset: 2, body: bytes('snapshot') },
    { kind: 'mark', actorId: ACTOR, day: 1, messageId: 'm', offset: 2, body: bytes('mark') },
    { kind: 'shard', offset: 2, body: bytes('shard') },
    { kind: 'parked', consumer: 'index', actorId: OTHER, offset: 2, body: bytes('parked') },
    { kind: 'consumer', consumer: 'flush', offset: 2 },
  ]
  // Not waited for: closing writes what waits.
  const written = journal.derived.write(0, epoch, rows)
  const again = await reopen()
  t.equal(await written, 'committed')
  t.same(again.identity, journal.identity)
  const { log, derived } = again
  t.same(await log.status(0), { epoch, head: 5, lastCommit: last.commitId })
  t.equal(text((await log.read(0, 0, 1e6))[0]?.body), 'kept')
  const range = { order: 'ascending', after: 0, bytesMax: 1e6 } as const
  t.equal(text((await derived.entries(ACTOR, range))[0]?.body), 'entry')
  t.same(await derived.alias('order', '7'), { keyType: 'order', key: '7', claims: [] })
  t.equal(text((await derived.snapshot(ACTOR))?.body), 'snapshot')
  t.equal(text(await derived.mark(ACTOR, 1, 'm')), 'mark')
  t.equal(text((await derived.shard(0))?.body), 'shard')
  t.equal((await derived.parked(0, 'index')).length, 1)
  t.same(await derived.actors(null, 10), [ACTOR])
  const claimed = await log.claim(0)
  t.same({ ...claimed, epoch: claimed.epoch > epoch }, { epoch: true, head: 5, flush: 2 })
}
