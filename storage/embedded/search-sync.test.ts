// When the embedded index waits for the disk and when it does not; and that an index which was not
// on the disk when the machine went down is never read again. Source: PROTOCOL 3.16.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { SCHEMA } from '../conformance/search-nodes.ts'
import { isDamage } from './search-file.ts'
import { UnsyncedMark } from './search-mark.ts'
import { IndexSync } from './search-sync.ts'
import { SqliteGraphWriter } from './search-writer.ts'

const MANY = LIMITS.indexUnsyncedRows

function folder(t: Test): { dir: string; mark: string } {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-graph-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  return { dir, mark: join(dir, 'graph.unsynced') }
}

function rows(count: number, version = 1) {
  return Array.from({ length: count }, (_, i) => {
    const id = `018f2b3c-4d5e-7abc-8def-${String(i).padStart(12, '0')}`
    return { node: 'library', actorId: id, id, version, doc: { libraryId: id, name: 'a' } }
  })
}

void t.test('a load is written without syncs for as long as it lasts', (t) => {
  const { dir, mark } = folder(t)
  const db = new DatabaseSync(join(dir, 'a.sqlite'))
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
  db.exec('CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)')
  const level = (): unknown => db.prepare('PRAGMA synchronous').get()?.['synchronous']
  const sync = new IndexSync(db, new UnsyncedMark(dir, 'this-boot'), false)

  sync.willWrite(MANY - 1)
  t.equal(level(), 1)
  t.notOk(existsSync(mark), 'nothing that would have to be marked')
  sync.look()
  sync.willWrite(MANY - 1)
  t.equal(level(), 1, 'what came before a look is over')
  sync.willWrite(1)
  t.equal(level(), 0)
  t.equal(readFileSync(mark, 'utf8'), 'this-boot\n')

  sync.look()
  sync.willWrite(MANY / 10)
  sync.look()
  t.equal(level(), 0, 'a smaller load goes on')
  t.ok(existsSync(mark))
  sync.willWrite(MANY / 10 - 1)
  sync.look()
  t.equal(level(), 1, 'over')
  t.notOk(existsSync(mark))
  db.close()
  t.end()
})

void t.test('what a reader still holds keeps the mark', (t) => {
  const { dir, mark } = folder(t)
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA, bootId: 'this-boot' })
  writer.reset('one')
  writer.apply(rows(10), [])
  const reader = new DatabaseSync(join(dir, 'graph.sqlite'), { readOnly: true })
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM actor').get()
  writer.apply(rows(MANY, 2), [])
  writer.look()
  writer.look()
  t.ok(existsSync(mark), 'an older state is read: not all can be brought to its place')
  reader.exec('COMMIT')
  writer.look()
  t.notOk(existsSync(mark))
  reader.close()
  writer.close()
  t.end()
})

void t.test('an index that was closed is on the disk', (t) => {
  const { dir, mark } = folder(t)
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA, bootId: 'this-boot' })
  writer.reset('one')
  writer.apply(rows(MANY), [{ shard: 0, offset: 7 }])
  t.ok(existsSync(mark))
  writer.close()
  t.notOk(existsSync(mark))
  const after = new SqliteGraphWriter({ dir, schema: SCHEMA, bootId: 'another-boot' })
  t.equal(after.wasLost, false)
  t.same([...after.offsets()], [[0, 7]])
  after.close()
  t.end()
})

/** A writer that ends as in a process that is killed. */
function killed(dir: string, bootId: string): void {
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA, bootId })
  writer.reset('one')
  writer.apply(rows(MANY), [{ shard: 0, offset: 7 }])
  writer.abandon()
}

void t.test('after a killed process the kernel has it all', (t) => {
  const { dir, mark } = folder(t)
  killed(dir, 'this-boot')
  const after = new SqliteGraphWriter({ dir, schema: SCHEMA, bootId: 'this-boot' })
  t.equal(after.wasLost, false)
  t.equal(after.generation(), 'one')
  t.same([...after.offsets()], [[0, 7]])
  t.ok(existsSync(mark), 'it is no more on the disk than before')
  after.look()
  t.notOk(existsSync(mark), 'now it is')
  after.close()
  t.end()
})

for (const [what, bootId] of [
  ['another boot', 'another-boot'],
  ['a system that does not say', null],
] as const) {
  void t.test(`after the machine went down it is filled again: ${what}`, (t) => {
    const { dir, mark } = folder(t)
    killed(dir, 'this-boot')
    const after = new SqliteGraphWriter({ dir, schema: SCHEMA, bootId })
    t.equal(after.wasLost, true)
    t.equal(after.generation(), null)
    t.same([...after.offsets()], [])
    t.notOk(existsSync(mark))
    after.reset('one')
    after.apply(rows(MANY), [])
    t.equal(existsSync(mark), bootId !== null, 'without an id it is always synced')
    after.close()
    t.end()
  })
}

void t.test('a mark that was cut short says no boot', (t) => {
  const { dir, mark } = folder(t)
  killed(dir, 'this-boot')
  writeFileSync(mark, '')
  const after = new SqliteGraphWriter({ dir, schema: SCHEMA, bootId: 'this-boot' })
  t.equal(after.wasLost, true)
  after.close()
  t.end()
})

void t.test('a failed sync is damage: the kernel may have dropped what it could not write', (t) => {
  t.equal(isDamage({ errcode: 1034 }), true)
  t.equal(isDamage({ errcode: 13 }), false, 'a full disk is none')
  t.equal(isDamage(new Error('no error of SQLite')), false)
  t.end()
})
