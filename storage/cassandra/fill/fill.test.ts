// A store that was moved: the same rows, the same log, another generation; nothing half done is
// ever served, and what was cut short goes on. Source: PROTOCOL 3.12.

import { randomFillSync } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  LOSS_JUMP,
  encodeEntry,
  joinEntries,
  splitEntries,
  type Entry,
} from '../../../protocol/entry/entry.ts'
import { LIMITS } from '../../../config/limits.ts'
import { freshUuid, group } from '../../conformance/journal-samples.ts'
import type { StoreSource } from '../../copy.ts'
import type { DerivedReader, DerivedRow, LogRow, StoreIdentity } from '../../journal.ts'
import { openForCopy } from '../../embedded/journal/row-copy.ts'
import { openEmbeddedJournal } from '../../embedded/journal/journal.ts'
import { RowAudit } from '../../row-audit.ts'
import { fillCassandra } from './fill.ts'
import { openCassandra, type CassandraOptions, type CassandraStore } from '../store.ts'
import { onBoth } from '../testing/both.ts'
import { expireRows } from '../testing/expired-rows.ts'
import { recorder } from '../testing/recorder.ts'
import { verifyCassandra } from '../verify/log.ts'

const SHARDS = 4
const ACTORS = Array.from({ length: 40 }, () => freshUuid())

function embedded(t: Test, dir: string) {
  const options = {
    dir,
    shards: SHARDS,
    log: recorder(),
    random: (into: Uint8Array) => void randomFillSync(into),
    clock: Date.now,
    roomBytes: 0,
    onFatal: (error: Error) => t.fail(error.message),
  }
  return openEmbeddedJournal(options)
}

function entryOf(actorId: string, n: number): Entry {
  const long = 'k'.repeat(100)
  const entry = {
    y: 'order',
    p: actorId,
    v: n - 1,
    n,
    r: [{ type: 'x', long: 'y'.repeat(300) }],
    m: `${long} ${actorId} ${n}`,
    l: 1,
    a: { type: 'm', success: true },
    t: Date.now(),
    c: 0,
    b: 'me',
  }
  return entry as unknown as Entry
}

/** A store as a stopped node leaves it: small groups, flushed here and not there. */
async function fillEmbedded(t: Test, dir: string): Promise<void> {
  const journal = await embedded(t, dir)
  const numbers = new Map<string, number>()
  const filling = [-1, 0, 1, 2].map(async (shard) => {
    const { epoch } = await journal.log.claim(shard)
    let head = 0
    for (let i = 0; i < 60; i++) {
      const actors = ACTORS.slice((shard + 1) * 10, (shard + 2) * 10)
      const own = Array.from({ length: 1 + (i % 3) }, (_, k) => actors[(i + k) % 10]!)
      const entries = own.map((actorId) => {
        const n = (numbers.get(actorId) ?? 0) + 1
        numbers.set(actorId, n)
        return entryOf(actorId, n)
      })
      const bodies = entries.map((entry) => encodeEntry(entry))
      const sent = group({ shard, epoch, head, count: bodies.length, body: joinEntries(bodies) })
      t.same(await journal.log.append([sent]), ['committed'])
      const rows = entries.map((entry, k): DerivedRow => {
        return {
          kind: 'entry',
          actorId: entry.p,
          n: entry.n,
          offset: head + 1 + k,
          body: bodies[k]!,
        }
      })
      head += bodies.length
      if (i < 50)
        await journal.derived.write(shard, epoch, [...rows, ...others(shard, head, entries[0]!)])
    }
  })
  await Promise.all(filling)
  // Not claimed by anybody for a while: epochs of groups differ.
  const { epoch, head } = await journal.log.claim(2)
  const last = encodeEntry(entryOf(ACTORS[39]!, numbers.get(ACTORS[39]!)! + 1))
  await journal.log.append([group({ shard: 2, epoch, head, body: joinEntries([last]) })])
  await journal.close()
}

function others(shard: number, offset: number, { p, m }: Entry): DerivedRow[] {
  const claim = { actorId: p, messageId: m, confirmed: true, clock: 5 }
  const mark = Buffer.from(JSON.stringify({ messageId: m, result: 'ü' }))
  const key = `${'long '.repeat(20)}${shard} ${offset % 7}`
  const rows: DerivedRow[] = [
    { kind: 'alias', offset, row: { keyType: 'order', key, claims: [claim] } },
    { kind: 'alias', offset, row: { keyType: 'order!key', key: `${offset}`, claims: [] } },
    { kind: 'mark', actorId: p, day: 3, messageId: m, offset, body: mark },
    { kind: 'snapshot', actorId: p, offset, body: Buffer.from('{"n":0,"version":0}') },
    { kind: 'shard', offset, body: Buffer.from(`{"clockMs":${offset},"relayed":${offset}}`) },
    { kind: 'parked', consumer: 'index', actorId: p, offset, body: offset % 2 ? null : mark },
    { kind: 'consumer', consumer: 'flush', offset },
  ]
  if (shard === -1 && offset % 20 === 0) {
    rows.push({ kind: 'image', offset, part: 0, body: Buffer.alloc(5_000, offset) })
    rows.push({ kind: 'consumer', consumer: 'image', offset })
  }
  return rows
}

/** All that readers can ask of the derived rows, as text. */
async function held(derived: DerivedReader): Promise<string> {
  const all: unknown[] = []
  const text = (body: Uint8Array | null | undefined) => body && Buffer.from(body).toString('base64')
  for (const actorId of ACTORS) {
    const rows = await derived.entries(actorId, { order: 'ascending', after: 0, bytesMax: 1e9 })
    all.push(rows.map(({ n, offset, body }) => [n, offset, text(body)]))
    const snapshot = await derived.snapshot(actorId)
    all.push([snapshot?.offset, text(snapshot?.body)])
    for (const { n } of rows) {
      all.push(text(await derived.mark(actorId, 3, entryOf(actorId, n).m)))
    }
  }
  for (let shard = -1; shard < SHARDS; shard++) {
    const own = await derived.shard(shard)
    all.push([own?.offset, text(own?.body), await derived.consumer(shard, 'flush')])
    for (const { actorId, body } of await derived.parked(shard, 'index'))
      all.push(actorId, text(body))
    for (let i = 0; i < 7; i++) {
      all.push(await derived.alias('order', `${'long '.repeat(20)}${shard} ${i}`))
    }
  }
  const image = await derived.image()
  all.push(image?.offset, image?.parts.map(text))
  for (let i = 0; i < 130; i++) all.push(await derived.alias('order!key', `${i}`))
  return JSON.stringify(all)
}

/** Entries of a log by offset, however they are grouped. */
function entriesOf(rows: Iterable<LogRow>): Map<number, string> {
  const found = new Map<number, string>()
  for (const { offset, count, epoch, body } of rows) {
    for (const [i, entry] of splitEntries(body).entries()) {
      found.set(offset - count + 1 + i, `${epoch} ${entry.toString()}`)
    }
  }
  return found
}

async function logOf({ segments, control }: CassandraStore, shard: number): Promise<LogRow[]> {
  const rows: LogRow[] = []
  const { segment: last } = await control.shard(shard)
  for (let segment = 1; segment <= last; segment++) {
    for (let after = 0; ;) {
      const some = await segments.rows({ shard, segment }, { after, bytesMax: 1e6 })
      if (some.length === 0) break
      rows.push(...some)
      after = some.at(-1)!.offset
    }
  }
  return rows
}

function openSource(dir: string): Promise<StoreSource> {
  return openForCopy({
    dir,
    log: recorder(),
    random: (into) => void randomFillSync(into),
    clock: Date.now,
  })
}

function folder(t: Pick<Test, 'teardown'>): string {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-move-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

let first: Promise<string> | null = null

/** The folder of a filled store: a copy, for filling one takes seconds. */
async function filled(own: Test): Promise<string> {
  first ??= Promise.resolve(folder(t)).then(async (dir) => {
    await fillEmbedded(own, dir)
    return dir
  })
  const dir = folder(own)
  cpSync(await first, dir, { recursive: true })
  return dir
}

await onBoth(t, 'moves', async (t, cassandra) => {
  const findings = async (options: CassandraOptions) => {
    const lines: string[] = []
    await verifyCassandra(options, (line) => lines.push(line))
    // The snapshots of this test tell of no entry.
    return lines.filter((line) => !line.includes('actor_snap'))
  }

  t.test('all of it, at once or in pieces', async (t) => {
    const dir = await filled(t)
    const options = cassandra.options(t, { shards: null })

    const cut = await openSource(dir)
    let left = 3
    const stops: StoreSource = {
      ...cut,
      extents: cut.extents,
      identity: cut.identity,
      log: (shard) => cut.log(shard),
      *derived() {
        yield* cut.derived()
      },
      assertUnchanged() {},
    }
    const dies = fillCassandra(options, stops, ({ groups }) => {
      if (groups > 0 && left-- <= 0) throw new Error('the power went')
    })
    await t.rejects(dies, { message: 'the power went' })
    await cut.close()
    await t.rejects(openCassandra(options), { message: /being moved into it and is not whole/ })

    const source = await openSource(dir)
    t.teardown(() => source.close())
    const report = await fillCassandra(options, source, () => {})
    t.ok(report.derivedRows > 500)
    t.same(await findings(options), [])
    const store = await openCassandra(options)
    t.teardown(() => store.close())
    t.equal(store.identity.shards, SHARDS)
    t.equal(store.identity.generation, report.generation)
    t.not(store.identity.generation, source.identity.generation)
    for (const { shard, head, epoch, floor } of source.extents) {
      const rows = await logOf(store, shard)
      t.same(entriesOf(rows), entriesOf(source.log(shard)), `the log of shard ${shard}`)
      t.ok(rows.length < 20, 'small groups are joined')
      const row = await store.control.shard(shard)
      const statics = await store.segments.statics({ shard, segment: row.segment })
      t.match(statics, { head, epoch, sealed: false })
      t.equal((await store.segments.statics({ shard, segment: 1 }))!.base, floor)
      t.equal(row.epoch, epoch)
    }
    const journal = await embedded(t, dir)
    t.equal(await held(store.derived), await held(journal.derived), 'what is derived')
    await journal.close()

    const again = await openSource(dir)
    await t.rejects(
      fillCassandra(options, again, () => {}),
      { message: /holds a store already/ },
    )
    await again.close()
  })

  t.test('a node that still runs is found out', async (t) => {
    const dir = await filled(t)
    const options = cassandra.options(t, { shards: null })
    const source = await openSource(dir)
    t.teardown(() => source.close())
    const node = await embedded(t, dir)
    await node.log.claim(0)
    await node.close()
    await t.rejects(
      fillCassandra(options, source, () => {}),
      { message: /somebody has written to it meanwhile: stop the node/ },
    )
    await t.rejects(openCassandra(options), { message: /is not whole/ })
    const other = await openSource(dir)
    t.teardown(() => other.close())
    await t.rejects(
      fillCassandra({ ...options, shards: 8 }, other, () => {}),
      {
        message: /the store has 4 shards and 8 are configured/,
      },
    )
    await fillCassandra(options, other, () => {})
    t.same(await findings(options), [])
  })

  t.test('an actor is there in full, whatever has gone before the move and after it', async (t) => {
    const dir = folder(t)
    const actorId = ACTORS[0]!
    const recorded = [2, 300, 600]
    const journal = await embedded(t, dir)
    const { epoch } = await journal.log.claim(0)
    const late = 10 * LIMITS.storage.derivedTtlSeconds * 1_000
    const rows = Array.from({ length: 600 }, (_, i): DerivedRow => {
      const [n, isRecorded] = [i + 1, recorded.includes(i + 1)]
      const v = recorded.filter((one) => one < n).length
      const entry = { ...entryOf(actorId, n), v, c: n < 280 ? 0 : late }
      const body = encodeEntry(isRecorded ? entry : { ...entry, r: [] })
      return { kind: 'entry', actorId, n, offset: n, body }
    })
    t.equal(await journal.derived.write(0, epoch, rows), 'committed')
    await journal.derived.expire!(() => late)
    const range = { order: 'ascending', after: 0, bytesMax: 1e9 } as const
    t.equal((await journal.derived.entries(actorId, range)).length, 600 - 279 + 2)
    await journal.close()

    const options = cassandra.options(t, { shards: null })
    const source = await openSource(dir)
    t.teardown(() => source.close())
    await fillCassandra(options, source, () => {})
    const store = await openCassandra(options)
    t.teardown(() => store.close())
    t.ok((await expireRows(await cassandra.session(t), options.keyspace)) > 300)
    const found = await store.derived.entries(actorId, range)
    t.same(
      found.map(({ n }) => n),
      [2, 256, 300, 512, 600],
    )
    const audit = new RowAudit((what) => t.fail(what))
    for (const row of found) audit.next(row)
    t.equal(audit.version, recorded.length)
  })

  t.test('numbers that jump over an accepted loss', async (t) => {
    const options = cassandra.options(t)
    const actorId = ACTORS[0]!
    // As an actor goes on behind one loss, and behind another one.
    const numbers = [1, 2, 300, 301, LOSS_JUMP + 302, LOSS_JUMP + 303, 2 * LOSS_JUMP + 304]
    const losses = [{ shard: 0, offset: 5, resumedAt: LOSS_JUMP + 5 }]
    const names = { format: 1, shards: 2, generation: 'old', secret: 's', secretsKey: 'k' }
    const identity: StoreIdentity = { ...names, losses }
    // 256 ends its partition and is there.
    const all = [1, 2, 256, 300, 301, ...numbers.slice(4)]
    const source: StoreSource = {
      identity,
      extents: [-1, 0, 1].map((shard) => ({ shard, epoch: 1, floor: 0, head: 0 })),
      log: () => [],
      derived: () =>
        all.map((n) => {
          const body = encodeEntry({ ...entryOf(actorId, n), r: [] })
          return { shard: 0, row: { kind: 'entry', actorId, n, offset: n, body } as const }
        }),
      assertUnchanged() {},
      close: async () => {},
    }
    await fillCassandra(options, source, () => {})
    const store = await openCassandra(options)
    t.teardown(() => store.close())
    t.same(store.identity.losses, losses)
    t.equal(store.identity.secretsKey, 'k', 'what is sealed is opened with the same key')
    const read = async (range: Parameters<typeof store.derived.entries>[1]) =>
      (await store.derived.entries(actorId, range)).map(({ n }) => n)
    t.same(await read({ order: 'ascending', after: 0, bytesMax: 1e6 }), all.slice(0, -1))
    t.same(await read({ order: 'ascending', after: LOSS_JUMP + 303, bytesMax: 1e6 }), all.slice(-1))
    const before = Number.MAX_SAFE_INTEGER
    t.same(
      await read({ order: 'descending', before, countMax: 50, bytesMax: 1e6 }),
      [...all].reverse(),
    )
    t.same(
      await read({ order: 'descending', before: LOSS_JUMP + 303, countMax: 3, bytesMax: 1e6 }),
      [LOSS_JUMP + 302, 301, 300],
    )
    const session = await cassandra.session(t)
    const found = await session.read(
      `SELECT ttl(body) AS expiry FROM ${options.keyspace}.actor_entry WHERE pid = ? AND bucket = 0`,
      [actorId],
    )
    t.same(new Set(found.map((row) => row['expiry'])), new Set([null]), 'all of them stay')
  })
})
