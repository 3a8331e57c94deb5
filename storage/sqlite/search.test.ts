// The SQLite graph index passes the suite of every graph index, and keeps what only it has to keep.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import type { IndexOptions, IndexUnderTest } from '../conformance/search-index.ts'
import { searchConformance, searchProperty } from '../conformance/search.ts'
import type { GraphSchema } from '../../protocol/graph/schema.ts'
import { SqliteGraphReader } from './reader.ts'
import { SqliteGraphWriter } from './writer.ts'

function folder(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-graph-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  return dir
}

function open(t: Test, dir: string, options: IndexOptions): IndexUnderTest {
  const writer = new SqliteGraphWriter({ dir, schema: options.schema, nowMs: () => 0 })
  const reader = new SqliteGraphReader({ dir, ...options })
  let isOpen = true
  const close = (): void => {
    if (isOpen) writer.close()
    if (isOpen) reader.close()
    isOpen = false
  }
  t.teardown(close)
  const reopen = (schema: GraphSchema): IndexUnderTest => {
    close()
    return open(t, dir, { ...options, schema })
  }
  return { writer, reader, reopen }
}

searchConformance(t, (t, options) => open(t, folder(t), options))

// The same with both ways in which nodes of a base set are found (way.ts).
searchProperty(t, (t, options) => {
  const { partRowsMax } = LIMITS.sqlite
  overrideLimits({ 'sqlite.partRowsMax': 3 })
  t.teardown(() => overrideLimits({ 'sqlite.partRowsMax': partRowsMax }))
  return { ...open(t, folder(t), options), runs: 60 }
})
