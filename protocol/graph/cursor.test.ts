// Cursors: what asks for them, what they are tied to, and that pages neither repeat nor skip what
// did not change between them.

import fc from 'fast-check'
import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { CURSORS, library } from '../../storage/conformance/search-index.ts'
import { actorIds, SCHEMA, TEXTS } from '../../storage/conformance/search-nodes.ts'
import { MemoryGraphIndex } from '../../storage/memory/search.ts'
import { planNavigations } from './navigation.ts'
import type { GraphPlan } from './plan.ts'
import { FULL_ACCESS, type GraphAccess } from './planning.ts'
import { OPTIONS, type Refusal, refused } from './testing/planned.ts'

type Navigation = Readonly<Record<string, unknown>>

const planned = (navigation: Navigation, access = FULL_ACCESS, nowMs = OPTIONS.nowMs): GraphPlan =>
  planNavigations([{ edge: 'libraries', ...navigation }], SCHEMA, access, {
    nowMs,
    limits: LIMITS.graph,
    cursors: CURSORS,
  })

const refusal = (navigation: Navigation, access?: GraphAccess): Refusal =>
  refused(() => planned(navigation, access))

function indexOf(names: readonly (string | null)[]): MemoryGraphIndex {
  const index = new MemoryGraphIndex({ schema: SCHEMA, cursors: CURSORS })
  index.apply(
    names.map((name, i) => library(actorIds[i]!, 1, { name })),
    [],
  )
  return index
}

const cursorOf = (navigation: Navigation): string =>
  indexOf(['a', 'b', 'c']).query(planned({ limit: 1, cursor: true, ...navigation }), 1_000)[
    'librariesCursor'
  ] as string

t.test('a cursor is for the query that it was made with', async (t) => {
  const query = { filter: 'name != nothing and openedAt < now', orderBy: 'name desc' }
  const after = cursorOf({ orderBy: 'name desc', filter: '' })
  const own = { orderBy: 'name desc', after }
  t.equal(refusal(own).code, 'none')
  t.equal(refusal({ ...own, filter: ' ', limit: 5, cursor: 'each', node: {} }).code, 'none')
  for (const other of [
    { ...own, orderBy: 'name' },
    { after },
    { ...own, filter: "name == 'a'" },
    { ...own, after: `x${after}` },
    { ...own, after: '' },
    { ...own, after: 'x'.repeat(LIMITS.graph.cursorCharsMax + 1) },
    { ...own, edge: 'cities', orderBy: '' },
  ]) {
    const { code, message, details } = refusal(other)
    t.equal(code, 'INVALID_QUERY', JSON.stringify(other))
    if ('edge' in other) continue
    t.match(message, /no cursor of this query/)
    t.same(details, { path: '/0/after' })
  }
  const operand = { kind: 'field', path: ['libraryId'], type: 'text' } as const
  const seen = { kind: 'in', as: 'text', operand, values: [actorIds[0]!] } as const
  const few: GraphAccess = { ...FULL_ACCESS, sees: () => seen }
  t.match(refusal(own, few).message, /permissions/, 'a role that changed makes other pages')
  t.equal(refusal({ ...query, cursor: true }).code, 'none')
})

t.test('what `now` stands for may move on', async (t) => {
  const index = new MemoryGraphIndex({ schema: SCHEMA, cursors: CURSORS })
  const openedAt = '2026-01-01T00:00:00.000Z'
  index.apply(
    actorIds.slice(0, 3).map((id) => library(id, 1, { openedAt })),
    [],
  )
  const query = { filter: 'openedAt < now', limit: 2 }
  const { librariesCursor } = index.query(planned({ ...query, cursor: true }), 1_000)
  const later = planned({ ...query, after: librariesCursor }, FULL_ACCESS, OPTIONS.nowMs + 60_000)
  t.match(index.query(later, 1_000), { libraries: { length: 1 } })
})

t.test('cursors are of base sets, and of what can be shown', async (t) => {
  t.match(refusal({ cursor: 'first' }).message, /cursor must be last or each/)
  const nested = { node: { navigate: [{ edge: 'shelves', cursor: true }] } }
  const instead = `{"edge":"shelves","filter":"libraryId == '<libraryId>'","cursor":"last"}`
  t.match(refusal(nested).message, instead)
  const hidden: GraphAccess = { ...FULL_ACCESS, mayField: (_, path) => path[0] !== 'libraryId' }
  t.match(refusal({ node: { ...nested.node, fields: ['name'] } }, hidden).message, /by a filter$/)
  const lent = { node: { navigate: [{ edge: 'lentNotes', cursor: true }] } }
  t.match(refusal(lent).message, /narrow this list by a filter$/, 'no field leads back over links')
  const read: GraphAccess = { ...FULL_ACCESS, mayField: (_, path) => path[0] !== 'name' }
  t.equal(refusal({ orderBy: 'name', cursor: true }, read).code, 'FORBIDDEN_FIELD')
  t.equal(refusal({ cursor: false }).code, 'none')
  const bare = refused(() =>
    planNavigations([{ edge: 'libraries', cursor: true }], SCHEMA, FULL_ACCESS, OPTIONS),
  )
  t.match(bare.message, /no cursors here/)
  const taken = { cursor: true, alias: 'x' }
  const both = [
    { edge: 'libraries', ...taken },
    { edge: 'cities', alias: 'xCursor' },
  ]
  const clash = refused(() =>
    planNavigations(both, SCHEMA, FULL_ACCESS, { ...OPTIONS, cursors: CURSORS }),
  )
  t.equal(clash.code, 'DUPLICATE_ALIAS')
  const index = indexOf(['x'.repeat(LIMITS.graph.cursorCharsMax), 'y'])
  const long = planned({ orderBy: 'name', limit: 1, cursor: true })
  t.match(refused(() => index.query(long, 1_000)).message, /order by fields with shorter values/)
  t.same(index.query(planned({ count: true, cursor: true }), 1_000), { libraries: 2 })
})

t.test('the end has no cursor', async (t) => {
  const index = indexOf(['a', 'b'])
  t.notOk('librariesCursor' in index.query(planned({ limit: 2, cursor: true }), 1_000))
  t.notOk('librariesCursor' in index.query(planned({ limit: 1 }), 1_000), 'none was asked for')
  const { librariesCursors } = index.query(planned({ cursor: 'each' }), 1_000)
  t.equal((librariesCursors as string[]).length, 2)
  const after = (librariesCursors as string[])[1]
  t.same(index.query(planned({ after, cursor: 'each' }), 1_000), {
    libraries: [],
    librariesCursors: [],
  })
})

t.test('what did not change comes once, whatever else did', async () => {
  const names = fc.array(fc.constantFrom(null, ...TEXTS.slice(0, 6)), {
    minLength: actorIds.length,
    maxLength: actorIds.length,
  })
  const changes = fc.array(
    fc.record({
      at: fc.nat(actorIds.length - 1),
      name: fc.constantFrom('a', 'z', null, undefined),
    }),
    { maxLength: 4 },
  )
  fc.assert(
    fc.property(
      names,
      fc.array(changes, { minLength: 3, maxLength: 3 }),
      fc.constantFrom('', 'name', 'name desc', "dynamic->'x', name desc"),
      fc.integer({ min: 1, max: 4 }),
      (before, between, orderBy, limit) => {
        const index = indexOf(before)
        const changed = new Set<string>()
        const seen: string[] = []
        let after: unknown
        for (let page = 0; ; page++) {
          const query = { limit, cursor: true, ...(orderBy !== '' && { orderBy }) }
          const asked = planned({ ...query, ...(after !== undefined && { after }) })
          const answer = index.query(asked, 1_000)
          const rows = answer['libraries'] as { libraryId: string }[]
          seen.push(...rows.map(({ libraryId }) => libraryId))
          after = answer['librariesCursor']
          if (after === undefined) break
          for (const { at, name } of between[page] ?? []) {
            const id = actorIds[at]!
            changed.add(id)
            index.apply([library(id, page + 2, name === undefined ? null : { name })], [])
          }
        }
        return actorIds
          .filter((id) => !changed.has(id))
          .every((id) => seen.filter((one) => one === id).length === 1)
      },
    ),
  )
})
