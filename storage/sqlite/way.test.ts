// By which index nodes are found: what the filter leaves few of is looked up and sorted, of what it
// leaves many of the first in order are taken; answers are the same. Source: ARCHITECTURE 5.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import { CURSORS, library, planOf, shelf } from '../conformance/search-index.ts'
import { SCHEMA, shelfIds } from '../conformance/search-nodes.ts'
import { SqliteGraphReader } from './reader.ts'
import { SqliteGraphWriter } from './writer.ts'

const LIBRARIES = 60

t.test('the way that looks at fewer rows', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-graph-'))
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA })
  const reader = new SqliteGraphReader({ dir, schema: SCHEMA, cursors: CURSORS })
  const { partRowsMax } = LIMITS.sqlite
  overrideLimits({ 'sqlite.partRowsMax': 20 })
  t.teardown(() => {
    overrideLimits({ 'sqlite.partRowsMax': partRowsMax })
    reader.close()
    writer.close()
    rmSync(dir, { recursive: true })
  })
  writer.reset('one')
  const ids = Array.from(
    { length: LIBRARIES },
    (_, i) => `0190a000-0000-7000-8000-0000000000${String(i).padStart(2, '0')}`,
  )
  writer.apply(
    ids.flatMap((id, i) => [
      library(id, 1, {
        name: `n${(i * 7) % LIBRARIES}`,
        area: i,
        kind: i % 2 === 0 ? 'small' : 'large',
        openedAt: new Date(i * 1_000).toISOString(),
        cityCode: `c${i % 3}`,
      }),
      shelf(id, shelfIds[i % 5]!, 1, { label: `l${i}` }),
    ]),
    [],
  )
  const node = { fields: ['area'] }
  /** The index of the last statement: the one that reads. */
  const index = (more: object): string => {
    const plan = planOf([{ edge: 'libraries', limit: 5, node, ...more }])
    const { queries } = reader.explain(plan, 1_000_000).steps[0]!
    const line = queries.at(-1)!.plan!.find((text) => /^\s*(SEARCH|SCAN) t0/.test(text))
    return /INDEX by_library_(\w+)/.exec(line ?? '')?.[1] ?? String(line)
  }
  const opened = (i: number): string => `openedAt >= '${new Date(i * 1_000).toISOString()}'`
  for (const [filter, orderBy, expected] of [
    ['area > 45', 'openedAt desc', 'area'],
    ['area > 5', 'openedAt desc', 'openedAt'],
    ['area > 5', undefined, 'id'],
    ['area > 45', undefined, 'area'],
    [opened(50), 'area', 'openedAt'],
    [opened(5), 'area', 'area'],
    [opened(50), 'openedAt', 'openedAt'],
    [`${opened(50)} and area > 5`, 'openedAt', 'openedAt'],
    [`${opened(5)} and area > 55`, 'openedAt', 'area'],
    [`${opened(5)} and area > 5`, 'openedAt', 'openedAt'],
    [`${opened(5)} and area > 50`, 'name', 'area'],
    [`${opened(50)} and area > 5`, 'motto', 'openedAt'],
    ["kind == 'small'", 'area', 'area'],
    ["kind == 'small'", 'openedAt', 'kind'],
    [`kind == 'small' and ${opened(50)}`, 'area', 'kind'],
    ["cityCode == 'c1' and area > 58", 'openedAt', 'area'],
    ["name in ['n1', 'n2']", 'area', 'name'],
    ["name startsWith 'n1'", 'area', 'name'],
    ["name startsWith 'n'", 'area', 'area'],
    [`libraryId == '${ids[3]!}' and area > 1`, 'area', 'id'],
  ] as const) {
    const asked = { filter, ...(orderBy && { orderBy }) }
    t.equal(index(asked), expected, `${filter}, ${orderBy ?? 'by id'}`)
    const answer = (more: object): unknown => {
      const body = [{ edge: 'libraries', limit: 5, node, cursor: 'last', ...asked, ...more }]
      return JSON.parse(JSON.stringify(reader.query(planOf(body), 1_000_000)))
    }
    const chosen = pages(answer)
    overrideLimits({ 'sqlite.partRowsMax': 0 })
    const byOrder = pages(answer)
    overrideLimits({ 'sqlite.partRowsMax': 1_000 })
    t.strictSame([chosen, byOrder], [pages(answer), pages(answer)])
    overrideLimits({ 'sqlite.partRowsMax': 20 })
  }
  const counted = (filter: string): string => index({ filter, count: true, node: {} })
  t.equal(counted(`${opened(5)} and area > 50`), 'area')
  t.equal(counted(`${opened(50)} and area > 5`), 'openedAt')
  t.end()
})

/** All pages of an answer, one behind the other. */
function pages(answer: (more: object) => unknown): unknown[] {
  const all: unknown[] = []
  for (let after: string | undefined; ;) {
    const page = answer(after === undefined ? { count: true } : { after, count: true }) as {
      libraries: unknown
      librariesCursor?: string
    }
    all.push(page.libraries)
    after = page.librariesCursor
    if (after === undefined) return all
  }
}
