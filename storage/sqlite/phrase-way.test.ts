// How hits of a phrase are found: few are sorted, of many as many are looked for as are shown, and
// who counts them reads no node. That the answers are right, the suite says (search.test.ts).
// Source: select.ts, match.ts.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import { library, planOf } from '../conformance/search-index.ts'
import { SCHEMA } from '../conformance/search-nodes.ts'
import { SqliteGraphReader } from './reader.ts'
import { SqliteGraphWriter } from './writer.ts'

const LIBRARIES = Array.from(
  { length: 130 },
  (_, i) => `0190b000-0000-7000-8000-${i.toString(16).padStart(12, '0')}`,
)

function stage(t: Test) {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-graph-'))
  const hooks: { asked: () => void } = { asked: () => undefined }
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA })
  const reader = new SqliteGraphReader({ dir, schema: SCHEMA, mayGoOn: () => hooks.asked() })
  const { partRowsMax } = LIMITS.sqlite
  overrideLimits({ 'sqlite.partRowsMax': 4 })
  t.teardown(() => {
    overrideLimits({ 'sqlite.partRowsMax': partRowsMax })
    reader.close()
    writer.close()
    rmSync(dir, { recursive: true })
  })
  writer.reset('one')
  const named = (i: number): string => (i < 3 ? 'rare white' : 'white')
  writer.apply(
    LIBRARIES.map((id, i) => library(id, 1, { motto: named(i) })),
    [],
  )
  /** How SQLite goes about the statements of a step, one text each. */
  const plans = (body: object): string[] => {
    const { steps } = reader.explain(planOf([{ edge: 'libraries', ...body }]), 1_000_000)
    return steps[0]!.queries.flatMap(({ query, plan = [] }) =>
      query.includes('FROM (SELECT 1') ? [] : [plan.join('\n')],
    )
  }
  return { plans, reader, hooks }
}

t.test('few are found and sorted, of many the order finds first', async (t) => {
  const { plans } = stage(t)
  const found = /SEARCH t0 USING INTEGER PRIMARY KEY/
  const walked = /SCAN t0 USING INDEX by_library_id/
  t.match(plans({ phrase: '"rare"' }).at(-1), found)
  t.match(plans({ phrase: '"white"' })[1], walked)
  t.match(plans({ phrase: '"white"', filter: "motto != 'rare'" })[0], found, 'how many are left?')
})

t.test('who counts reads their keys alone', async (t) => {
  const { plans } = stage(t)
  const [counted] = plans({ phrase: 'white', count: true })
  t.match(counted, /VIRTUAL TABLE/)
  t.notMatch(counted, /t0/)
  t.match(plans({ phrase: 'white', filter: "motto != 'rare'", count: true })[0], /t0/)
})

t.test('time is asked for among the hits, at every 64th actor', async (t) => {
  const { reader, hooks } = stage(t)
  let asked = 0
  hooks.asked = () => void asked++
  for (const [body, times] of [
    [{ phrase: 'white', count: true }, LIBRARIES.length >> 6],
    [{ phrase: 'rare', count: true }, 0],
  ] as const) {
    asked = 0
    reader.query(planOf([{ edge: 'libraries', ...body }]), 1_000_000)
    t.equal(asked, times)
  }
})
