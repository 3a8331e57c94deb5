// Names near a misspelt one, and the words that a refusal ends with.

import fc from 'fast-check'
import t from 'tap'
import { nearNames, suggestion } from './near-names.ts'

t.test('the nearest come first, and nothing when nothing is near', async (t) => {
  const known = ['orderNumber', 'orderState', 'createdAt', 'tags']
  t.same(nearNames('ordernumbr', known), ['orderNumber'])
  t.same(nearNames('number', known), ['orderNumber'])
  t.same(nearNames('tgas', known), ['tags'])
  t.same(nearNames('zzzzzz', known), [])
  const sets = ['orderJournalEntries', 'orderLineSkus', 'orderLines', 'orders']
  t.same(nearNames('order', sets), ['orders', 'orderLines', 'orderLineSkus'])
})

t.test('a suggestion names what is near, else what there is, else nothing', async (t) => {
  t.equal(suggestion('tgas', ['tags', 'createdAt']), '; did you mean tags?')
  t.equal(suggestion('oders', ['orders', 'order']), '; did you mean orders or order?')
  t.equal(suggestion('zzzzzz', ['tags']), '; there is tags')
  t.equal(suggestion('zzzzzz', ['tags', 'state']), '; there are tags, state')
  const many = Array.from({ length: 13 }, (_, i) => `name${i}`)
  t.match(suggestion('zzzzzz', many), /^; there are name0, .*name11, \.\.\.$/)
  t.equal(suggestion('zzzzzz', []), '')
})

t.test('what is found is what a plain look at all edits finds', async (t) => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', 'C', 'd'), maxLength: 12 })
  fc.assert(
    fc.property(word, fc.uniqueArray(word, { maxLength: 8 }), (wrong, known) => {
      const bound = Math.max(2, Math.ceil(wrong.length / 3))
      const lower = wrong.toLowerCase()
      const near = known
        .map((name) => ({ name, edits: plainEdits(lower, name.toLowerCase()) }))
        .map((one) => ({ ...one, distance: Math.min(one.edits, held(lower, one.name)) }))
        .filter(({ distance }) => distance <= bound)
        .sort((a, b) => a.distance - b.distance || a.edits - b.edits || (a.name < b.name ? -1 : 1))
      t.same(
        nearNames(wrong, known),
        near.slice(0, 3).map(({ name }) => name),
      )
    }),
  )
  const long = 'x'.repeat(300)
  t.same(nearNames('orders', [long, 'order']), ['order'])
  t.same(nearNames(long, [long]), [long], 'and long ones by their beginning')
})

function held(a: string, name: string): number {
  const b = name.toLowerCase()
  if (a.length < 3 || b.length < 3) return Infinity
  if (a.startsWith(b) || b.startsWith(a)) return 1
  return a.includes(b) || b.includes(a) ? 2 : Infinity
}

/** By definition: the whole table, nothing left out. */
function plainEdits(a: string, b: string): number {
  const table = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    table.push([i])
    for (let j = 1; j <= b.length; j++) {
      const differ = a[i - 1] === b[j - 1] ? 0 : 1
      let best = Math.min(table[i]![j - 1]! + 1, table[i - 1]![j]! + 1)
      best = Math.min(best, table[i - 1]![j - 1]! + differ)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, table[i - 2]![j - 2]! + 1)
      }
      table[i]!.push(best)
    }
  }
  return table[a.length]![b.length]!
}
