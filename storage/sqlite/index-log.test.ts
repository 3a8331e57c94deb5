// SQLite's log beside readers that overlap, so that one is always at it. Source: index-log.ts.

import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { library } from '../conformance/search-index.ts'
import { actorIds, SCHEMA } from '../conformance/search-nodes.ts'
import { SqliteGraphWriter } from './writer.ts'

const KiB = 1024
const [ONE] = actorIds as [string]
const BOUNDS = { logBytes: 64 * KiB, logBytesMax: 256 * KiB }
/** A transaction is about so long. */
const BATCH_BYTES = 64 * KiB

function folder(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-graph-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  return dir
}

const sizeOf = (dir: string): number => statSync(join(dir, 'graph.sqlite-wal')).size

function write(writer: SqliteGraphWriter, version: number): void {
  const doc = library(ONE, version, { name: String(version % 10).repeat(BATCH_BYTES) })
  writer.apply([doc], [{ shard: 0, offset: version }])
}

/** Two readers by turns: each begins before the other ends. */
const OVERLAPPING = `
  const { DatabaseSync } = require('node:sqlite')
  const { parentPort, workerData } = require('node:worker_threads')
  const state = new Int32Array(workerData.state)
  const readers = [0, 1].map(() => new DatabaseSync(workerData.file, { readOnly: true }))
  const begin = (reader) => {
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM node_library').get()
  }
  begin(readers[0])
  parentPort.postMessage('reading')
  for (let turn = 1; Atomics.load(state, 0) === 0; turn++) {
    begin(readers[turn % 2])
    Atomics.wait(state, 0, 0, 5)
    readers[(turn + 1) % 2].exec('COMMIT')
  }
  for (const reader of readers) reader.close()
`

t.test('readers that overlap for ever do not have it grow for ever', async (t) => {
  const dir = folder(t)
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA, ...BOUNDS })
  t.teardown(() => writer.close())
  writer.reset('one')
  const state = new SharedArrayBuffer(4)
  const workerData = { file: join(dir, 'graph.sqlite'), state }
  const readers = new Worker(OVERLAPPING, { eval: true, workerData })
  const ended = new Promise((resolve) => readers.once('exit', resolve))
  await new Promise((resolve) => readers.once('message', resolve))
  let most = 0
  for (let version = 1; version <= 40; version++) {
    write(writer, version)
    most = Math.max(most, sizeOf(dir))
  }
  Atomics.store(new Int32Array(state), 0, 1)
  Atomics.notify(new Int32Array(state), 0)
  await ended
  t.ok(most > BOUNDS.logBytesMax, `${most}: they kept it from being begun anew`)
  t.ok(most < BOUNDS.logBytesMax + 8 * BATCH_BYTES, `${most}: the bound, and a transaction`)
})

t.test('a reader that does not end holds it up, not what is written', (t) => {
  const dir = folder(t)
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA, ...BOUNDS })
  t.teardown(() => writer.close())
  writer.reset('one')
  const reader = new DatabaseSync(join(dir, 'graph.sqlite'), { readOnly: true })
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM node_library').get()
  let version = 1
  while (sizeOf(dir) < BOUNDS.logBytesMax) write(writer, version++)
  // It waits for as long as a lock is waited for.
  write(writer, version++)
  const held = sizeOf(dir)
  t.ok(held > BOUNDS.logBytesMax, 'it can not be cut')
  reader.close()
  while (version < 20) write(writer, version++)
  t.ok(sizeOf(dir) < held + 2 * BATCH_BYTES, 'and is begun anew when the reader is gone')
  t.strictSame([...writer.offsets()], [[0, version - 1]])
  t.end()
})
