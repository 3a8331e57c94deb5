// Actors that are forgotten on a server: in whatever order the statements of their rows arrive, and
// whatever comes a second time, nothing of one is there without its end once that is written; in
// the end nothing is there at all. Source: PROTOCOL 3.0 (registers), 3.12 "Forgotten actors".

import t from 'tap'
import fc from 'fast-check'
import { encodeEntry, type Entry } from '../../../protocol/entry/entry.ts'
import type { DerivedRow } from '../../journal.ts'
import { freshUuid } from '../../conformance/journal-samples.ts'
import { expireRows } from '../testing/expired-rows.ts'
import { StoreMaker } from '../testing/test-store.ts'
import { TwinCassandra } from '../testing/twin.ts'
import { CassandraDerivedReader } from './reader.ts'
import { BUCKET_ENTRIES } from './rows.ts'
import { stagesOf } from './statements.ts'

const ALL = { order: 'ascending', after: 0, bytesMax: 1e9 } as const

function entryRow(p: string, n: number, more: Partial<Entry> = {}): DerivedRow {
  const body = encodeEntry({
    ...{ y: 'x', p, v: n - 1, n, r: [{ t: 'x' }], m: `m${n}`, l: 0, t: 0, c: 0, b: 'x', ...more },
    a: { type: 'x', success: true },
  })
  const passing = more.f === undefined ? null : { passesFrom: more.f }
  return { kind: 'entry', actorId: p, n, offset: 10 * n, body, ...passing }
}

/** An actor's rows; the last but one ends it, the last is what it refuses then. */
function lifeOf(p: string, n: number): DerivedRow[] {
  const rows = Array.from({ length: n - 1 }, (_, i) => entryRow(p, i + 1))
  const snapshot = {
    kind: 'snapshot',
    actorId: p,
    offset: 10 * (n - 1),
    body: Buffer.of(1),
  } as const
  return [...rows, snapshot, entryRow(p, n, { f: 0 }), entryRow(p, n + 1, { v: n, r: [], f: 0 })]
}

const isThere = ({ n }: { readonly n: number }, end: number): boolean => n < end

const schedule = fc.record({
  n: fc.constantFrom(2, 3, 5, BUCKET_ENTRIES, BUCKET_ENTRIES + 1),
  /** Where each statement stands among all, and whether it is sent again at the end. */
  places: fc.array(fc.nat(), { minLength: 40, maxLength: 40 }),
  again: fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }),
})

t.setTimeout(120_000)

t.test('once an end counts as written nothing is there without it', async (t) => {
  const cassandra = new TwinCassandra(t)
  const options = cassandra.options(t)
  const { identity } = await new StoreMaker(options).make(t, 2)
  const session = await cassandra.session(t)
  const { keyspace } = options
  const reader = new CassandraDerivedReader(session, keyspace, identity)
  const bounds = { bytes: 1, partitions: 1 }
  const statementsOf = (rows: readonly DerivedRow[]) =>
    rows.flatMap((row) => {
      const place = { keyspace, shard: 0, bounds, keepsRejections: false }
      const { first, aside } = stagesOf(place, [row])
      // Partitions are mutations of their own: one may be in and the next not.
      return [...first, ...aside].map((statements) => ({ statements }))
    })
  const property = fc.asyncProperty(schedule, async ({ n, places, again }) => {
    const p = freshUuid()
    const all = statementsOf(lifeOf(p, n))
    const at = (i: number): number => places[i % places.length]!
    const order = all.map((_, i) => i).toSorted((a, b) => at(a) - at(b) || a - b)
    for (const i of order) await session.put(all[i]!.statements)
    for (const i of order) if (again[i % again.length]!) await session.put(all[i]!.statements)
    const rows = await reader.entries(p, { ...ALL, after: n - 1 })
    const first = await reader.entries(p, ALL)
    if (first.some((row) => isThere(row, n)) || !rows.some((row) => row.n === n)) return false
    if ((await reader.snapshot(p)) !== null) return false
    await expireRows(session, keyspace)
    // An owner of before is still writing.
    for (const i of order) {
      const isOld = all[i]!.statements.every(({ query, params }) => {
        return query.startsWith('UPDATE') && (params[0] as number) < 10 * n
      })
      if (isOld && again[i % again.length]!) await session.put(all[i]!.statements)
    }
    const left = await reader.entries(p, ALL)
    return left.length === 0 && (await reader.snapshot(p)) === null
  })
  await fc.assert(property, { numRuns: 40 })
})
