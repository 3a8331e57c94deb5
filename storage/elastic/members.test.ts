// Terms of whatever callers put into `dynamic` fields: they sort as the values do, no two paths
// meet in one key, and no term is longer than the engine takes.

import t from 'tap'
import { compareText } from '../../protocol/graph/evaluate.ts'
import { LIST, addMembers, cut, keyOf, valueOf } from './members.ts'
import { TERM_CHARS_MAX } from './layout.ts'

t.test('values sort as terms: booleans, numbers, texts', (t) => {
  const numbers = [-Infinity, -1e300, -2, -1, -0.5, -1e-300, 0, 1e-300, 0.5, 1, 1.5, 2, 10, 1e300]
  const values = [false, true, ...numbers, '', 'a', 'b']
  const terms = values.map(valueOf)
  t.same(terms, terms.toSorted(compareText))
  t.equal(new Set(terms).size, terms.length)
  t.equal(valueOf(-0), valueOf(0))
  t.end()
})

t.test('paths have keys of their own', (t) => {
  const long = 'x'.repeat(600)
  const paths = [
    ['a'],
    ['a', 'b'],
    ['a.b'],
    ['a/b'],
    ['a*'],
    ['a', ''],
    ['A'],
    [long],
    [`${long}y`],
    [long, 'y'],
  ]
  const keys = paths.flatMap((path) =>
    (['S', 'A', 'O'] as const).map((shape) => keyOf(shape, path)),
  )
  t.equal(new Set(keys).size, keys.length)
  for (const key of keys) {
    t.notMatch(key, /[.*]/)
    t.ok(key.length <= 513)
  }
  t.end()
})

t.test('a text is cut between its characters', (t) => {
  const full = 'a'.repeat(TERM_CHARS_MAX)
  t.equal(cut(full), full)
  t.equal(cut(`${full}b`), full)
  const short = full.slice(1)
  t.equal(cut(`${short}😀`), short, 'not half of one')
  t.equal(cut(`${short.slice(1)}😀b`), `${short.slice(1)}😀`)
  t.end()
})

t.test('members at any depth, and what lists hold', (t) => {
  const into: Record<string, string | string[]> = {}
  const value = { a: 1, b: { c: [true, 'x', 2, null, { d: 1 }] }, n: null, u: undefined, e: {} }
  addMembers(into, [], value)
  t.same(into, {
    [keyOf('O', [])]: 'o',
    [keyOf('S', ['a'])]: valueOf(1),
    [keyOf('O', ['b'])]: 'o',
    [keyOf('A', ['b', 'c'])]: [LIST, `e${valueOf(true)}`, `e${valueOf('x')}`, `e${valueOf(2)}`],
    [keyOf('O', ['e'])]: 'o',
  })
  t.end()
})
