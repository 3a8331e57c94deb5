// Where an index is told the place of each node among those of its actor: it has all of them as
// they are, also after a batch that failed and is taken again.

import t from 'tap'
import { type Fill, IndexAway, type IndexWrite } from '../../storage/search.ts'
import type { Position } from '../../protocol/ids.ts'
import { PlainIndex } from './testing/feed-store.ts'
import { A, erased, follow, noted, opened, scene, started } from './testing/scene.ts'

/** Keeps the place that it was told last of each node. */
class PlacedIndex extends PlainIndex {
  override readonly placed = true
  readonly #places = new Map<string, number | undefined>()

  override apply(
    writes: readonly IndexWrite[],
    offsets: readonly Position[],
    fills: readonly Fill[] = [],
  ): void {
    super.apply(writes, offsets, fills)
    for (const { node, id, doc, place } of writes) {
      if (doc === null) this.#places.delete(`${node} ${id}`)
      else this.#places.set(`${node} ${id}`, place)
    }
  }

  /** Of the notes, by their names. */
  notes(): Record<string, number | undefined> {
    const notes = [...this.#places].filter(([name]) => name.startsWith('note '))
    return Object.fromEntries(notes.map(([name, place]) => [name.slice('note '.length), place]))
  }
}

t.test('what stands behind a node that goes moves up', async (t) => {
  const index = new PlacedIndex()
  const s = scene(index)
  await s.store.commit([A, opened('one'), noted('a', 'x'), noted('b', 'x'), noted('c', 'x')])
  const projector = await started(s)
  await follow(s, projector)
  t.same(index.notes(), { a: 0, b: 1, c: 2 })
  await s.store.commit([A, erased('a')])
  await follow(s, projector)
  t.same(index.notes(), { b: 0, c: 1 })
  index.applied = []
  await s.store.commit([A, noted('c', 'y')])
  await follow(s, projector)
  const written = index.applied.flat().map(({ id }) => id)
  t.same(written.toSorted(), [A, 'c'].toSorted(), 'what stays where it is is not written')
})

t.test('after a batch that failed the index is told all places anew', async (t) => {
  const index = new PlacedIndex()
  const s = scene(index)
  await s.store.commit([A, opened('one'), noted('a', 'x'), noted('b', 'x'), noted('c', 'x')])
  const projector = await started(s)
  await follow(s, projector)
  await s.store.commit([A, erased('a')])
  index.fault = () => {
    throw new IndexAway('no answer')
  }
  await t.rejects(projector.step(s.store.heads), IndexAway)
  // What the actor is by now is not what the index has of it.
  index.fault = () => undefined
  await follow(s, projector)
  t.same(index.notes(), { b: 0, c: 1 })
  await s.store.commit([A, noted('d', 'x')])
  await follow(s, projector)
  t.same(index.notes(), { b: 0, c: 1, d: 2 }, 'and no two stand in one place')
})
