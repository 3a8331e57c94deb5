// The OpenAPI document: the table of operations as a description that people and generators read.
// Format: OpenAPI 3.1.

import { ERRORS } from '../../protocol/errors.ts'
import type { Operation } from './operation.ts'

type Json = Record<string, unknown>

/** The operation that serves the document; it describes itself too. */
export function openApiOperation(operations: readonly Operation[], version: string): Operation {
  let text: string | null = null
  const self: Operation = {
    method: 'GET',
    path: '/openapi.json',
    summary: 'This document',
    access: 'none',
    handle: () => {
      text ??= JSON.stringify(openApiOf([...operations, self], version))
      return { status: 200, raw: text }
    },
  }
  return self
}

export function openApiOf(operations: readonly Operation[], version: string): Json {
  const paths: Record<string, Json> = {}
  for (const operation of operations) {
    const path = operation.path.replaceAll('{**', '{')
    const item = (paths[path] ??= {})
    item[operation.method.toLowerCase()] = describe(operation)
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Kontor', version, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: '/' }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      schemas: { ...namedOf(operations), Errors: errorsSchema() },
      responses: errorResponses(),
    },
  }
}

function namedOf(operations: readonly Operation[]): Json {
  return Object.assign({}, ...operations.map(({ named }) => named?.() ?? {})) as Json
}

function describe(operation: Operation): Json {
  const parameters = [...pathParameters(operation.path), ...(operation.parameters ?? []).map(plain)]
  const described: Json = {
    operationId: operationIdOf(operation),
    summary: operation.summary,
    tags: [tagOf(operation.path)],
    // What is asked for: where none is needed, a token is for the summary to name.
    security: operation.access === 'token' ? [{ bearer: operation.permissions ?? [] }] : [],
    responses: responsesOf(operation),
  }
  if (parameters.length > 0) described['parameters'] = parameters
  const body = requestBodyOf(operation)
  if (body !== null) described['requestBody'] = body
  return described
}

/** `POST /resources/actors/{type}/{id}` is `post_resources_actors_type_id`, `GET /` `get_front`. */
function operationIdOf(operation: Operation): string {
  const path = operation.path.replace(/[^A-Za-z0-9]+/g, '_').replace(/^_|_$/g, '') || 'front'
  return `${operation.method.toLowerCase()}_${path}`
}

function tagOf(path: string): string {
  const [first = '', second] = path.slice(1).split('/')
  if (first === '') return 'front'
  return first === 'resources' && second !== undefined ? second : first
}

function pathParameters(path: string): Json[] {
  const found = [...path.matchAll(/\{(\*\*)?([A-Za-z0-9]+)\}/g)]
  return found.map(([, rest, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
    ...(rest === undefined ? {} : { description: 'The rest of the path; it may hold slashes.' }),
  }))
}

function plain(parameter: NonNullable<Operation['parameters']>[number]): Json {
  return { schema: { type: 'string' }, required: false, ...parameter }
}

const MEDIA = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  ndjson: 'application/x-ndjson',
} as const

function requestBodyOf(operation: Operation): Json | null {
  const { body } = operation
  if (body === undefined) return null
  const shape = content(body.shown?.() ?? body.schema)
  return { required: body.required, content: { [MEDIA[body.type]]: shape } }
}

function content(schema: object | undefined): Json {
  return { schema: schema ?? {} }
}

function responsesOf(operation: Operation): Json {
  const media = operation.stream === undefined ? MEDIA.json : MEDIA.ndjson
  const shape = operation.response === undefined ? {} : { [media]: content(operation.response) }
  const good: Json = { description: 'Done', headers: { 'X-Request-Id': REQUEST_ID } }
  if (operation.response !== undefined) good['content'] = shape
  const responses: Json = { 200: good }
  const expected = [400, 413, 415, 429, 500, 503]
  if (operation.access !== 'none') expected.push(401, 403)
  if (operation.path.includes('{')) expected.push(404)
  if (operation.method !== 'GET') expected.push(409, 422, 504, 507)
  for (const status of expected.sort((a, b) => a - b)) {
    responses[String(status)] = { $ref: `#/components/responses/E${status}` }
  }
  return responses
}

const REQUEST_ID = {
  description: "The caller's X-Request-Id, or one made here.",
  schema: { type: 'string' },
}

function errorsSchema(): Json {
  const text = { type: 'string' }
  return {
    type: 'object',
    required: ['errors', 'requestId'],
    properties: {
      errors: {
        type: 'array',
        minItems: 1,
        items: {
          type: 'object',
          required: ['code', 'message'],
          properties: { code: text, message: text, details: { type: 'object' } },
        },
      },
      requestId: text,
    },
  }
}

const ADVICE = {
  change: 'change the request',
  retry: 'nothing was done: send it again after `Retry-After` seconds',
  'repeat-with-key': 'it may have happened: repeat it with the same `Idempotency-Key`',
} as const

/** One response for each status of the error table, with its codes and what to do. */
function errorResponses(): Json {
  const lines = new Map<number, string[]>()
  for (const [code, row] of Object.entries(ERRORS)) {
    const known = lines.get(row.status) ?? []
    known.push(`\`${code}\`: ${ADVICE[row.advice]}`)
    lines.set(row.status, known)
  }
  const responses: Json = {}
  for (const [status, known] of lines) {
    responses[`E${status}`] = {
      description: known.join('; '),
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Errors' } } },
    }
  }
  return responses
}
