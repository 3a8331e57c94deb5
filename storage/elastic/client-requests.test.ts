// What the client sends to Elasticsearch, word for word, and what it makes of the answers. The
// server here keeps what it hears and answers as it is told. Source: PROTOCOL 3.13, the REST API of
// Elasticsearch 9.

import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { ElasticClient } from './client.ts'
import { type BulkItem, EngineAway, NoSuchIndex, type SearchRequest } from './engine.ts'

interface Heard {
  readonly request: string
  readonly query: Readonly<Record<string, string>>
  readonly type: string | undefined
  /** JSON, lines of JSON, or nothing. */
  readonly body: unknown
}

async function heardOf(request: IncomingMessage): Promise<Heard> {
  const { pathname, searchParams } = new URL(request.url!, 'http://server')
  const text = await textOf(request)
  const type = request.headers['content-type']
  const isLines = type === 'application/x-ndjson'
  const lines = text.split('\n').slice(0, -1)
  const parsed = (one: string): unknown => (one === '' ? null : JSON.parse(one))
  return {
    request: `${request.method} ${pathname}`,
    query: Object.fromEntries(searchParams),
    type,
    body: isLines ? lines.map(parsed) : parsed(text),
  }
}

/** null: it has not failed. */
const failureOf = (run: Promise<unknown>): Promise<Error | null> =>
  run.then(
    () => null,
    (why: unknown) => why as Error,
  )

const BOUND = { timeoutMs: 20_000 }

async function clientOf(t: Test, server: Server): Promise<ElasticClient> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const client = new ElasticClient({ urls: [`http://127.0.0.1:${port}`] })
  t.teardown(async () => {
    await client.close()
    server.closeAllConnections()
    server.close()
  })
  return client
}

async function stage(t: Test) {
  const heard: Heard[] = []
  const say: { status: number; body: unknown } = { status: 200, body: {} }
  const server = createServer((request, response) => {
    void heardOf(request).then((one) => {
      heard.push(one)
      response.writeHead(say.status, {
        'content-type': 'application/json',
        'x-elastic-product': 'Elasticsearch',
      })
      response.end(JSON.stringify(say.body))
    })
  })
  const client = await clientOf(t, server)
  /** All that was heard during some work that is answered so. */
  const during = async (body: unknown, work: () => Promise<unknown>): Promise<Heard[]> => {
    heard.length = 0
    Object.assign(say, { status: 200, body })
    await work()
    return [...heard]
  }
  /** Why one request, answered so, has failed; null: it has not. */
  const refused = async (
    status: number,
    body: unknown,
    ask = (): Promise<unknown> => client.refresh(['i'], BOUND),
  ): Promise<Error | null> => {
    heard.length = 0
    Object.assign(say, { status, body })
    const error = await failureOf(ask())
    t.equal(heard.length, 1, 'sent once')
    return error
  }
  return { client, during, refused }
}

const ITEMS: readonly BulkItem[] = [
  { index: 'a-write', id: 'x:1', write: { kind: 'index', version: 7, source: '{"a":1}' } },
  { index: 'b-write', id: 'y', write: { kind: 'purge', seqNo: 0, primaryTerm: 2 } },
]

t.test('a bulk names versions and aliases: nothing newer is lost, no index is made', async (t) => {
  const { client, during } = await stage(t)
  const answer = { items: [{ index: { status: 201 } }, { delete: { status: 200 } }] }
  const heard = await during(answer, async () => {
    t.same(await client.bulk(ITEMS, BOUND), ['done', 'done'])
  })
  t.strictSame(heard, [
    {
      request: 'POST /_bulk',
      query: {},
      type: 'application/x-ndjson',
      body: [
        {
          index: {
            ...{ _index: 'a-write', _id: 'x:1', require_alias: true },
            ...{ version: 7, version_type: 'external_gte' },
          },
        },
        { a: 1 },
        {
          delete: {
            ...{ _index: 'b-write', _id: 'y', require_alias: true },
            ...{ if_seq_no: 0, if_primary_term: 2 },
          },
        },
      ],
    },
  ])
})

t.test('each item of a bulk has its own result', async (t) => {
  const { client, during } = await stage(t)
  const error = { type: 'mapper_exception', reason: 'no such field' }
  const said = [
    { index: { status: 200, error: null } },
    { index: { status: 409, error } },
    { index: { status: 429, error } },
    { index: { status: 500, error } },
    { index: { status: 503, error } },
    { index: { status: 404, error } },
    { index: { status: 400, error } },
    { index: { status: 413, error: {} } },
    { delete: { status: 409, error } },
    // Not there any more.
    { delete: { status: 404, result: 'not_found' } },
  ]
  await during({ errors: true, items: said }, async () => {
    t.strictSame(await client.bulk(ITEMS, BOUND), [
      ...['done', 'newer', 'busy', 'busy', 'busy', 'gone'],
      { refused: 'mapper_exception: no such field' },
      { refused: '413: ' },
      ...['newer', 'done'],
    ])
  })
})

const REQUEST: SearchRequest = {
  index: 'i+1',
  query: { term: { a: { value: 1 } } },
  size: 3,
  sort: [{ a: { order: 'desc', missing: '_last' } }, { b: { order: 'asc', missing: '_last' } }],
  source: ['kontor.id', 'a'],
  counts: false,
}
const BODY = {
  query: { term: { a: { value: 1 } } },
  size: 3,
  sort: [
    { a: { order: 'desc', missing: '_last', unmapped_type: 'keyword' } },
    { b: { order: 'asc', missing: '_last', unmapped_type: 'keyword' } },
  ],
  _source: ['kontor.id', 'a'],
  track_total_hits: false,
}
const NO_HITS = { timed_out: false, _shards: { failed: 0 }, hits: { hits: [] } }

t.test('a search by itself', async (t) => {
  const { client, during } = await stage(t)
  const sent = { request: 'POST /i%2B1/_search', query: {}, type: 'application/json' }
  const at = [2 ** 63, -(2 ** 63), 2 ** 53, null, 'x', 0.5]
  const hits = [
    { _id: 'x', _source: { a: 1 }, sort: [1, null], _seq_no: 0, _primary_term: 1 },
    { _id: 'y', sort: [2, 'b'] },
  ]
  const answer = { ...NO_HITS, hits: { total: { value: 5, relation: 'eq' }, hits } }
  const heard = await during(answer, async () => {
    const more = { searchAfter: at, counts: true, sequence: true }
    t.strictSame(await client.search([{ ...REQUEST, ...more }], { timeoutMs: 19_999.2 }), [
      {
        hits: [
          { id: 'x', source: { a: 1 }, sort: [1, null], seqNo: 0, primaryTerm: 1 },
          { id: 'y', source: {}, sort: [2, 'b'] },
        ],
        total: 5,
      },
    ])
    await client.search([REQUEST], BOUND)
  })
  t.strictSame(heard, [
    {
      ...sent,
      body: {
        ...BODY,
        // What stands for "none" is no number that the server takes back.
        search_after: [1e21, -1e21, 2 ** 53, null, 'x', 0.5],
        track_total_hits: true,
        timeout: '20000ms',
        seq_no_primary_term: true,
      },
    },
    { ...sent, body: { ...BODY, timeout: '20000ms' } },
  ])
})

t.test('searches together, answered in their order; one that failed fails them all', async (t) => {
  const { client, during } = await stage(t)
  const other = { ...REQUEST, index: 'j', size: 1 }
  const found = (id: string) => ({ ...NO_HITS, status: 200, hits: { hits: [{ _id: id }] } })
  const search = () => client.search([REQUEST, other], BOUND)
  const heard = await during({ responses: [found('a'), found('b')] }, async () => {
    t.strictSame(await search(), [
      { hits: [{ id: 'a', source: {}, sort: [] }], total: null },
      { hits: [{ id: 'b', source: {}, sort: [] }], total: null },
    ])
  })
  t.strictSame(heard, [
    {
      request: 'POST /_msearch',
      query: {},
      type: 'application/x-ndjson',
      body: [
        { index: 'i+1' },
        { ...BODY, timeout: '20000ms' },
        { index: 'j' },
        { ...BODY, size: 1, timeout: '20000ms' },
      ],
    },
  ])
  const failed = (status: number, type: string) => ({ status, error: { type, reason: 'why' } })
  for (const [answer, kind] of [
    [failed(404, 'index_not_found_exception'), NoSuchIndex],
    [failed(429, 'es_rejected_execution_exception'), EngineAway],
    [failed(503, 'search_phase_execution_exception'), EngineAway],
  ] as const) {
    for (const responses of [
      [answer, found('b')],
      [found('a'), answer],
    ]) {
      await during({ responses }, async () => t.ok((await failureOf(search())) instanceof kind))
    }
  }
  await during({ responses: [found('a'), failed(400, 'parsing_exception')] }, async () => {
    const error = await failureOf(search())
    t.match(error?.message, /refused a request: parsing_exception: why/)
    t.notOk(error instanceof EngineAway, 'the same request would be refused again')
  })
})

t.test('what indexes there are, with what they say of themselves', async (t) => {
  const { client, during } = await stage(t)
  const answer = {
    'p-a-1': { aliases: { 'p-a': {}, 'p-a-1-write': {} }, mappings: { _meta: { store: 's' } } },
    'p-b-1': {},
  }
  const heard = await during(answer, async () => {
    t.strictSame(await client.indexes('p-', BOUND), [
      { name: 'p-a-1', aliases: ['p-a', 'p-a-1-write'], meta: { store: 's' } },
      { name: 'p-b-1', aliases: [], meta: {} },
    ])
  })
  t.strictSame(heard[0]!.request, 'GET /p-*')
  t.strictSame(heard[0]!.query, {
    features: 'aliases,mappings',
    allow_no_indices: 'true',
    filter_path: '*.aliases,*.mappings._meta',
  })
})

t.test('an index is strict, and no text is taken for a number', async (t) => {
  const { client, during } = await stage(t)
  const heard = await during({}, () =>
    client.createIndex(
      'p-a-1',
      {
        writeAlias: 'p-a-1-write',
        properties: {
          size: { type: 'double' },
          code: { type: 'keyword', index: false },
          place: { type: 'long', index: false },
          members: { type: 'flattened' },
          raw: { type: 'object', enabled: false },
          list: { dynamic: false, properties: { weight: { type: 'double', index: false } } },
        },
        meta: { store: 's', generation: 1 },
      },
      BOUND,
    ),
  )
  t.strictSame(heard, [
    {
      request: 'PUT /p-a-1',
      query: {},
      type: 'application/json',
      body: {
        settings: {
          number_of_shards: 1,
          auto_expand_replicas: '0-1',
          refresh_interval: `${LIMITS.elastic.refreshMs}ms`,
        },
        mappings: {
          dynamic: 'strict',
          _meta: { store: 's', generation: 1 },
          properties: {
            size: { type: 'double', coerce: false },
            code: { type: 'keyword', index: false },
            place: { type: 'long', index: false },
            members: { type: 'flattened' },
            raw: { type: 'object', enabled: false },
            list: {
              dynamic: false,
              properties: { weight: { type: 'double', index: false, coerce: false } },
            },
          },
        },
        aliases: { 'p-a-1-write': {} },
      },
    },
  ])
})

t.test('whole indexes: those that are there or gone already are no failure', async (t) => {
  const { client, during } = await stage(t)
  const heard = await during({}, async () => {
    await client.refresh(['p-a-1', 'p-b-1'], BOUND)
    await client.deleteIndex('p-a-1', BOUND)
    await client.moveAliases(
      [{ add: { index: 'p-a-2', alias: 'p-a' } }, { remove: { index: 'p-a-1', alias: 'p-a' } }],
      BOUND,
    )
  })
  t.strictSame(
    heard.map(({ request, query, body }) => ({ request, query, body })),
    [
      { request: 'POST /p-a-1,p-b-1/_refresh', query: {}, body: null },
      { request: 'DELETE /p-a-1', query: { ignore_unavailable: 'true' }, body: null },
      {
        request: 'POST /_aliases',
        query: {},
        body: {
          actions: [
            { add: { index: 'p-a-2', alias: 'p-a' } },
            { remove: { index: 'p-a-1', alias: 'p-a', must_exist: false } },
          ],
        },
      },
    ],
  )
})

t.test('an index that is there already stays; any other refusal is told', async (t) => {
  const { client, refused } = await stage(t)
  const make = () => client.createIndex('i', { writeAlias: 'w', properties: {}, meta: {} }, BOUND)
  const body = (type: string) => ({ status: 400, error: { type, reason: 'why' } })
  t.equal(await refused(400, body('resource_already_exists_exception'), make), null)
  const error = await refused(400, body('mapper_parsing_exception'), make)
  t.match(error?.message, /mapper_parsing_exception: why/)
})

t.test('what the server can not do now it may do later; what it refuses, never', async (t) => {
  const { refused } = await stage(t)
  const body = (type: string) => ({
    error: { type, reason: 'all shards failed', root_cause: [{ reason: 'the cause' }] },
  })
  for (const status of [408, 429, 500, 502, 503, 504]) {
    const error = await refused(status, body('some_exception'))
    t.ok(error instanceof EngineAway, `${status}`)
    t.match(error?.message, /some_exception all shards failed: the cause/, 'with its first cause')
  }
  t.ok((await refused(400, {})) instanceof EngineAway, 'a proxy before it, for one')
  t.ok((await refused(403, body('security_exception'))) instanceof EngineAway)
  t.ok((await refused(404, body('index_not_found_exception'))) instanceof NoSuchIndex)
  const never = await refused(400, body('illegal_argument_exception'))
  t.notOk(never instanceof EngineAway)
  t.notOk(never instanceof NoSuchIndex)
  t.match(
    never?.message,
    /^Elasticsearch refused a request: illegal_argument_exception: all shards/,
  )
})

t.test('a server that does not answer in time is away', async (t) => {
  const mute = createServer(() => undefined)
  const client = await clientOf(t, mute)
  const asks = [
    () => client.search([REQUEST], { timeoutMs: 20 }),
    () => client.bulk(ITEMS, { timeoutMs: 20 }),
    // With no time left it does not wait for ever either.
    () => client.indexes('p-', { timeoutMs: 0 }),
  ]
  for (const ask of asks) t.ok((await failureOf(ask())) instanceof EngineAway)
})
