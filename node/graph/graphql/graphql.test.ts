// GraphQL through the Operation table, on the journal's and the index's twins: how many plans an
// operation is, what a caller's schema shows, how refusals look.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { A, B, type Stage, call, stage } from '../testing/graph-stage.ts'

interface Answer {
  readonly status: number
  readonly data?: Record<string, unknown> | null
  readonly errors?: readonly {
    readonly message: string
    readonly path?: readonly (string | number)[]
    readonly extensions: { readonly code: string; readonly details?: unknown }
  }[]
  readonly extensions?: { readonly cut: unknown }
}

const MODERN = 'application/graphql-response+json'

async function ask(
  s: Stage,
  query: string,
  of: {
    variables?: unknown
    scope?: string
    accept?: string
    token?: string
    budgetMs?: number
  } = {},
): Promise<Answer> {
  const { variables = {}, accept = MODERN, ...others } = of
  const response = await call(s, {
    path: '/graphql',
    body: { query, variables },
    accept,
    ...others,
  })
  return {
    status: response.status,
    ...(JSON.parse(response.raw as string) as Omit<Answer, 'status'>),
  }
}

/** Status and code of the refusal; nothing has been run for it. */
async function refusal(
  s: Stage,
  query: string,
  of: Parameters<typeof ask>[2] = {},
): Promise<string> {
  const before = s.ran
  const { status, errors, ...answer } = await ask(s, query, of)
  if (s.ran !== before) return 'it was run'
  if ('data' in answer) return 'it has data'
  return `${status} ${errors![0]!.extensions.code}`
}

async function filled(t: Parameters<typeof stage>[0]): Promise<Stage> {
  const s = await stage(t)
  await s.store.commit([A, { t: 'opened', title: 'one' }], [B, { t: 'opened', title: 'two' }])
  for (const id of ['a', 'b', 'c'])
    await s.store.commit([A, { t: 'noted', id, text: `text ${id}` }])
  await s.store.flush()
  await s.follow()
  return s
}

t.test('an operation is one plan, however much it selects', async (t) => {
  const s = await filled(t)
  const { data } = await ask(
    s,
    `query All($limit: Int) {
      notebooks(orderBy: "title") {
        title
        first: notes(limit: 1, orderBy: "noteId desc") { text notebook { size notes { noteId } } }
        notes(filter: "text != 'text b'") { noteId }
        history(limit: $limit) { kind }
      }
      again: notebooks(filter: "title == 'two'") { notebookId __typename }
      notesConnection(filter: "noteId > 'a'") { totalCount edges { node { noteId } } }
      counted: notesConnection { totalCount }
      __typename
      __type(name: "Note") { name }
    }`,
    { variables: { limit: 1 } },
  )
  t.equal(s.ran, 1)
  const all = [{ noteId: 'a' }, { noteId: 'b' }, { noteId: 'c' }]
  t.strictSame(data, {
    notebooks: [
      {
        title: 'one',
        first: [{ text: 'text c', notebook: { size: 3, notes: all } }],
        notes: [{ noteId: 'a' }, { noteId: 'c' }],
        history: [{ kind: 'noted' }],
      },
      { title: 'two', first: [], notes: [], history: [{ kind: 'opened' }] },
    ],
    again: [{ notebookId: B, __typename: 'Notebook' }],
    notesConnection: {
      totalCount: 2,
      edges: [{ node: { noteId: 'b' } }, { node: { noteId: 'c' } }],
    },
    counted: { totalCount: 3 },
    __typename: 'Query',
    __type: { name: 'Note' },
  })
  t.strictSame(
    Object.keys(data!),
    Object.keys(data!).toSorted((a, b) => order(a) - order(b)),
  )
  function order(key: string): number {
    return ['notebooks', 'again', 'notesConnection', 'counted', '__typename', '__type'].indexOf(key)
  }
})

t.test('introspection and nothing else runs no plan', async (t) => {
  const s = await filled(t)
  const { data } = await ask(s, '{ __schema { queryType { name } } __typename }')
  t.strictSame(data, { __schema: { queryType: { name: 'Query' } }, __typename: 'Query' })
  t.equal(s.ran, 0)
})

t.test('parts of a page in any form', async (t) => {
  const s = await filled(t)
  const { data } = await ask(
    s,
    `{
      a: notesConnection(first: 2) { pageInfo { hasNextPage endCursor } totalCount }
      b: notesConnection(first: 3) {
        x: edges { node { noteId notebook { title } } }
        y: edges { __typename node { other: notebook { notebookId } } }
        pageInfo { hasNextPage hasPreviousPage startCursor }
      }
      c: notesConnection(filter: "noteId == 'none'") {
        edges { cursor } pageInfo { startCursor endCursor } totalCount
      }
    }`,
  )
  const { a, b, c } = data as Record<string, Record<string, never>>
  t.match(a, { pageInfo: { hasNextPage: true, endCursor: /./ }, totalCount: 3 })
  t.strictSame(b!['x']![0], { node: { noteId: 'a', notebook: { title: 'one' } } })
  t.strictSame(b!['y']![0], { __typename: 'NoteEdge', node: { other: { notebookId: A } } })
  t.match(b!['pageInfo'], { hasNextPage: false, hasPreviousPage: false, startCursor: /./ })
  t.strictSame(c, { edges: [], pageInfo: { startCursor: null, endCursor: null }, totalCount: 0 })
  t.equal(s.ran, 1)
})

t.test('a list that its limit has cut is told', async (t) => {
  const s = await filled(t)
  const { extensions } = await ask(
    s,
    '{ notebooks(orderBy: "title") { notes(limit: 2) { noteId } } }',
  )
  t.strictSame(extensions, { cut: [['notebooks', 0, 'notes']] })
})

t.test('parents by what they have', async (t) => {
  const s = await filled(t)
  const titles = async (require: string) =>
    (await ask(s, `{ notebooks { title notes(require: ${require}) { __typename } } }`)).data
  t.strictSame(await titles('none'), { notebooks: [{ title: 'two', notes: [] }] })
  const note = { __typename: 'Note' }
  t.strictSame(await titles('some'), { notebooks: [{ title: 'one', notes: [note, note, note] }] })
})

t.test('what may not be seen does not exist', async (t) => {
  const s = await filled(t)
  const scope = 'graph/notebook:query graph/notebook:field:title graph/note:query'
  const { data } = await ask(s, '{ __schema { types { name fields { name } } } }', { scope })
  const names = JSON.stringify(data)
  for (const hidden of ['size', 'notebookId', 'noteId', '"text"', 'history', 'NotebookRecord']) {
    t.notMatch(names, hidden)
  }
  t.match(names, 'title')
  t.match(names, 'notesConnection', 'nodes without a field can be counted')
  t.strictSame((await ask(s, '{ notesConnection { totalCount } }', { scope })).data, {
    notesConnection: { totalCount: 3 },
  })
  // Nothing leads to it: the schema has no type for it at all.
  const counted = await ask(s, '{ notesConnection { totalCount } }', { scope: 'graph/note:query' })
  t.strictSame(counted.data, { notesConnection: { totalCount: 3 } })
  const { errors } = await ask(s, '{ notebooks { siz } }', { scope })
  t.notMatch(errors![0]!.message, /did you mean/i)
  t.equal(await refusal(s, '{ notebooks { size } }', { scope }), '400 INVALID_QUERY')
  t.equal(await refusal(s, '{ notes { noteId } }', { scope }), '400 INVALID_QUERY')
  const sorted = '{ notebooks(orderBy: "size") { title } }'
  t.equal(await refusal(s, sorted, { scope }), '403 FORBIDDEN_FIELD')
  t.equal(await refusal(s, '{ __typename }', { scope: 'registry:read' }), '403 FORBIDDEN_NODE')
})

t.test('refusals of the graph stand at fields of the answer', async (t) => {
  const s = await filled(t)
  const query = '{ notebooks { title mine: notes(filter: "text = 1") { text } } }'
  const { status, errors } = await ask(s, query)
  t.equal(status, 400)
  const { message, path, extensions } = errors![0]!
  t.strictSame(path, ['notebooks', 'mine'])
  t.match(message, /^The filter at notebooks\.mine is wrong at position 5:/)
  t.match(extensions, { code: 'INVALID_FILTER', details: { position: 5 } })
  t.equal(s.ran, 0)
})

t.test('statuses go by the media type, but for what may be tried again', async (t) => {
  const s = await filled(t)
  const accept = 'application/json'
  t.equal(await refusal(s, '{ nobody }', { accept }), '200 INVALID_QUERY')
  t.equal(await refusal(s, '{ nobody }'), '400 INVALID_QUERY')
  t.equal(await refusal(s, 'mutation { __typename }', { accept }), '200 INVALID_QUERY')
  t.equal(await refusal(s, '{ notebooks { title } }', { token: 'x' }), '400 INVALID_PARAMETERS')
  s.progress.ready = false
  t.equal(await refusal(s, '{ notebooks { title } }', { accept }), '503 INDEX_BEHIND')
})

t.test('an operation that changes something is not for GET', async (t) => {
  const s = await filled(t)
  const response = await call(s, {
    path: '/graphql',
    method: 'GET',
    url: { query: 'mutation { __typename }' },
  })
  t.equal(response.status, 405)
  t.equal(response.headers!['Allow'], 'POST')
})

t.test('a new version of the graph is a new schema', async (t) => {
  const s = await filled(t)
  t.equal(await refusal(s, '{ notebooks { colour } }'), '400 INVALID_QUERY')
  const { types } = s.schema.current
  const colour = { name: 'colour', type: 'text' } as const
  const changed = types.map((type) =>
    type.name === 'notebook' ? { ...type, fields: [...type.fields, colour] } : type,
  )
  s.served = s.schema.change(changed)
  const { data } = await ask(s, '{ notebooks(limit: 1) { colour } }')
  t.strictSame(data, { notebooks: [{ colour: null }] })
})

t.test('an answer that no one wishes for is 406', async (t) => {
  const s = await filled(t)
  const body = { query: '{ __typename }' }
  const status = call(s, { path: '/graphql', body, accept: 'text/html' })
  await t.rejects(status, { errors: [{ code: 'NOT_ACCEPTABLE' }] })
})

t.test('variables that do not fit are refused, a bounded number of them told', async (t) => {
  const s = await filled(t)
  const names = Array.from({ length: 50 }, (_, i) => `$v${i}: Int!`).join(' ')
  const uses = Array.from({ length: 50 }, (_, i) => `a${i}: notes(limit: $v${i}) { noteId }`).join(
    ' ',
  )
  const { status, errors } = await ask(s, `query Q(${names}) { ${uses} }`)
  t.equal(status, 400)
  t.equal(errors![0]!.extensions.code, 'INVALID_PARAMETERS')
  t.ok(errors!.length <= LIMITS.graph.graphqlErrorsMax)
})

t.test(
  'plans of GraphQL and of navigations are kept by one text, the bytes of a body',
  async (t) => {
    const s = await stage(t)
    await s.store.commit([A, { t: 'opened', title: 'é' }])
    await s.follow()
    const navigation = {
      edge: 'notebooks',
      filter: "title == 'é'",
      limit: 100,
      alias: '__e0',
      node: { fields: ['title'] },
    }
    const found = await call(s, { body: [navigation] })
    t.strictSame(JSON.parse(found.raw as string), { __e0: [{ title: 'é' }] })
    const { data } = await ask(s, `{ notebooks(filter: "title == 'Ã©'") { title } }`)
    t.strictSame(data, { notebooks: [] })
  },
)
