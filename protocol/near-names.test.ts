// Names near a misspelt one, and the words that a refusal ends with.

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
