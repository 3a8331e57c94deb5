// The page's list by frames, against the lists that the frames were made of. Source: CONTRACT 1.10
// "Live queries".

import fc from 'fast-check'
import t from 'tap'
import { listChanges } from '../queries/list-changes.ts'
import type { LiveNode } from '../queries/live-window.ts'
import { LiveList } from './list.mjs'

const nodeOf = (id: number, text: number): LiveNode => ({
  actorId: 'a',
  id: String(id),
  shownId: String(id),
  doc: {},
  text: JSON.stringify({ id, text }),
  sorted: '',
})

/** A list of nodes, each once. */
const lists = fc
  .uniqueArray(fc.tuple(fc.nat(12), fc.nat(3)), { selector: ([id]) => id, maxLength: 8 })
  .map((pairs) => pairs.map(([id, text]) => nodeOf(id, text)))

const shown = (list: LiveList): string => JSON.stringify(list.rows.map(({ node }) => node))
const wanted = (nodes: readonly LiveNode[]): string => `[${nodes.map(({ text }) => text).join()}]`

t.test('the list is what the node has, after each moment', async () => {
  fc.assert(
    fc.property(fc.array(lists, { minLength: 1, maxLength: 6 }), fc.boolean(), (all, isPushed) => {
      const [first = [], ...others] = all
      const list = new LiveList()
      list.take({ type: 'liveQueryCreated', nodes: JSON.parse(wanted(first)), position: 'p' })
      let had = first
      for (const next of others) {
        for (const change of listChanges(had, next, () => isPushed)) {
          const type = { add: 'Add', update: 'Update', remove: 'Remove' }[change.kind]
          const { kind, node, ...places } = change
          const told = list.take({
            type: `liveQuery${type}`,
            ...places,
            ...(kind !== 'remove' && { node: JSON.parse(node.text) }),
          })
          if (told !== kind) return false
        }
        had = next
        if (shown(list) !== wanted(next)) return false
      }
      return shown(list) === wanted(had)
    }),
  )
})

t.test('a row is the same while it is there, and counts its changes', async (t) => {
  const list = new LiveList()
  t.equal(
    list.take({ type: 'liveQueryCreated', nodes: [{ a: 1 }, { a: 2 }], position: '1' }),
    'all',
  )
  const [first, second] = list.rows
  const moved = {
    type: 'liveQueryUpdate',
    index: 1,
    previousIndex: 0,
    node: { a: 3 },
    position: '2',
  }
  t.equal(list.take(moved), 'update')
  t.equal(list.rows[1], first)
  t.equal(list.rows[0], second)
  t.match(first, { node: { a: 3 }, version: 1 })
  t.equal(list.position, '2')
})

t.test('an answer without nodes goes on; a reset and a clear begin anew', async (t) => {
  const list = new LiveList()
  list.take({ type: 'liveQueryCreated', nodes: [{ a: 1 }], position: '1' })
  t.equal(list.take({ type: 'liveQueryCreated', position: '2' }), null)
  t.equal(shown(list), '[{"a":1}]')
  t.equal(list.position, '2')
  t.equal(list.take({ type: 'liveQueryReset', nodes: [], position: '3' }), 'all')
  t.equal(shown(list), '[]')
  t.equal(list.take({ type: 'liveQueryDeleted' }), null)
  t.equal(list.position, '3')
  list.clear()
  t.equal(list.position, null)
})
