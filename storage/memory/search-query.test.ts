// What the memory twin of the search engine refuses of a document, as the engine does.

import t from 'tap'
import { compileQuery, refusalOf, valuesOf } from './search-query.ts'

t.test('every value of a list is looked at, the first and the last', async (t) => {
  const properties = { size: { type: 'double' }, tags: { type: 'keyword' } } as const
  const refused = (source: Record<string, unknown>): boolean =>
    refusalOf(source, properties) !== null
  t.notOk(refused({ size: [1, 2], tags: ['a', 'b', null] }))
  t.notOk(refused({ size: [], tags: null }))
  t.ok(refused({ size: ['x', 1] }))
  t.ok(refused({ size: [1, 'x'] }))
  t.ok(refused({ tags: ['a', { b: 'c' }] }))
})

t.test('below a plain value there is nothing', async (t) => {
  const width = { width: { type: 'double' } } as const
  const properties = { size: { dynamic: 'strict', properties: width } } as const
  t.same(valuesOf({ size: [{ width: 1 }, { width: [2, 3] }] }, 'size.width', properties), [1, 2, 3])
  t.same(valuesOf({ size: 7 }, 'size.width', properties), [])
  t.same(valuesOf({ size: [7, { width: 8 }] }, 'size.width', properties), [8])
})

t.test('a range of a flattened field has two ends', async (t) => {
  const properties = { all: { type: 'flattened' } } as const
  const within = compileQuery({ range: { 'all.x': { gt: 'a', lt: 'c' } } }, properties)
  t.ok(within({ all: { x: 'b' } }))
  t.throws(() => compileQuery({ range: { 'all.x': { gt: 'a' } } }, properties), /two ends/)
})
