// The past of an identity page by page, whatever was refused in between: nothing of it is hidden.
// Source: CONTRACT 1.8 "Audit".

import t from 'tap'
import { overrideLimits } from '../../config/testing/override-limits.ts'
import { encodeEntry } from '../../protocol/entry/entry.ts'
import type { Entry } from '../../protocol/entry/entry.ts'
import { accessBehaviours } from '../access/access.ts'
import { ActorSystemTwin } from '../testing/actor-system-twin.ts'
import { Changes } from './changes.ts'
import type { ShownChange } from './changes.ts'

const KEY = '0190c7a0-0000-7000-8000-000000000001'

/** A past of `names`, each a change of the name, null a deletion; before each so many refusals. */
function scene(names: readonly (string | null)[], refused: number) {
  const system = new ActorSystemTwin(accessBehaviours())
  const { shapes } = system.behaviours.get('role')!
  const rows: { n: number; offset: number; body: Buffer }[] = []
  let v = 0
  const add = (records: Entry['r']): void => {
    const n = rows.length + 1
    const what = { y: 'role', p: KEY, q: KEY, v, n, r: records, m: `m${n}`, l: 0, t: n, c: n }
    const entry = { ...what, a: { success: true }, b: 'ada' } as unknown as Entry
    rows.push({ n, offset: n, body: encodeEntry(entry, shapes) })
    v += records.length
  }
  for (const description of names) {
    for (let i = 0; i < refused; i++) add([])
    const value = { description, acl: { entries: [] } }
    add([description === null ? { t: 'deleted', key: KEY } : { t: 'put', key: KEY, value }])
  }
  for (let i = 0; i < refused; i++) add([])
  const entries = (_: string, range: { before: number; countMax: number }) =>
    Promise.resolve(
      rows
        .filter(({ n }) => n < range.before)
        .slice(-range.countMax)
        .toReversed(),
    )
  const changes = new Changes({ actorSystem: system, derived: { entries } as never })
  return async (limit: number): Promise<{ all: ShownChange[]; pages: number }> => {
    const all: ShownChange[] = []
    let before: string | null = null
    for (let pages = 1; ; pages++) {
      const page = await changes.page({ type: 'role', key: KEY }, { limit, before })
      t.ok(page.changes.length <= limit)
      all.push(...page.changes)
      before = page.lastCursor
      if (before === null) return { all, pages }
      if (pages > 1_000) throw new Error('it does not end')
    }
  }
}

const EXPECTED = [
  { version: 5, change: 'created', members: [] },
  { version: 4, change: 'deleted', members: [] },
  { version: 3, change: 'changed', members: ['description'] },
  { version: 2, change: 'changed', members: ['description'] },
  { version: 1, change: 'created', members: [] },
]

for (const refused of [0, 1, 7, 5_000]) {
  t.test(`behind ${refused} refusals each`, async (t) => {
    t.teardown(overrideLimits({ 'iam.changeReadsMax': 3 }))
    const walk = scene(['a', 'b', 'c', null, 'd'], refused)
    for (const limit of [1, 2, 3, 4, 5, 100]) {
      const { all } = await walk(limit)
      t.match(all, EXPECTED, `by ${limit}`)
      t.equal(all.length, EXPECTED.length)
    }
  })
}

t.test('of what was only ever refused nothing is shown, and it ends', async (t) => {
  const { all } = await scene([], 100_000)(50)
  t.same(all, [])
})

t.test('what there never was is 404', async (t) => {
  t.match(await scene([], 0)(50).catch((error: unknown) => error), { status: 404 })
})
