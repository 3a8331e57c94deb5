// Bounds of the embedded index's file, and which failures mean that it can't be relied on. Source:
// layout.ts, search-file.ts.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { library, planOf, shelf } from '../conformance/search-index.ts'
import { actorIds, SCHEMA, shelfIds } from '../conformance/search-nodes.ts'
import { LIMITS } from '../../config/limits.ts'
import { IndexAway } from '../search.ts'
import { isDamage } from './file.ts'
import { NODES_PER_ACTOR } from './layout.ts'
import { SqliteGraphReader } from './reader.ts'
import { SqliteGraphWriter } from './writer.ts'

const [ONE, TWO] = actorIds as [string, string]
const [SHELF, SHELF_TWO] = shelfIds as [string, string]

t.test('an actor that has had too many nodes takes none of its neighbour', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-graph-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const first = new SqliteGraphWriter({ dir, schema: SCHEMA })
  first.reset('one')
  first.apply([library(ONE, 1), shelf(ONE, SHELF, 1, { label: 'a' })], [])
  first.apply([library(TWO, 1)], [])
  first.close()
  const db = new DatabaseSync(join(dir, 'graph.sqlite'))
  db.exec(`UPDATE node_shelf SET k = k | ${NODES_PER_ACTOR - 1}`)
  db.close()
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA })
  t.throws(() => writer.apply([shelf(ONE, SHELF_TWO, 2)], []), /too many nodes/)
  writer.apply([shelf(ONE, SHELF, 2, { label: 'b' }), shelf(TWO, SHELF, 2, { label: 'c' })], [])
  const reader = new SqliteGraphReader({ dir, schema: SCHEMA })
  const node = { navigate: [{ edge: 'shelves', node: { fields: ['label'] } }] }
  const answer = reader.query(planOf([{ edge: 'libraries', node }]), 1_000_000)
  t.same(JSON.parse(JSON.stringify(answer)), {
    libraries: [ONE, TWO]
      .toSorted()
      .map((id) => ({ shelves: [{ label: id === ONE ? 'b' : 'c' }] })),
  })
  reader.close()
  writer.close()
  t.end()
})

t.test('damage, and a disk that did not keep what it was given', (t) => {
  const of = (errcode: number): Error => Object.assign(new Error('no'), { errcode })
  const wrapped = (errcode: number): Error => new IndexAway('why', { cause: of(errcode) })
  // CORRUPT, its kinds, NOTADB, IOERR_FSYNC.
  for (const code of [11, 267, 523, 26, 1034]) {
    t.ok(isDamage(of(code)), `${code}`)
    t.ok(isDamage(wrapped(code)), `${code}, behind it`)
  }
  // BUSY, IOERR and kinds of it, FULL, CONSTRAINT.
  for (const code of [5, 10, 266, 778, 13, 19]) {
    t.notOk(isDamage(of(code)), `${code}`)
    t.notOk(isDamage(wrapped(code)), `${code}, behind it`)
  }
  t.notOk(isDamage(new Error('ours')))
  t.end()
})

t.test('a clock that was a year ahead and is set right keeps no removal for a year', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-graph-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  let nowMs = Date.UTC(2030, 0)
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA, nowMs: () => nowMs })
  writer.reset('one')
  writer.apply([library(ONE, 1)], [])
  nowMs = Date.UTC(2029, 0)
  writer.apply([library(ONE, 2, null)], [])
  nowMs += LIMITS.storage.indexTombstoneMs + 120_000
  writer.apply([], [])
  writer.close()
  const db = new DatabaseSync(join(dir, 'graph.sqlite'))
  t.strictSame(db.prepare('SELECT * FROM tombstone').all(), [])
  db.close()
  t.end()
})
