// Counting an actor's nodes stops where the answer is known. Source: table.ts.

import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { SCHEMA } from '../conformance/search-nodes.ts'
import { layoutOf, NODES_PER_ACTOR } from './layout.ts'
import { NodeCount } from './table.ts'

t.test('no row past the bound is looked at', async (t) => {
  const db = new DatabaseSync(':memory:')
  t.teardown(() => db.close())
  let looked = 0
  db.function('looked', { varargs: true }, () => {
    looked++
    return 1
  })
  const layouts = [...layoutOf(SCHEMA).nodes.values()]
  const rows = 100
  // Views: whoever reads a row of them is heard.
  for (const { table } of layouts) {
    db.exec(
      `CREATE VIEW ${table} AS WITH RECURSIVE n(k) AS (SELECT ${NODES_PER_ACTOR} UNION ALL ` +
        `SELECT k + 1 FROM n WHERE k < ${NODES_PER_ACTOR + rows - 1}) ` +
        'SELECT k, CASE WHEN k % 2 = 0 THEN 1 END AS doc FROM n WHERE looked(k)',
    )
  }
  const count = new NodeCount(db, layouts)
  const all = (layouts.length * rows) / 2
  t.equal(count.upTo(all + 1, NODES_PER_ACTOR), all, 'removed ones are none')
  t.equal(looked, layouts.length * rows)
  looked = 0
  t.equal(count.upTo(7, NODES_PER_ACTOR), 7)
  t.ok(looked < 2 * 7 + 2, `${looked} rows`)
  t.equal(count.upTo(7, 5 * NODES_PER_ACTOR), 0, 'of another actor')
})
