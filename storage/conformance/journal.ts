// The one suite that every journal driver passes: the memory twin, the embedded one. The port is
// storage/journal.ts. A twin may be trusted because it passes what the real one passes. Source:
// PROTOCOL 3.0-3.2, 3.12, 3.16.

import type { Test } from 'tap'
import type { DerivedRow } from '../journal.ts'
import { derivedConformance } from './derived.ts'
import { expiryConformance, type ExpiryUnderTest } from './expiry.ts'
import { group, type MakeJournal } from './journal-samples.ts'
import { logConformance } from './log.ts'

const ACTORS = ['00000000-0000-7000-8000-00000000000a', '00000000-0000-7000-8000-00000000000b']
const [ACTOR, OTHER] = ACTORS as [string, string]

function bytes(content: string): Buffer {
  return Buffer.from(content)
}

/** Text of bytes that may be any Uint8Array. */
function text(body: Uint8Array | null | undefined): string | null {
  return body === null || body === undefined ? null : Buffer.from(body).toString()
}

/** `goWithLog`: rows of actors that are forgotten stay as long as the log has their entries. */
export function journalConformance(
  t: Test,
  makeJournal: MakeJournal,
  rules: { readonly goWithLog?: true } = {},
): void {
  void t.test('log', (s) => logOf(s, makeJournal))
  void t.test('derived rows', (s) => derivedOf(s, makeJournal))
  void t.test('what expires', (s) => expiryOf(s, makeJournal, rules))
  void t.test('flush', (s) => flush(s, makeJournal))
  void t.test('opening again', (s) => openingAgain(s, makeJournal))
}

/** A journal issues its own epochs and forgets row by row. */
async function logOf(t: Test, makeJournal: MakeJournal): Promise<void> {
  logConformance(t, async (s, shards) => {
    const { journal } = await makeJournal(s, shards)
    const { log, identity } = journal
    s.equal(identity.shards, shards)
    s.ok(identity.generation.length > 0)
    return { log, claim: (shard) => log.claim(shard), keepsLast: false }
  })
}

/** A journal that fences its appends fences its derived rows, too. */
async function derivedOf(t: Test, makeJournal: MakeJournal): Promise<void> {
  derivedConformance(t, async (s, shards) => {
    const { journal } = await makeJournal(s, shards)
    const claim = async (shard: number) => (await journal.log.claim(shard)).epoch
    return { derived: journal.derived, claim, rules: { fences: true, sameOffset: 'replaces' } }
  })
}

/** A journal has no time of its own: it is told its shards' clocks. */
async function expiryOf(
  t: Test,
  makeJournal: MakeJournal,
  rules: { readonly goWithLog?: true },
): Promise<void> {
  expiryConformance(t, async (s, shards) => {
    const { derived, log } = (await makeJournal(s, shards)).journal
    const claim = async (shard: number) => (await log.claim(shard)).epoch
    const expire: ExpiryUnderTest['expire'] = (clockOf) => derived.expire!(clockOf)
    return { derived, claim, expire, countedBy: 'shard', ...rules }
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
