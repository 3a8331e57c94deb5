// The OpenAPI document says what the table says.

import { Type } from '@sinclair/typebox'
import t from 'tap'
import { ERRORS } from '../../protocol/errors.ts'
import { openApiOf } from './openapi.ts'
import { operation, request, startServer } from './testing/test-server.ts'

const handle = (): { status: number } => ({ status: 200 })
const operations = [
  operation('GET', '/things/{id}', handle, {
    access: 'token',
    permissions: ['things/{id}:read'],
    response: Type.Object({ id: Type.String() }),
    parameters: [{ name: 'full', in: 'query', description: 'All of it.' }],
  }),
  operation('POST', '/things/{id}', handle, {
    body: { type: 'json', required: true, schema: Type.Array(Type.Integer()) },
  }),
  operation('GET', '/files/{**path}', handle),
]

type Described = Record<string, Record<string, Record<string, unknown>>>

t.test('paths, parameters, bodies, answers', (t) => {
  const document = openApiOf(operations, '1.2.3')
  t.match(document, { openapi: '3.1.0', info: { version: '1.2.3' } })
  const paths = document['paths'] as Described
  t.same(Object.keys(paths), ['/things/{id}', '/files/{path}'])
  const get = paths['/things/{id}']!['get']!
  t.match(get, {
    operationId: 'get_things_id',
    security: [{ bearer: ['things/{id}:read'] }],
    parameters: [
      { name: 'id', in: 'path', required: true },
      { name: 'full', in: 'query', required: false, schema: { type: 'string' } },
    ],
    responses: { 200: { content: { 'application/json': { schema: { type: 'object' } } } } },
  })
  t.match(paths['/things/{id}']!['post'], {
    security: [],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: { type: 'array', items: { type: 'integer' } } } },
    },
  })
  t.match(paths['/files/{path}']!['get'], {
    parameters: [{ name: 'path', description: /slashes/ }],
  })
  t.end()
})

t.test('every reference leads somewhere, every code is told', (t) => {
  const document = openApiOf(operations, '1') as {
    components: Record<string, Record<string, unknown>>
  }
  const text = JSON.stringify(document)
  const references = [...text.matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)]
  t.ok(references.length > 5)
  for (const [reference, kind, name] of references) {
    t.ok(document.components[kind!]?.[name!] !== undefined, reference)
  }
  for (const code of Object.keys(ERRORS)) t.ok(text.includes(`\`${code}\``), code)
  t.end()
})

t.test('it is served, and describes its own place', async (t) => {
  const http = await startServer(operations)
  t.teardown(http.stop)
  const response = await http.client().send(request('GET /openapi.json')).response()
  t.equal(response.status, 200)
  t.equal(response.headers['content-type'], 'application/json')
  const { paths } = JSON.parse(response.body.toString()) as { paths: Described }
  t.ok(paths['/openapi.json'])
})
