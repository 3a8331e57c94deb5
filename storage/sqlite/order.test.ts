// A page behind a cursor is a range of an index.

import { mkdtempSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { planNavigations } from '../../protocol/graph/navigation.ts'
import { FULL_ACCESS } from '../../protocol/graph/planning.ts'
import { actorIds, SCHEMA } from '../conformance/search-nodes.ts'
import { layoutOf } from './layout.ts'
import { StepSelect } from './select.ts'
import { TICK } from './sql.ts'
import { SqliteGraphWriter } from './writer.ts'

const [ONE] = actorIds as [string]

void t.test('a page is found where it begins, however deep it lies', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-graph-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  new SqliteGraphWriter({ dir, schema: SCHEMA }).close()
  const db = new DatabaseSync(join(dir, 'graph.sqlite'))
  db.function(TICK, () => 1)
  const explained = (orderBy: string, ...values: (string | null)[]): string[] => {
    const navigation = { edge: 'libraries', ...(orderBy !== '' && { orderBy }) }
    const options = { nowMs: 0, limits: LIMITS.graph }
    const [step] = planNavigations([navigation], SCHEMA, FULL_ACCESS, options).steps
    const after = { id: ONE, actorId: ONE, values }
    const select = new StepSelect(layoutOf(SCHEMA).nodes, { ...step!, after })
    return select.rowsBehind(after, null).map(({ text, params }) => {
      const all = db.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...(params as string[]), 1)
      return all.map((row) => String(row['detail'])).join('\n')
    })
  }
  const at = '2026-01-01T00:00:00.000Z'
  const sorted = /TEMP B-TREE FOR ORDER BY/
  const [byId, ...none] = explained('')
  t.same(none, [])
  t.match(byId, /by_library_id \(id>\?\)/)
  t.notMatch(byId, sorted)
  for (const [orderBy, sign] of [
    ['openedAt desc', '<'],
    ['openedAt', '>'],
  ] as const) {
    const [some, without] = explained(orderBy, at)
    t.match(some, `by_library_openedAt (f_openedAt${sign}?)`, orderBy)
    t.match(without, 'by_library_openedAt (f_openedAt=?)', 'those without a value are a page more')
    t.equal(explained(orderBy, null).length, 1, 'behind one of them are only such')
  }
  db.close()
  t.end()
})
