// The one suite that every journal driver passes: the memory twin, LMDB, later Cassandra. It stands
// between the port's words (storage/journal.ts) and the drivers: a twin may be trusted because it
// passes what the real one passes. Source: PROTOCOL 3.0-3.2, 3.12, 3.16.

import type { Test } from 'tap'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { DerivedRow } from '../journal.ts'
import { derivedConformance } from './derived.ts'
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
  void t.test('derived rows', (s) => derivedOf(s, makeJournal))
  void t.test('flush', (s) => flush(s, makeJournal))
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

/** A journal that fences its appends fences its derived rows, too. */
async function derivedOf(t: Test, makeJournal: MakeJournal): Promise<void> {
  derivedConformance(t, async (s, shards) => {
    const { journal } = await makeJournal(s, shards)
    const claim = async (shard: number) => (await journal.log.claim(shard)).epoch
    return { derived: journal.derived, claim, rules: { fences: true, sameOffset: 'replaces' } }
  })
}

async function flush(t: Test, makeJournal: MakeJournal): Promise<void> {
  const { journal } = await makeJournal(t, 2)
  const { log, derived } = journal
  const { epoch } = await log.claim(0)
  const row = { kind: 'consumer', consumer: 'flush', offset: 14 } as const
  t.equal(await derived.write(0, epoch, [row]), 'committed')
  t.equal((await log.claim(0)).flush, 14, 'a claim finds the flush offset')
  const now = await log.claim(0)
  const [outcomes, written, stale] = await Promise.all([
    log.append([group({ shard: 0, epoch: now.epoch, head: 7 })]),
    derived.write(0, now.epoch, [{ ...row, offset: 15 }]),
    derived.write(0, epoch, [{ ...row, offset: 16 }]),
  ])
  t.same([outcomes, written, stale], [['fenced'], 'committed', 'fenced'], 'each by itself')
  t.equal(await derived.consumer(0, 'flush'), 15)
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
