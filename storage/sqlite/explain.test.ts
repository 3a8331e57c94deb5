// What the embedded index tells of a plan: its statements without a value, and how SQLite goes
// about them.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { library, planOf, shelf } from '../conformance/search-index.ts'
import { actorIds, SCHEMA, shelfIds } from '../conformance/search-nodes.ts'
import { SqliteGraphReader } from './reader.ts'
import { SqliteGraphWriter } from './writer.ts'

const LIBRARIES = {
  edge: 'libraries',
  node: { navigate: [{ edge: 'shelves', node: { fields: ['label'] } }] },
}

t.test('statements of each step, with their plans and no values', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-graph-'))
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA })
  const reader = new SqliteGraphReader({ dir, schema: SCHEMA })
  t.teardown(() => {
    reader.close()
    writer.close()
    rmSync(dir, { recursive: true })
  })
  writer.reset('one')
  const some = actorIds.slice(0, 3)
  writer.apply(
    some.flatMap((id, i) => [
      library(id, 1, { name: 'visible', cityCode: 'c' }),
      shelf(id, shelfIds[i]!, 1, { label: 'l' }),
    ]),
    [],
  )
  const plan = planOf([
    {
      edge: 'libraries',
      filter: "name == 'visible' and motto != 'unseen'",
      orderBy: 'motto',
      node: { navigate: [{ edge: 'shelves' }, { edge: 'shelves', alias: 'n', count: true }] },
    },
    { edge: 'libraries', alias: 'others', filter: "name == 'visible'", count: true },
  ])
  const { engine, steps, engineMs, totalMs } = reader.explain(plan, 1_000_000)
  t.equal(engine, 'SQLite')
  t.ok(engineMs > 0 && totalMs >= engineMs)
  t.match(steps, [
    { at: '/0', parents: null, rows: 0, queries: [{ runs: 1, rows: 0 }] },
    { at: '/1', parents: null, rows: 0, queries: [{ runs: 1, rows: 1 }] },
  ])
  t.match(steps[0]!.queries[0]!.query, /^SELECT .* WHERE .* LIMIT \?$/s)
  t.match(steps[0]!.queries[0]!.plan, [/SEARCH t0 USING INDEX/])
  t.notMatch(JSON.stringify(steps), /visible|unseen/)

  const nested = planOf([{ ...LIBRARIES, orderBy: 'area' }])
  const of = reader.explain(nested, 1_000_000).steps
  t.match(of, [
    { at: '/0', rows: 3 },
    { at: '/0/node/navigate/0', parents: 3, rows: 3, queries: [{ runs: 3, rows: 3 }] },
  ])
  t.match(of[1]!.queries[0]!.plan, [/SEARCH t0 USING INTEGER PRIMARY KEY/])
  t.same(
    reader.query(nested, 1_000_000),
    { libraries: some.map(() => ({ shelves: [{ label: 'l' }] })) },
    'and who asks for the answer gets it',
  )
  t.end()
})
