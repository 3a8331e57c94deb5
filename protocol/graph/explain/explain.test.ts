// What is told of a plan, and what is not: an explanation gives away no more than its answer.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { SCHEMA } from '../../../storage/conformance/search-nodes.ts'
import { planNavigations } from '../navigation.ts'
import type { Condition } from '../plan.ts'
import { FULL_ACCESS, type GraphAccess, type PlanNotes } from '../planning.ts'
import { toldPlan, toldWork } from './told-plan.ts'
import { EXPLAIN_LIMITS, Trace, told } from './trace.ts'

const by = (field: string, ...values: string[]): Condition => ({
  kind: 'in',
  as: 'text',
  operand: { kind: 'field', path: [field], type: 'text' },
  values,
})

/** The plan, and what would be told of work that was done for each of its steps. */
function explained(body: unknown, access: GraphAccess = FULL_ACCESS, schema = SCHEMA) {
  const notes: PlanNotes = new Map()
  const { steps } = planNavigations(body, schema, access, { nowMs: 0, limits: LIMITS.graph, notes })
  const to = { notes, schema, access }
  const plan = toldPlan(steps, to)
  const works = plan.map(({ at }) => ({
    ...{ at, parents: 1, rows: 2, ms: 3 },
    queries: [{ query: 'ask it', plan: ['so'], runs: 4, rows: 5, ms: 6 }],
  }))
  return { plan, works: toldWork(steps, works, to) }
}

t.test('a phrase is told by its words, and what goes by rank as that', (t) => {
  const { plan } = explained([
    {
      edge: 'libraries',
      phrase: "Åsa 'öberg lind'*",
      node: { navigate: [{ edge: 'books', phrase: 'x' }] },
    },
  ])
  t.match(plan, [
    { phrase: 'asa "oberg lind"*', orderBy: ['by rank', 'then by id'], filter: null },
    { phrase: '"x" (as a keyword)', orderBy: ['by rank', 'then by id'] },
  ])
  t.end()
})

t.test('a plan is told as it was understood', (t) => {
  const { plan, works } = explained([
    {
      edge: 'libraries',
      filter: `name == 'a' and (area + 1 > 2 or not (tags anyof ['x'])) and dynamic->'y' in [1, 2]
        and openedAt >= 2020-01-01 and motto contains 'm' and rating == nothing`,
      orderBy: 'area desc',
      limit: 8,
      node: {
        fields: ['name', "dynamic->'y'"],
        navigate: [
          { edge: 'books', require: 'some', filter: 'isLent' },
          { edge: 'notes', count: true },
          { edge: 'city' },
        ],
      },
    },
  ])
  t.match(plan[0], {
    at: '/0',
    name: 'libraries',
    node: 'library',
    from: 'base set libraries',
    kept: 'nodes of their own in the index',
    access: null,
    orderBy: ['area desc (as number)', 'then by id'],
    limit: 8,
    fields: ['name', "dynamic->'y'"],
  })
  const filter = plan[0]!.filter!
  for (const part of [
    'name:text == "a" (as text)',
    '((area:number + 1) > 2 (as number)) or (not (tags anyof ["x"]))',
    "dynamic->'y':dynamic in [1, 2]",
    'openedAt:instant >= ',
    'motto:text contains "m"',
    'rating == nothing',
  ]) {
    t.ok(
      filter.replaceAll(/[()]/g, '').includes(part.replaceAll(/[()]/g, '')),
      `${part}: ${filter}`,
    )
  }
  t.match(plan.slice(1), [
    { at: '/0/node/navigate/0', returns: 'nothing', require: 'some', filter: 'isLent:boolean' },
    { at: '/0/node/navigate/1', returns: 'count', orderBy: ["in the parent's order"] },
    { at: '/0/node/navigate/2', from: 'edge city, by library.cityCode == city.code', limit: 1 },
  ])
  t.match(plan[1], {
    from: 'edge books within the actor, by library.libraryId == book.libraryId',
  })
  t.equal(works.length, 4)
  t.match(works[0]!.queries, [{ query: 'ask it', runs: 4, rows: 5 }])
  t.end()
})

t.test('what permissions add is told without its values, and as hidden by hidden fields', (t) => {
  const narrowed = (field: string, mayField: GraphAccess['mayField']): GraphAccess => ({
    ...FULL_ACCESS,
    mayField,
    sees: ({ name }) => (name === 'library' ? by(field, 'secret') : true),
  })
  const all = (): boolean => true
  const butMotto: GraphAccess['mayField'] = (_, [member]) => member !== 'motto'
  const body = [{ edge: 'libraries', filter: "name == 'a'", node: { fields: ['name'] } }]

  const open = explained(body, narrowed('motto', all))
  t.equal(open.plan[0]!.access, 'library: motto:text in [?]')
  t.equal(open.plan[0]!.filter, 'name:text == "a" (as text)', "the caller's own apart from it")
  t.equal(open.works[0]!.queries, 'hidden', 'its index would tell of nodes that are not seen')
  t.match(open.works[0], { parents: 1, rows: 2, ms: 3 })

  const shut = explained(body, narrowed('motto', butMotto))
  t.match(shut.plan[0]!.access, /fields that are hidden/)
  t.equal(shut.works[0]!.queries, 'hidden', 'its texts would name them')
  const gated = [
    {
      edge: 'shelves',
      node: { fields: ['label'], navigate: [{ edge: 'library', require: 'some' }] },
    },
  ]
  const behind = explained(gated, narrowed('motto', butMotto))
  t.equal(behind.works[0]!.queries, 'hidden', 'a semi-join is asked with its parent')
  t.notMatch(JSON.stringify([shut, behind]), /secret|motto/)
  t.equal(explained(gated, narrowed('motto', all)).works[0]!.queries, 'hidden')
  t.end()
})

t.test('links, and the parents of history, are permissions as well', (t) => {
  const access = (type: string, mayField: GraphAccess['mayField']): GraphAccess => ({
    ...FULL_ACCESS,
    mayField,
    sees: ({ name }) => (name === type ? by('name', 'secret') : true),
  })
  const lent = [
    {
      edge: 'libraries',
      node: { fields: ['area'], navigate: [{ edge: 'lentNotes', count: true }] },
    },
  ]
  const seen = explained(
    lent,
    access('loan', () => true),
  )
  t.equal(seen.plan[1]!.access, 'loan: name:text in [?]')
  t.match(seen.plan[1]!.from, /^edge lentNotes, by library.libraryId == note.body over loan/)
  const hidden = explained(
    lent,
    access('loan', (_, [member]) => member !== 'name'),
  )
  t.equal(hidden.works[1]!.queries, 'hidden')
  const visits = [
    {
      edge: 'visits',
      filter: "libraryId == '0190a000-0000-7000-8000-000000000002'",
      node: { fields: ['libraryId'] },
    },
  ]
  t.match(
    explained(
      visits,
      access('library', () => true),
    ).plan[0]!.access,
    'library: name:text in',
  )
  const past = explained(
    visits,
    access('library', (_, [member]) => member !== 'name'),
  )
  t.match(past.plan[0]!.access, /hidden/)
  t.equal(past.works[0]!.queries, 'hidden')
  t.end()
})

t.test('an edge of the registry by fields that are hidden is not told by what it goes', (t) => {
  const library = SCHEMA.nodes.get('library')!
  const custom = { ...library.edges.get('city')!, custom: true }
  const edges = new Map([...library.edges, ['city', custom]])
  const node = { ...library, edges }
  const schema = {
    nodes: new Map([...SCHEMA.nodes, ['library', node]]),
    sets: new Map([...SCHEMA.sets, ['libraries', node]]),
  }
  const body = [
    { edge: 'libraries', node: { fields: ['name'], navigate: [{ edge: 'city', count: true }] } },
  ]
  t.match(explained(body, FULL_ACCESS, schema).plan[1]!.from, /by library.cityCode == city.code/)
  for (const end of ['cityCode', 'code']) {
    const access = {
      ...FULL_ACCESS,
      mayField: (_: string, [member]: readonly string[]) => member !== end,
    }
    const { plan, works } = explained(body, access, schema)
    t.equal(plan[1]!.from, 'edge city')
    t.equal(works[1]!.queries, 'hidden')
  }
  t.end()
})

t.test('what is told is bounded', (t) => {
  const { steps } = planNavigations([{ edge: 'libraries' }], SCHEMA, FULL_ACCESS, {
    nowMs: 0,
    limits: LIMITS.graph,
  })
  let ms = 0
  const trace = new Trace(() => ms++)
  const long = 'x'.repeat(EXPLAIN_LIMITS.explainCharsMax)
  trace.query('of no step', 1, 0)
  trace.begin(steps[0]!, null)
  for (let i = 0; i < EXPLAIN_LIMITS.explainQueriesMax + 3; i++) trace.query(`${i}${long}`, 1, ms)
  trace.query(`0${long}`, 1, ms)
  trace.end(7)
  const planOf = (): string[] => Array.from({ length: 1_000 }, () => 'SEARCH')
  const { engine, steps: works } = told(steps, trace, { engine: 'some', planOf })
  t.equal(engine, 'some')
  const [work] = works
  t.match(work, { at: '/0', parents: null, rows: 7, left: 3 })
  t.equal(work!.queries.length, EXPLAIN_LIMITS.explainQueriesMax)
  t.match(work!.queries[0], { runs: 2, rows: 2 }, 'the same text again is one')
  for (const { query, plan } of work!.queries) {
    t.equal(query.length, EXPLAIN_LIMITS.explainCharsMax)
    t.equal(plan!.length, EXPLAIN_LIMITS.explainLinesMax)
  }
  trace.begin(steps[0]!, null)
  t.ok(
    JSON.stringify(told(steps, trace, { engine: 'some', planOf: () => [long.repeat(9)] })).length <
      3 * EXPLAIN_LIMITS.explainAllCharsMax,
  )
  t.end()
})
