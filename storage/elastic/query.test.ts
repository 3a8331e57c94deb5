// Conditions on texts about as long as a term may be: a query finds all that can match, and nothing
// else where it says so. Source: CONTRACT 1.4, Appendix A.

import t from 'tap'
import { compileCondition } from '../../protocol/graph/evaluate.ts'
import type { CompareOperator, Condition, Operand } from '../../protocol/graph/plan.ts'
import { SCHEMA } from '../conformance/search-nodes.ts'
import { compileQuery } from '../memory/search-query.ts'
import { sourceOf } from './document.ts'
import { layoutOf, TERM_CHARS_MAX } from './layout.ts'
import { conditionQueryOf } from './query.ts'

const ACTOR = '0190b000-0000-7000-8000-000000000001'
const layout = layoutOf(SCHEMA).nodes.get('library')!
const place = { properties: layout.properties, within: null, lists: new Set(['tags']) }
const TEXTS = [-3, -2, -1, 0, 1, 2].flatMap((by) => {
  const text = 'x'.repeat(TERM_CHARS_MAX + by)
  // A cut never halves a character: it may be one shorter than a term.
  return [text, `${text}y`, `y${text}`, `${text}😀`, `${text}😀y`]
})

function* conditions(value: string): Generator<Condition> {
  const right: Operand = { kind: 'value', value }
  const [name, member] = [
    { kind: 'field', path: ['name'], type: 'text' },
    { kind: 'field', path: ['dynamic', 'x'], type: 'dynamic' },
  ] as const
  for (const left of [name, member]) {
    for (const operator of ['==', '!=', '<', '<=', '>', '>='] as CompareOperator[]) {
      yield { kind: 'compare', as: 'text', operator, left, right }
      yield { kind: 'compare', as: 'text', operator, left: right, right: left }
    }
    yield { kind: 'in', as: 'text', operand: left, values: ['x', value] }
    for (const operator of ['contains', 'startsWith', 'endsWith'] as const) {
      yield { kind: 'text', operator, left, right }
    }
  }
  for (const path of [['tags'], ['dynamic', 'list']]) {
    for (const operator of ['anyof', 'allof'] as const) {
      yield { kind: 'array', as: 'text', path, operator, values: [value] }
    }
  }
}

t.test('texts as long as a term, a little shorter and longer', async (t) => {
  const docs = TEXTS.map((text): Record<string, unknown> => {
    return { libraryId: ACTOR, name: text, tags: [text], dynamic: { x: text, list: [text] } }
  })
  const sources = docs.map((doc) => {
    const write = { node: 'library', actorId: ACTOR, id: ACTOR, version: 1, doc }
    return JSON.parse(sourceOf(write, layout, 0)) as Record<string, unknown>
  })
  const wrong = new Set<string>()
  for (const value of TEXTS) {
    for (const condition of conditions(value)) {
      const compiled = conditionQueryOf(condition, place)
      const [test, matches] = [
        compileCondition(condition),
        compileQuery(compiled.query, layout.properties),
      ]
      const isRight = docs.every((doc, i) => {
        const [is, isFound] = [test(doc), matches(sources[i]!)]
        return is === isFound || (isFound && !compiled.exact)
      })
      const told = JSON.stringify(condition, (_, one: unknown) =>
        typeof one === 'string' && one.length > 1_000 ? `${one.length} characters` : one,
      )
      if (!isRight) wrong.add(told)
    }
  }
  t.same([...wrong], [])
})
