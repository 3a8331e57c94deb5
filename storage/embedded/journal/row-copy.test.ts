// The embedded store as a move reads it: all of its rows as they were written, of each shard's log
// what its derived rows don't have, nothing from a store that isn't whole or is written to.
// Source: PROTOCOL 3.12, 3.16.

import t, { type Test } from 'tap'
import { joinEntries } from '../../../protocol/entry/entry.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { freshUuid, group } from '../../conformance/journal-samples.ts'
import type { StoreSource } from '../../copy.ts'
import type { AcceptedLoss, DerivedRow } from '../../journal.ts'
import { openForCopy } from './row-copy.ts'
import { openEnvironment } from '../../lmdb/environment.ts'
import { readIdentity, writeIdentity } from './identity.ts'
import { openEmbeddedJournal, type EmbeddedJournal } from './journal.ts'
import { entryOf } from '../testing/damaged-store.ts'
import { journalOptions, optionsIn } from '../testing/journal-options.ts'

const SHARDS = [SYSTEM_SHARD, 0, 1]

/** A store of two shards; closed when `fill` has ended. */
async function store(t: Test, fill: (journal: EmbeddedJournal) => Promise<void>): Promise<string> {
  const options = { ...journalOptions(t), shards: 2 }
  const journal = await openEmbeddedJournal(options)
  await fill(journal)
  await journal.close()
  return options.dir
}

async function open(t: Test, dir: string): Promise<StoreSource> {
  const source = await openForCopy(optionsIn(dir))
  t.teardown(() => source.close())
  return source
}

/** One group of these bodies, from offset 1 on. */
async function append(journal: EmbeddedJournal, shard: number, bodies: readonly Buffer[]) {
  const { epoch, head } = await journal.log.claim(shard)
  const body = joinEntries(bodies)
  const one = group({ shard, epoch, head, count: bodies.length, body })
  if ((await journal.log.append([one]))[0] !== 'committed') throw new Error('not committed')
  return epoch
}

function rowsOf(shard: number, at: number): DerivedRow[] {
  const [actorId, other] = [freshUuid(), freshUuid()]
  const claim = { actorId, messageId: 'm', confirmed: true, clock: 5 }
  // A key that long is cut in the row's own.
  const messageId = `${'long '.repeat(30)}${shard}`
  const mark = Buffer.from(JSON.stringify({ messageId, result: 'ü' }))
  const images: DerivedRow[] = [
    { kind: 'image', offset: at + 7, part: 0, body: Buffer.from('first') },
    { kind: 'image', offset: at + 7, part: 1, body: Buffer.from('second') },
  ]
  return [
    { kind: 'entry', actorId, n: 1, offset: at, body: entryOf(actorId, 1, 10) },
    // The log doesn't have it: its row holds it itself.
    { kind: 'entry', actorId: other, n: 7, offset: at + 90, body: entryOf(other, 7, 10) },
    { kind: 'alias', offset: at, row: { keyType: 'order', key: `ö ${shard}`, claims: [claim] } },
    { kind: 'mark', actorId, day: 3, messageId, offset: at, body: mark },
    { kind: 'parked', consumer: 'index', actorId, offset: at + 1, body: Buffer.from('why') },
    { kind: 'parked', consumer: 'index', actorId: other, offset: at + 2, body: null },
    { kind: 'snapshot', actorId, offset: at + 3, body: Buffer.from('snapshot') },
    { kind: 'shard', offset: at + 4, body: Buffer.from('{"relayed":3}') },
    { kind: 'consumer', consumer: 'flush', offset: at + 5 },
    { kind: 'consumer', consumer: 'index', offset: at + 6 },
    ...(shard === SYSTEM_SHARD ? images : []),
  ]
}

/** A row in one form, whoever has made it. */
function textOf(shard: number, row: DerivedRow): string {
  const body = 'body' in row && row.body !== null ? Buffer.from(row.body).toString('hex') : null
  const members = Object.entries({ ...row, body }).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `${shard} ${JSON.stringify(members)}`
}

t.test('every row comes as it was written, of its shard', async (t) => {
  const written: string[] = []
  const dir = await store(t, async (journal) => {
    for (const shard of SHARDS) {
      const rows = rowsOf(shard, 1)
      const [first] = rows as [Extract<DerivedRow, { kind: 'entry' }>]
      const epoch = await append(journal, shard, [Buffer.from(first.body)])
      t.equal(await journal.derived.write(shard, epoch, rows), 'committed')
      written.push(...rows.map((row) => textOf(shard, row)))
    }
  })
  const source = await open(t, dir)
  const found = [...source.derived()].map(({ shard, row }) => textOf(shard, row))
  t.same(found.toSorted(), written.toSorted())
})

t.test('a log of more than what is read at once, group by group', async (t) => {
  const groups: { shard: number; offset: number; bytes: number }[] = []
  const dir = await store(t, async (journal) => {
    const { epoch } = await journal.log.claim(1)
    for (let i = 0; i < 12; i++) {
      const body = Buffer.alloc(400_000 + i, i)
      const one = group({ shard: 1, epoch, head: i, body })
      t.same(await journal.log.append([one]), ['committed'])
      groups.push({ shard: 1, offset: i + 1, bytes: body.length })
    }
  })
  const source = await open(t, dir)
  const found = [...source.log(1)].map(({ shard, offset, body }) => {
    return { shard, offset, bytes: body.length }
  })
  t.same(found, groups)
  t.same([...source.log(0)], [])
  t.same(
    source.extents.map(({ shard, floor, head }) => [shard, floor, head]),
    [
      [SYSTEM_SHARD, 0, 0],
      [0, 0, 0],
      [1, 0, 12],
    ],
  )
})

t.test('whoever had a shard before has lost it, and one who writes is found out', async (t) => {
  const epochs: number[] = []
  const dir = await store(t, async (journal) => {
    for (const shard of SHARDS) epochs.push((await journal.log.claim(shard)).epoch)
  })
  const source = await open(t, dir)
  t.ok(
    source.extents.every(({ epoch }, i) => epoch > epochs[i]!),
    'of every shard',
  )
  source.assertUnchanged()
  const journal = await openEmbeddedJournal(optionsIn(dir))
  const { epoch } = await journal.log.claim(0)
  await journal.log.append([group({ shard: 0, epoch })])
  await journal.close()
  t.throws(() => source.assertUnchanged(), /somebody has written to it meanwhile: stop the node/)
})

t.test('behind a loss: only what its derived rows have worked through', async (t) => {
  const writeRows = async (dir: string, flush: number, relayed: number): Promise<void> => {
    const journal = await openEmbeddedJournal(optionsIn(dir))
    const { epoch } = await journal.log.claim(0)
    const body = Buffer.from(JSON.stringify({ relayed }))
    const rows: DerivedRow[] = [
      { kind: 'consumer', consumer: 'flush', offset: flush },
      { kind: 'shard', offset: Math.max(flush, relayed), body },
    ]
    t.equal(await journal.derived.write(0, epoch, rows), 'committed')
    await journal.close()
  }
  const dir = await store(t, async (journal) => {
    const { epoch } = await journal.log.claim(0)
    for (let head = 0; head < 8; head++) {
      t.same(await journal.log.append([group({ shard: 0, epoch, head })]), ['committed'])
    }
  })
  const losses: AcceptedLoss[] = [
    { shard: 0, offset: 1, resumedAt: 3 },
    { shard: 0, offset: 4, resumedAt: 6 },
  ]
  writeIdentity(dir, { ...readIdentity(dir)!, losses })
  const refused = /shard 0: what lies behind its accepted loss has not been worked through yet/
  await t.rejects(openForCopy(optionsIn(dir)), refused, 'nothing was')
  await writeRows(dir, 3, 3)
  await t.rejects(openForCopy(optionsIn(dir)), refused, 'the newest counts')
  await writeRows(dir, 6, 5)
  await t.rejects(openForCopy(optionsIn(dir)), refused, 'relays are behind')
  await writeRows(dir, 6, 6)
  const source = await open(t, dir)
  t.same(
    source.extents.map(({ shard, floor }) => [shard, floor]),
    [
      [SYSTEM_SHARD, 0],
      [0, 6],
      [1, 0],
    ],
  )
  t.same(
    [...source.log(0)].map(({ offset }) => offset),
    [7, 8],
    'nothing of what lies below',
  )
})

t.test('a row that is not what was written ends the copy', async (t) => {
  const dir = await store(t, async (journal) => {
    const { epoch } = await journal.log.claim(0)
    await journal.derived.write(0, epoch, rowsOf(0, 1))
  })
  const env = openEnvironment(dir, false)
  const [{ key, value }] = [...env.snapshots.getRange({})] as [{ key: Buffer; value: Buffer }]
  const other = Buffer.from(value)
  other[9]! ^= 1
  env.snapshots.putSync(Buffer.from(key), other)
  await env.root.close()
  const source = await open(t, dir)
  t.throws(() => [...source.derived()], /table snapshots, row [0-9a-f]{32}: its checksum/)
})
