// What goes with a loss that is accepted: rows that say more than the log that is left, of the
// shards that have lost, from the first offset that is lost on, and nothing else. And what is lost
// by a damage that nothing was in. Source: PROTOCOL 3.16.

import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { joinEntries } from '../../../protocol/entry/entry.ts'
import { SYSTEM_SHARD } from '../../../protocol/ids.ts'
import { freshUuid, group } from '../../conformance/journal-samples.ts'
import { COUNTER_SUFFIX, type DerivedRow, type ShardStatus } from '../../journal.ts'
import type { Header } from '../../segment-log/header.ts'
import type { LogPosition } from '../../segment-log/scan.ts'
import { Arena } from '../../lmdb/arena.ts'
import { headsOf } from './catch-up.ts'
import { getCovered, putCovered } from '../../lmdb/covered.ts'
import { DERIVED_TABLES, openEnvironment, type JournalEnvironment } from '../../lmdb/environment.ts'
import { derivedOffset, derivedShard, placeOfLogKey } from '../../lmdb/layout.ts'
import { dropLost } from './loss.ts'
import { encodeGroup, encodeHead, encodeRow } from '../../lmdb/rows.ts'
import { openEmbeddedJournal } from './journal.ts'
import {
  entryOf,
  findingsIn,
  flipText,
  segmentsIn,
  smallSegments,
} from '../testing/damaged-store.ts'
import { journalOptions, QUIET } from '../testing/journal-options.ts'

/** The first file behind whose header something is lost. */
const HEADER_END = 700
const OF_FILE: ShardStatus = { epoch: 3, head: 4, lastCommit: null }
const LATER: ShardStatus = { epoch: 9, head: 40, lastCommit: null }

function rowsAt(shard: number, offset: number): DerivedRow[] {
  const actorId = freshUuid()
  const body = Buffer.from('x')
  const alias = (keyType: string): DerivedRow => {
    return { kind: 'alias', offset, row: { keyType, key: actorId, claims: [] } }
  }
  const images: DerivedRow[] = [{ kind: 'image', offset, part: 0, body }]
  return [
    ...(shard === SYSTEM_SHARD ? images : []),
    { kind: 'entry', actorId, n: 1, offset, body },
    alias('order'),
    alias('order!key'),
    alias(`order${COUNTER_SUFFIX}`),
    { kind: 'snapshot', actorId, offset, body },
    { kind: 'mark', actorId, day: 1, messageId: 'm', offset, body },
    { kind: 'parked', consumer: 'index', actorId, offset, body },
    { kind: 'consumer', consumer: actorId, offset },
  ]
}

interface Filled {
  readonly env: JournalEnvironment
  /** Rows that are left, as `table shard/offset`. */
  readonly left: () => string[]
}

/** Rows of three shards at offsets 5 and 6, and groups that end there. */
async function filledRows(t: Test, covered: LogPosition): Promise<Filled> {
  const env = openEnvironment(journalOptions(t).dir, false)
  t.teardown(() => env.root.close())
  const arena = new Arena()
  env.root.transactionSync(() => {
    for (const shard of [SYSTEM_SHARD, 0, 1]) {
      for (const offset of [5, 6]) {
        for (const row of rowsAt(shard, offset)) {
          const { table, key, value } = encodeRow(arena, env, { shard, row, place: null })
          void table.put(key, value)
        }
        const place = { file: 1, position: offset, length: 9, crc: 0 }
        const commitId = freshUuid()
        const of = { shard, epoch: 1, offset, count: 1, commitId, place, begins: null }
        const { key, value } = encodeGroup(arena, of)
        void env.log.put(key, value)
      }
      const { key, value } = encodeHead(arena, shard, LATER)
      void env.heads.put(key, value)
    }
    putCovered(env, covered)
  })
  const left = (): string[] => {
    env.root.resetReadTxn()
    const derived = DERIVED_TABLES.flatMap((name) =>
      [...env[name].getRange({})].map(({ value }) => {
        return `${name} ${derivedShard(value)}/${derivedOffset(value)}`
      }),
    )
    const log = [...env.log.getKeys({})].map((key) => {
      const { shard, offset } = placeOfLogKey(key)
      return `log ${shard}/${offset}`
    })
    return [...derived, ...log].toSorted()
  }
  return { env, left }
}

function lossOf(...shards: readonly number[]) {
  const header = {
    ...{ key: { file: 2, salt: Buffer.alloc(16) }, end: HEADER_END },
    shards: [SYSTEM_SHARD, 0, 1].map((shard) => [shard, OF_FILE] as const),
  } as unknown as Header
  return {
    ...{ gaps: [], whats: [], header },
    shards: shards.map((shard) => ({ shard, offset: 5, highest: 7, gap: 0 })),
  }
}

t.test('what is derived of what is lost goes, and of nothing else', async (t) => {
  const { env, left } = await filledRows(t, { file: 2, position: 9_000 })
  const before = left()
  dropLost(env, lossOf(0, SYSTEM_SHARD))
  const follows = ['entries', 'aliases', 'aliases', 'snapshots', 'marks', 'log']
  const gone = [0, SYSTEM_SHARD].flatMap((shard) => follows.map((name) => `${name} ${shard}/6`))
  gone.push(`images ${SYSTEM_SHARD}/6`)
  const after = left()
  for (const one of gone) {
    const at = before.indexOf(one)
    t.ok(at >= 0, one)
    before.splice(at, 1)
  }
  t.same(after, before, 'counters and offsets stay, and so does what lies below')
})

t.test('places are taken again from the file in which it is', async (t) => {
  const { env } = await filledRows(t, { file: 2, position: 9_000 })
  dropLost(env, lossOf(0))
  t.same(getCovered(env), { file: 2, position: HEADER_END })
  t.same(
    headsOf(env)
      .entries()
      .map(([, status]) => status),
    [OF_FILE, OF_FILE, OF_FILE],
  )
  const earlier = await filledRows(t, { file: 1, position: 9_000 })
  dropLost(earlier.env, lossOf(0))
  t.same(getCovered(earlier.env), { file: 1, position: 9_000 }, 'or from where they end')
  t.same(headsOf(earlier.env).status(0), LATER)
})

t.test('where no entry is lost there is nothing to be accepted', async (t) => {
  const { dir } = journalOptions(t)
  const warned: string[] = []
  const log = { ...QUIET, warn: (_: object, message: string) => void warned.push(message) }
  const options = { ...smallSegments(dir), shards: 1, log }
  const journal = await openEmbeddedJournal(options)
  const shards = [SYSTEM_SHARD, 0]
  const claims = await Promise.all(shards.map((shard) => journal.log.claim(shard)))
  for (const [i, shard] of shards.entries()) {
    const body = joinEntries([entryOf(freshUuid(), 1, 50)])
    const one = group({ shard, epoch: claims[i]!.epoch, body })
    t.same(await journal.log.append([one]), ['committed'])
  }
  const { generation } = journal.identity
  await journal.close()
  const [path] = segmentsIn(dir) as [string]
  const bytes = readFileSync(path)
  const claimed = bytes.readUInt32LE(4)
  flipText(dir, bytes.subarray(claimed, claimed + 20), 4)

  const again = await openEmbeddedJournal(options)
  t.equal(warned.length, 1)
  t.match(warned[0], /^lost: .*position \d+: .*No entry of any shard is lost by it$/)
  t.equal(again.identity.generation, generation, 'what readers have stays good')
  t.same(again.identity.losses ?? [], [])
  for (const shard of shards) {
    t.equal((await again.log.read(shard, 0, 1e9)).length, 1)
    t.equal((await again.log.status(shard)).head, 1)
  }
  await again.close()
  t.same(await findingsIn(dir), [])
  await (await openEmbeddedJournal(options)).close()
  t.equal(warned.length, 1, 'told once')
})
