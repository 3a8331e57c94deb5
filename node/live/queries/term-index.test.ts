// Terms of standing queries: whatever the filters and documents, no query that matches is left out,
// and what does not match is hardly ever asked.

import fc from 'fast-check'
import t from 'tap'
import { type Doc, compileCondition } from '../../../protocol/graph/evaluate.ts'
import type { Condition, Scalar } from '../../../protocol/graph/plan.ts'
import { TermIndex } from './term-index.ts'

const value = fc.constantFrom<Scalar[]>('', 'a', 'b', 'ä', '1', 0, -0, 1, 2.5, -1, true, false)
const path = fc.constantFrom(['a'], ['b'], ['dynamic', 'a'])
const asOf = (one: Scalar): 'text' | 'number' | 'boolean' =>
  typeof one === 'string' ? 'text' : typeof one === 'number' ? 'number' : 'boolean'
const operator = fc.constantFrom('==', '!=', '<', '<=', '>', '>=')

const leaf: fc.Arbitrary<Condition> = fc.oneof(
  fc.boolean().map((one): Condition => ({ kind: 'constant', value: one })),
  path.map((one): Condition => ({ kind: 'missing', path: one })),
  fc.record({ path, value, operator, turned: fc.boolean() }).map((given): Condition => {
    const as = asOf(given.value)
    const field = { kind: 'field', path: given.path, type: as } as const
    const constant = { kind: 'value', value: given.value } as const
    const [left, right] = given.turned ? [constant, field] : [field, constant]
    return { kind: 'compare', operator: given.operator, as, left, right }
  }),
  fc.record({ path, value }).map((given): Condition => {
    const as = asOf(given.value)
    const operand = { kind: 'field', path: given.path, type: as } as const
    return { kind: 'in', as, operand, values: [given.value] }
  }),
  path.map((one): Condition => ({
    kind: 'true',
    operand: { kind: 'field', path: one, type: 'boolean' },
  })),
  fc
    .record({
      path,
      values: fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1 }),
      operator: fc.constantFrom('anyof', 'allof'),
    })
    .map((given): Condition => ({ kind: 'array', as: 'text', ...given })),
)

const { condition } = fc.letrec<{ condition: Condition }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 3 },
    leaf,
    tie('condition').map((of): Condition => ({ kind: 'not', of })),
    fc
      .record({
        kind: fc.constantFrom('and', 'or'),
        of: fc.array(tie('condition'), { minLength: 1, maxLength: 3 }),
      })
      .map((given): Condition => given),
  ),
}))

const held = fc.oneof(value, fc.constant(null), fc.array(fc.constantFrom('a', 'b', 'c', 1)))
const doc: fc.Arbitrary<Doc> = fc.record(
  { a: held, b: held, dynamic: fc.record({ a: held }, { requiredKeys: [] }) },
  { requiredKeys: [] },
)

t.test('no query that matches is left out; one that is deleted is gone', (t) => {
  const queries = fc.array(condition, { maxLength: 8 })
  const property = fc.property(queries, fc.array(doc), fc.nat(8), (filters, docs, gone) => {
    const index = new TermIndex<{ filter: Condition }>()
    const all = filters.map((filter) => ({ filter }))
    for (const one of all) index.add(one, one.filter)
    const deleted = all.splice(gone % (all.length + 1), 1)
    for (const one of deleted) index.delete(one)
    for (const one of docs) {
      const found = index.candidates(one)
      if (deleted.some((query) => found.has(query))) return false
      const matching = all.filter(({ filter }) => compileCondition(filter)(one))
      if (!matching.every((query) => found.has(query))) return false
    }
    for (const one of all) index.delete(one)
    return index.size === 0 && docs.every((one) => index.candidates(one).size === 0)
  })
  fc.assert(property, { numRuns: 2_000 })
  t.end()
})

t.test('of 10,000 queries only those are asked whose terms a document has', (t) => {
  const index = new TermIndex<{ readonly n: number }>()
  const field = (name: string, type: 'text' | 'number') =>
    ({ kind: 'field', path: [name], type }) as const
  const queries = Array.from({ length: 10_000 }, (_, n) => ({ n }))
  for (const query of queries) {
    const { n } = query
    const number: Condition = {
      ...{ kind: 'compare', operator: '==', as: 'text', left: field('number', 'text') },
      right: { kind: 'value', value: `N${n}` },
    }
    const total: Condition = {
      ...{ kind: 'compare', operator: '>', as: 'number', left: field('total', 'number') },
      right: { kind: 'value', value: n },
    }
    const open: Condition = { kind: 'missing', path: ['closed'] }
    index.add(query, n % 2 === 0 ? { kind: 'and', of: [open, total, number] } : total)
  }
  t.equal(index.residual, 0)
  const asked = index.candidates({ number: 'N8', total: 5 })
  t.strictSame([...asked].map(({ n }) => n).sort(), [1, 3, 5, 8])
  t.equal(index.candidates({ number: 'none', total: 0 }).size, 0)
  t.end()
})

t.test('queries that have one value in common are told apart by the others', (t) => {
  const index = new TermIndex<{ readonly n: number }>()
  const is = (name: string, value: string): Condition => ({
    ...{ kind: 'compare', operator: '==', as: 'text' },
    left: { kind: 'field', path: [name], type: 'text' },
    right: { kind: 'value', value },
  })
  for (let n = 0; n < 1_000; n++) {
    index.add({ n }, { kind: 'and', of: [is('state', 'open'), is('customer', `C${n}`)] })
  }
  const asked = index.candidates({ state: 'open', customer: 'C7' })
  t.ok(asked.size < 5, `${asked.size} are asked`)
  t.ok([...asked].some(({ n }) => n === 7))
  t.end()
})
