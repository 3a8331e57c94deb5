// What is kept of a step's nodes while they come in any order, and their order.

import t from 'tap'
import type { Step } from '../../protocol/graph/plan.ts'
import { Kept, compareRows, elementsOf, type FoundRow } from './found-row.ts'

const step = (more: object): Step =>
  ({
    returns: 'nodes',
    limit: 3,
    orderBy: [],
    phrase: null,
    source: { kind: 'set' },
    storage: { kind: 'row' },
    ...more,
  }) as unknown as Step
const row = (id: string, more: Partial<FoundRow> = {}): FoundRow => {
  return { actorId: 'actor', id, doc: {}, place: 0, index: 0, ...more }
}
const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id).join('')

t.test('as many as are shown, the first ones of all, and whether there are more', (t) => {
  const kept = new Kept(step({}))
  const letters = 'qwertyuiopasdfghjklzxcvbnm'
  for (const id of letters) {
    kept.add(row(id))
    kept.add(row(id))
  }
  t.equal(kept.count, letters.length, 'what comes twice counts once')
  t.equal(kept.size, 3)
  const found = kept.found()
  t.match(found, { more: true, count: letters.length })
  t.equal(ids(found.rows), 'abc')
  t.end()
})

t.test('no more than there are', (t) => {
  const kept = new Kept(step({}))
  for (const id of 'cab') {
    t.notOk(kept.isFull)
    kept.add(row(id))
  }
  t.match(kept.found(), { more: false, count: 3 })
  t.equal(ids(kept.found().rows), 'abc')
  t.notOk(kept.isFull, 'one more tells that there are more')
  kept.add(row('a', { index: 1 }))
  t.ok(kept.isFull)
  kept.add(row('a', { actorId: 'other' }))
  t.equal(kept.count, 5, 'of another actor, or another element, it is another')
  t.end()
})

t.test('who counts holds none of them', (t) => {
  const kept = new Kept(step({ returns: 'count' }))
  for (const id of 'abcde') kept.add(row(id))
  t.notOk(kept.isFull)
  t.match(kept.found(), { rows: [], count: 5 })
  t.equal(new Kept(step({ returns: 'nothing', limit: 0 })).isFull, false)
  t.end()
})

t.test('the order of nodes inside an actor is its own', (t) => {
  const sorted = (of: object, rows: FoundRow[]) =>
    ids(rows.toSorted((a, b) => compareRows(step(of), a, b)))
  const inside = { source: { kind: 'edge', sameActor: true } }
  const placed = [row('c', { place: 1 }), row('a', { place: 3 }), row('b', { place: 2 })]
  t.equal(sorted(inside, placed), 'cba')
  t.equal(sorted({}, placed), 'abc')
  t.equal(sorted({ source: { kind: 'edge', sameActor: false } }, placed), 'abc')
  const same = [row('a', { actorId: 'y' }), row('a', { actorId: 'x' })]
  t.same(
    same.toSorted((a, b) => compareRows(step({}), a, b)).map(({ actorId }) => actorId),
    ['x', 'y'],
  )
  const position = placed.map((one, i) => ({ ...one, doc: { at: i === 1 ? 1 : 5 } }))
  t.equal(sorted({ ...inside, position: 'at' }, position), 'acb')
  const elements = [
    row('b', { place: 1, index: 1 }),
    row('c', { place: 0, index: 1 }),
    row('a', { place: 1 }),
  ]
  t.equal(sorted({ ...inside, storage: { kind: 'embedded' } }, elements), 'cab')
  t.end()
})

t.test('elements of a list are nodes in their order', (t) => {
  const holder = row('h', { place: 4, doc: { list: [{ key: 7, x: 1 }, { key: 'b' }], no: 'list' } })
  t.same(elementsOf(holder, 'list', 'key'), [
    { actorId: 'actor', id: '7', doc: { key: 7, x: 1 }, place: 4, index: 0 },
    { actorId: 'actor', id: 'b', doc: { key: 'b' }, place: 4, index: 1 },
  ])
  t.same(elementsOf(holder, 'no', 'key'), [])
  t.same(elementsOf(holder, 'absent', 'key'), [])
  t.end()
})
