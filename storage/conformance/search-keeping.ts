// What every graph index keeps of what it was given: nodes as they were when they were written,
// versions and removals, whoever writes next. It stands beside the suite of search.ts. Source:
// PROTOCOL 3.13.3.

import type { Test } from 'tap'
import type { IndexWrite } from '../search.ts'
import { ask, library, OPTIONS, shelf, type MakeIndex } from './search-index.ts'
import { actorIds, SCHEMA, shelfIds } from './search-nodes.ts'

const [ONE, TWO, THREE] = actorIds as [string, string, string]
const [SHELF, SHELF_TWO] = shelfIds as [string, string]

export function searchKeeping(suite: Test, make: MakeIndex): void {
  void suite.test('what comes later stands beside what was there', (t) => later(t, make))
  void suite.test('a node is kept as it was when it was written', (t) => copies(t, make))
}

/** Versions, removals and actors outlive who wrote them. */
async function later(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reopen } = await make(t, OPTIONS)
  if (reopen === null) {
    t.pass('this driver keeps nothing')
    return
  }
  await writer.reset('one')
  const at = (write: IndexWrite, place: number): IndexWrite =>
    writer.placed ? { ...write, place } : write
  const first = [library(ONE, 5, { name: 'one' }), at(shelf(ONE, SHELF, 5, { label: 'b' }), 0)]
  await writer.apply([...first, library(THREE, 2, null)], [])
  const again = await reopen(SCHEMA)
  await again.writer.apply(
    [
      library(TWO, 1, { name: 'two' }),
      at(shelf(TWO, SHELF, 1, { label: 'c' }), 0),
      at(shelf(ONE, SHELF_TWO, 6, { label: 'a' }), 1),
      library(ONE, 4, { name: 'older' }),
      library(THREE, 1, { name: 'removed' }),
    ],
    [],
  )
  const shelves = { edge: 'shelves', node: { fields: ['label'] } }
  const node = { fields: ['name'], navigate: [shelves] }
  t.same(await ask(again.reader, [{ edge: 'libraries', orderBy: 'name', node }]), {
    libraries: [
      { name: 'one', shelves: [{ label: 'b' }, { label: 'a' }] },
      { name: 'two', shelves: [{ label: 'c' }] },
    ],
  })
}

/** The state that a document was made of goes on changing. */
async function copies(t: Test, make: MakeIndex): Promise<void> {
  const { writer, reader } = await make(t, OPTIONS)
  await writer.reset('one')
  const tags = ['a']
  const address = { city: 'x' }
  const doc: Record<string, unknown> = { libraryId: ONE, name: 'one', tags, address }
  const write = { node: 'library', actorId: ONE, id: ONE, version: 1, doc }
  await writer.apply([write], [])
  tags.push('b')
  address.city = 'y'
  doc['name'] = 'two'
  const body = { edge: 'libraries', node: { fields: ['name', 'tags', 'address'] } }
  const { libraries } = await ask(reader, [body])
  t.same(libraries, [{ name: 'one', tags: ['a'], address: { city: 'x' } }])
}
