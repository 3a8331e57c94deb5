// Hostile queries are refused before anything is run, and before the work that would grow faster
// than they do: parsing down, comparing each with each, unfolding fragments. Source: CONTRACT
// 1.4.1.

import { GraphQLError, getIntrospectionQuery, parse } from 'graphql'
import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { call, stage } from '../testing/graph-stage.ts'
import { parseDocument } from './document.ts'

const { graph } = LIMITS

/** What it is refused for, before any schema is looked at; empty: it is let pass. */
function refused(text: string): string {
  try {
    parseDocument(text)
    return ''
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error
    return error.message
  }
}

const nested = (levels: number, inner = 'x'): string =>
  `${'{ a '.repeat(levels - 1)}{ ${inner} }${' }'.repeat(levels - 1)}`
const many = (count: number, one: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => one(i)).join(' ')
/** Each names the next twice. */
const doubling = (count: number): string =>
  `{ ...f0 } ${many(count, (i) => `fragment f${i} on A { ...f${i + 1} b { ...f${i + 1} } }`)} ` +
  `fragment f${count} on A { x }`

t.test('what is within the bounds passes', async (t) => {
  t.equal(refused(nested(graph.graphqlDepthMax)), '')
  t.equal(refused(`{ ${many(graph.graphqlAliasesMax, (i) => `a${i}: x`)} }`), '')
  t.equal(refused(`{ ${many(graph.graphqlNameTimesMax, () => 'x')} }`), '')
  t.equal(refused(`{ x(text: ${JSON.stringify('y'.repeat(1 << 20))}) }`), '')
  t.equal(refused(doubling(8)), '')
})

t.test('what is past a bound does not', async (t) => {
  const { graphqlTokensMax: tokens } = graph
  for (const [name, text, words] of [
    ['depth', nested(graph.graphqlDepthMax + 1), /nests deeper than 15/],
    ['depth by fragments', doubling(15), /nests deeper than 15/],
    ['brackets', `{ a(b: ${'['.repeat(1_900)}${']'.repeat(1_900)}) }`, /brackets in one another/],
    ['braces without an end', '{a'.repeat(1_900), /brackets in one another/],
    ['aliases', `{ ${many(101, (i) => `a${i}: x`)} }`, /more than 100 aliases/],
    [
      'aliases in a fragment',
      `{ ...F b { ...F } } fragment F on A { ${many(60, (i) => `a${i}: x`)} }`,
      /more than 100 aliases/,
    ],
    ['names', `{ ${many(101, () => 'x')} }`, /"x" more than 100 times/],
    [
      'a cycle',
      '{ ...F } fragment F on A { ...G } fragment G on A { b { ...F } }',
      /part of itself/,
    ],
    ['a cycle of one', '{ ...F } fragment F on A { ...F }', /part of itself/],
    ['a cycle that nobody uses', '{ x } fragment F on A { ...F }', /part of itself/],
    ['unfolding', doubling(11), /selects more than 2000 fields/],
    ['directives', `{ x ${'@include(if: true) '.repeat(101)} }`, /more than 100 directives/],
    ['words', `{ ${'x '.repeat(tokens)} }`, /more than 4000 words/],
    ['a megabyte of words', `{ ${'x '.repeat(1 << 19)} }`, /more than 4000 words/],
    ['a megabyte of comments', '#\n'.repeat(1 << 19), /more than 4000 words/],
    ['a megabyte of brackets', '{'.repeat(1 << 20), /brackets in one another/],
    ['the prototype', '{ __proto__: x }', /__proto__/],
  ] as const) {
    t.match(refused(text), words, name)
  }
})

t.test('the bounds stand before the parser: it would take what they refuse', async (t) => {
  const text = `{ a(b: ${'['.repeat(150)}${']'.repeat(150)}) }`
  t.match(refused(text), /brackets/)
  t.ok(parse(text))
})

t.test('cost and size: 400, and nothing is run', async (t) => {
  const s = await stage(t)
  for (const [name, query, words] of [
    [
      'cost',
      '{ notebooks(limit: 1000) { notes(limit: 101) { noteId } } }',
      /may bring 102000 nodes/,
    ],
    ['cost by default', '{ notebooks { notes { notebook { notes { noteId } } } } }', /may bring/],
    [
      'cost of pages',
      `{ ${many(2, (i) => `a${i}: notebooksConnection(first: 1000) { edges { node { notes(limit: 50) { noteId } } } }`)} }`,
      /may bring/,
    ],
    [
      'a cycle of lists',
      '{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }',
      /introspection depth/i,
    ],
    ['bytes', `{ x(a: "${'y'.repeat(1 << 20)}") }`, /at most 1048576 bytes/],
  ] as const) {
    const accept = 'application/graphql-response+json'
    const { status, raw } = await call(s, { path: '/graphql', body: { query }, accept })
    const { errors } = JSON.parse(raw as string) as { errors: { message: string }[] }
    t.equal(status, 400, name)
    t.match(errors[0]!.message, words, name)
  }
  t.equal(s.ran, 0)
})

t.test('introspection has the bound of nodes: its lists lead into one another', async (t) => {
  const s = await stage(t)
  const ask = async (query: string): Promise<string> => {
    const { raw } = await call(s, { path: '/graphql', body: { query } })
    const { errors } = JSON.parse(raw as string) as { errors?: { message: string }[] }
    return errors?.[0]?.message ?? ''
  }
  t.teardown(overrideLimits({ 'graph.graphqlCostMax': 1_000 }))
  t.equal(await ask(getIntrospectionQuery()), '')
  const fields = many(20, (i) => `a${i}: fields { name }`)
  t.match(
    await ask(`{ __schema { types { fields { type { ${fields} } } } } }`),
    /more than 1000 things/,
  )
  const types = many(60, (i) => `a${i}: __schema { types { name } }`)
  t.match(await ask(`{ ${types} }`), /more than 1000 things/)
  t.match(await ask(`{ ...F } fragment F on Query { ${types} }`), /more than 1000 things/)
})
